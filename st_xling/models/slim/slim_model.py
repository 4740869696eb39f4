"""From a model and text of some languages to the folder of a slim model, with the report."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data.language_texts import LanguageTexts, Texts, language_texts
from st_xling.models import load_encoder
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.load import cast_to_saved_dtype
from st_xling.models.sidecar import OF_THE_WEIGHTS, card_terms
from st_xling.models.slim.parity import Change, Parity, parity, sampled, set_apart
from st_xling.models.slim.prune import SlimResult, slim_encoder
from st_xling.models.view import model_options
from st_xling.utils.io import naming_full_disk, read_json_object, temporary_path, write_json
from st_xling.utils.languages import canonical_code, match_language
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.signature import sign
from st_xling.utils.tables import format_table

RELATION = "quantized"
"""Of the slim model to its source, out of the Hub's four words (adapter, finetune, merge, quantized): the same model in
less space; it was not trained.
"""

KEY = "slim"
"""Of ``results.json``, under which the report stands, and by which an earlier slim model is known."""


@dataclass(frozen=True)
class SlimReport:
    """Everything there is to say of one cut.

    Attributes:
        source: Hub id, or name of the folder.
        fingerprint: Eight hex digits of the source: weights, settings and vocabulary.
        card: What the source's own card says of licence and base model.
        languages: That the text covered.
        texts: Texts counted, by language.
        result: What became of the vocabulary.
        signature: What the numbers depend on besides the source.
        counted: Parity on a sample of the text that was counted.
        held_out: Parity on text that was not, with translation retrieval.
        seconds: Time of each step.
        peak_memory: Most bytes that the process has held.
        command: Which gives the same again.
    """

    source: str
    fingerprint: str
    card: dict[str, str]
    languages: list[str]
    texts: dict[str, int]
    result: SlimResult
    signature: str
    counted: Parity | None = None
    held_out: Parity | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    command: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``results.json["slim"]`` and ``--json``."""
        parities = {"counted": self.counted, "held_out": self.held_out}
        before, after = asdict(self.result.before), asdict(self.result.after)
        return {
            "source": self.source,
            "source_fingerprint": self.fingerprint,
            "source_card": self.card,
            "relation": RELATION,
            "langs": self.languages,
            "report": {
                "texts": self.texts,
                "size": {name: {"before": before[name], "after": after[name]} for name in before},
                "kept": self.result.reasons,
                "rare": self.result.rare,
                "parity": {name: each.as_dict() for name, each in parities.items() if each is not None},
                "seconds": {name: round(seconds, 1) for name, seconds in self.seconds.items()},
                "peak_memory": self.peak_memory,
            },
            "signature": self.signature,
            **({} if self.command is None else {"command": self.command}),
            "version": __version__,
        }

    def table(self) -> str:
        """Sizes, reasons, parity, time and memory as plain text."""
        before, after = self.result.before, self.result.after
        rows, cosines, same = [], [], []
        for label, name, factor, decimals in (
            ("vocabulary", "tokens", 1, 0),
            ("parameters", "parameters", 1, 0),
            ("weights and tokenizer, MB", "bytes", 1e-6, 1),
        ):
            size = Change(getattr(before, name), getattr(after, name))
            rows.append((label, *_shown(size, factor, decimals), f"{100 * size.after / size.before:.1f} %"))
        for text, each in (("counted", self.counted), ("held-out", self.held_out)):
            if each is None:
                continue
            changes: dict[str, Change] = {}
            for name, ways in each.retrieval.items():
                one, _, other = name.partition("-")
                changes |= {f"{one} to {other}": ways["forward"], f"{other} to {one}": ways["back"]}
            for name, change in changes.items():
                rows.append((f"retrieval {name}, {text}, %", *_shown(change, 100, 1), ""))
            rows.append((f"tokens a text, {text}", *_shown(each.tokens_per_text, 1, 2), ""))
            rows.append((f"unknown tokens, {text}, %", *_shown(each.unknown_share, 100, 3), ""))
            shares = (f"{100 * each.same_share:.1f}", f"{100 * each.same_tokens_share:.1f}")
            numbers = (f"{each.texts:,}", f"{each.cosine_mean:.5f}", f"{each.cosine_min:.5f}", *shares)
            cosines.append((f"{text} text", *numbers, f"{each.largest_difference:.1e}"))
            same.append(f"{text}: {each}")
        kept = ", ".join(f"{count:,} {why}" for why, count in self.result.reasons.items())
        lines = [format_table(["", "before", "after", "left"], rows), "", f"kept: {kept}"]
        if self.result.rare:
            lines.append(f"tokens of the text that came too seldom: {self.result.rare:,}")
        lines.append("texts counted: " + ", ".join(f"{language} {count:,}" for language, count in self.texts.items()))
        if cosines:
            head = ["cosine to the old embedding", "texts", "mean", "least", "same, %", "same tokens, %"]
            lines += ["", format_table([*head, "largest difference"], cosines), "", *same]
        steps = ", ".join(f"{name} {seconds:.0f}" for name, seconds in self.seconds.items())
        lines.append(f"{sum(self.seconds.values()):.0f} s ({steps}), at most {self.peak_memory / 1e9:.1f} GB of memory")
        return "\n".join([*lines, self.signature])


def _shown(change: Change, factor: float, decimals: int) -> list[str]:
    return [f"{factor * value:,.{decimals}f}" for value in (change.before, change.after)]


def slim_model(
    model: str,
    texts: Sequence[str],
    out: str | Path,
    *,
    languages: Sequence[str],
    parity_texts: Sequence[str] = (),
    parity_rows: int = 500,
    min_count: int = 1,
    keep: Iterable[str] = (),
    hold_out: float | None = None,
    seed: int = 0,
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    batch_size: int | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Any,
) -> SlimReport:
    """Cut a model's vocabulary to the tokens of some languages, compare, and save.

    Args:
        model: Hub id or folder; it is not touched.
        texts: Specs, as :func:`~st_xling.data.language_texts.language_texts` takes them. Each is read once.
        out: Folder of the slim model.
        languages: Those that must be covered; text of others is left out.
        parity_texts: Specs of text to compare the models on, instead of text that is held out.
        parity_rows: Rows that the models are compared on, of counted and of other text each, drawn from all sources
            alike; a pair of translations is one row.
        min_count: Tokens that come less often go.
        keep: Tokens, words or texts whose tokens stay.
        hold_out: Share of the rows of each source (as many as are compared, at most) or number of rows that are not
            counted, but compared; by default 0.05, and with ``parity_texts`` 0.
        seed: Of what is held out and of the samples that are compared.
        skip_bad_lines: Leave faulty lines out, with a warning.
        overwrite: Replace an earlier slim model in ``out``.
        batch_size: Most texts of a batch; by default as many as suit the device.
        progress: Show bars on stderr.
        command: To be recorded in the report.
        complete: Called with the folder of the slim model before it takes its place, such as to write the card.
        options: Of :func:`~st_xling.models.load_encoder`: with a ``layer``, a ``dtype`` or a prompt, the slim model has
            that for its own.

    Raises:
        ValueError: A language without text, a folder that may not be written to, and as
            :func:`~st_xling.models.slim.slim_encoder`.
    """
    if parity_rows < 1:
        raise ValueError(f"parity_rows must be 1 or more: got {parity_rows}; 500 is the default.")
    with model_folder(out, model, overwrite=overwrite) as folder:
        clock = _Clock()
        encoder = cast_to_saved_dtype(load_encoder(model, **options))
        clock.step("loading")
        share = (0.0 if parity_texts else 0.05) if hold_out is None else hold_out
        text = _Text(texts, languages, share, parity_rows, seed, skip_bad_lines)
        compared = None
        if parity_texts:
            compared = _Text(parity_texts, languages, 0.0, parity_rows, seed, skip_bad_lines, every=False)
        result = slim_encoder(encoder, text, min_count=min_count, keep=keep, progress=progress, total=text.total)
        clock.step("counting and cutting")
        if compared is not None:
            for _ in compared:  # read it: its samples and its hash are then complete
                pass
        rows = text.held_out if compared is None else compared.samples
        rows = random.Random(seed).sample(rows, min(parity_rows, len(rows)))
        encoding: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": progress}
        counted = _compare(encoder, result.model, text.samples, pairs=False, **encoding)
        held_out = _compare(encoder, result.model, rows, pairs=True, **encoding)
        clock.step("comparing")
        is_folder = Path(model).is_dir()
        report = SlimReport(
            source=Path(model).resolve().name if is_folder else model,
            fingerprint=model_fingerprint(encoder)[:8],
            card=card_terms(model),
            languages=text.languages,
            texts=dict(text.counts),
            result=result,
            signature=sign(
                "slim",
                f"languages:{','.join(text.languages)}",
                f"min-count:{min_count}",
                f"hold-out:{share:g}",
                f"parity-rows:{parity_rows}",
                seed=seed,
                parity=None if compared is None else compared.sha8,
                model=model_options(encoder),
                data=text.sha8,
            ),
            counted=counted,
            held_out=held_out,
            seconds=clock.seconds,
            peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            command=command,
        )
        result.model.model_card_data.base_model = None if is_folder else model
        write_model(folder, result.model, model, report.as_dict(), complete)
        return report


class _Clock:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def step(self, name: str) -> None:
        """What was done since the last step."""
        self.seconds[name], self._last = time.perf_counter() - self._last, time.perf_counter()


class _Text:
    """The texts to count, one after the other, while some of the rows are set apart; with ``every``, of every language.

    Attributes:
        languages: As the user spells them.
        counts: Texts passed on, by language.
        samples: Rows that were passed on, about ``rows`` of them, of each source as many.
        held_out: Rows that were not.
        total: Texts, where that is known.
    """

    def __init__(
        self,
        specs: Sequence[str],
        languages: Sequence[str],
        hold_out: float,
        rows: int,
        seed: int,
        skip_bad_lines: bool,
        *,
        every: bool = True,
    ) -> None:
        self.languages = list(dict.fromkeys(code.strip() for code in languages if code.strip()))
        if not self.languages:
            raise ValueError("languages are needed: got none; name those that the model shall still read, as de,en.")
        self._sources = language_texts(specs, skip_bad_lines=skip_bad_lines)
        self._hold_out, self._seed, self._every = hold_out, seed, every
        self._each = -(-rows // max(1, len(self._sources)))
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.others: set[str] = set()
        self.samples: list[Texts] = []
        self.held_out: list[Texts] = []
        if all(source.languages for source in self._sources):  # else only the rows name them
            self._check({code for source in self._sources for code in source.languages})

    @property
    def total(self) -> int | None:
        sizes = [None if each.rows is None else each.rows * (len(each.languages) or 2) for each in self._sources]
        return None if None in sizes else sum(size for size in sizes if size)

    @property
    def sha8(self) -> str:
        """Of all text that was passed on or held out, in order."""
        return self._digest.hexdigest()[:8]

    def __iter__(self) -> Iterator[str]:
        for seed, source in enumerate(self._sources, start=self._seed):
            sample: list[Texts] = []
            held: list[Texts] = []
            rows = set_apart(self._rows(source), self._hold_out, held, seed=seed, most=self._each)
            for row in sampled(rows, self._each, sample, seed=seed):
                for language, text in row:
                    self.counts[language] += 1
                    yield text
            self.samples += sample
            self.held_out += held
        left = {code for row in self.held_out for code, _ in row} - set(self.counts)
        if left:
            languages = ", ".join(sorted(left))
            raise ValueError(
                f"hold_out must leave text to count: {self._hold_out:g} takes all of {languages}; hold out less."
            )
        self._check(set(self.counts))

    def _rows(self, source: LanguageTexts) -> Iterator[Texts]:
        known: dict[str, str | None] = {}  # code → as the user spells it; None: another language
        for row in source:
            for code, _ in row:
                if code not in known:
                    known[code] = match_language(code, self.languages)
                    self.others |= {code} if known[code] is None else set()
            left = tuple((name, text) for code, text in row if (name := known[code]) is not None and text.strip())
            if left:
                self._digest.update(json.dumps(left, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                yield left

    def _check(self, there: set[str]) -> None:
        found = {canonical_code(name) for code in there if (name := match_language(code, self.languages))}
        missing = [code for code in self.languages if canonical_code(code) not in found]
        if missing and (self._every or not found):
            others = ", ".join(sorted({*self.others, *there})) or "none"
            if not self._every:
                raise ValueError(
                    f"parity is found on text of {', '.join(missing)}: got text of {others} alone; give such text "
                    "with --parity, or leave it out."
                )
            raise ValueError(
                f"every language must have text: got none of {', '.join(missing)} (there is text of: {others}); add "
                f"--data {missing[0]}=FILE, or leave {missing[0]} out of --languages."
            )


def _compare(
    before: SentenceTransformer, after: SentenceTransformer, rows: list[Texts], *, pairs: bool, **options: Any
) -> Parity | None:
    """Parity on rows; with ``pairs``, those of two languages are translations. Nothing where there are no rows."""
    aligned: dict[str, tuple[list[str], list[str]]] = {}
    texts = []
    for row in rows:
        if pairs and len(row) == 2:
            columns = aligned.setdefault("-".join(code for code, _ in row), ([], []))
            for column, (_, text) in zip(columns, row):
                column.append(text)
        else:
            texts += [text for _, text in row]
    return parity(before, after, texts, pairs=aligned, **options) if rows else None


@contextmanager
def model_folder(out: str | Path, source: str, *, overwrite: bool = False, key: str = KEY) -> Iterator[ResumableFolder]:
    """Yield the folder of a model that is made from another, such as a slim one; no other process makes it meanwhile.

    Args:
        out: The folder of the new model.
        source: Hub id or folder of the model that it is made from.
        overwrite: Replace an earlier model of the kind.
        key: Key of ``results.json`` for the report, which names the kind.
    Raises:
        ValueError: If such a model may not be written to ``out``, or another process writes it.
    """
    out = Path(out)
    if Path(source).is_dir():
        there, goal = Path(source).resolve(), out.resolve()
        if there == goal or there in goal.parents or goal in there.parents:
            raise ValueError(f"--out must lie apart from the model, which stays as it is: got {out} for {source}.")
    with ResumableFolder(out, name="--out", instead="choose another --out", record="training/done.json") as folder:
        folder.check_free()
        if folder.load() and folder.task != {"command": key}:
            raise ValueError(f"{out} contains an earlier model of {folder.task.get('command')}; choose another --out.")
        if "model" in folder.steps and not overwrite:
            raise ValueError(f"{out} contains an earlier model of {key}; use --overwrite to replace it.")
        folder.task = {"command": key}
        yield folder


def write_model(
    folder: ResumableFolder,
    model: SentenceTransformer,
    source: str,
    report: dict[str, Any],
    complete: Callable[[Path], object] | None = None,
) -> None:
    """Save a model and its report, in a temporary folder first.

    Args:
        folder: From :func:`model_folder`.
        model: The new model.
        source: What it was made from; the manifest of its training is copied.
        report: For ``results.json``.
        complete: Called with the temporary folder before its files are moved, such as to write the card.
    Raises:
        OSError: When it cannot be written; an earlier model then stays.
    """
    folder.remove_temporary()
    temporary = temporary_path(folder.path / "model")
    new = temporary / folder.path.resolve().name  # the card is called by the folder's name
    manifest = Path(source) / "training" / "run.json"
    try:
        with naming_full_disk(folder.path):
            new.parent.mkdir()
            model.save_pretrained(str(new))
            if any(getattr(module, "do_lower_case", False) for module in model.modules()):  # ST only reads it
                for path in new.rglob("sentence_bert_config.json"):
                    write_json(path, {**read_json_object(path), "do_lower_case": True})
            write_json(new / "results.json", {folder.task["command"]: json.loads(json.dumps(report))})
            if manifest.is_file():
                (new / "training").mkdir()
                shutil.copyfile(manifest, new / "training" / "run.json")
            if complete is not None:
                complete(new)
            folder.install("model", new, also=OF_THE_WEIGHTS)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
