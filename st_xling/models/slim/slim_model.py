"""From a model and text of some languages to the folder of a slim model, with the report."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling._version import __version__
from st_xling.data.language_texts import Texts, language_texts
from st_xling.models import load_encoder
from st_xling.models.encode import encode
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.load import cast_to_saved_dtype
from st_xling.models.sidecar import OF_THE_WEIGHTS, card_terms
from st_xling.models.slim.prune import model_size, slim_encoder
from st_xling.models.slim.vocabulary import token_ids
from st_xling.models.view import model_options
from st_xling.utils.io import naming_full_disk, read_json_object, temporary_path, write_json
from st_xling.utils.languages import canonical_code, match_language
from st_xling.utils.nearest import retrieval_accuracy
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.signature import sign
from st_xling.utils.tables import format_table

RELATION = "quantized"
"""Of the slim model to its source, out of the Hub's four words (adapter, finetune, merge, quantized): the same model in
less space; it was not trained.
"""

SAME = 0.9999
"""Cosine from which two embeddings count as the same."""

KEY = "slim"
"""Key of the report in ``results.json``, and ``command`` of ``training/done.json``, which marks a slim model."""


@dataclass(frozen=True)
class SlimReport:
    """Result of :func:`slim_model`.

    Attributes:
        content: ``results.json["slim"]``: the source, its license and base model, the languages; in ``report`` the
            number of counted texts, sizes, and parity on a sample of the text that was ``counted``, and on ``other``
            text, if there is any; signature and command.
    """

    content: dict[str, Any]

    def table(self) -> str:
        """Format sizes and parity as plain text."""
        report, whens = self.content["report"], ("before", "after")
        rows = []
        for name, size in report["size"].items():
            label, unit = ("weights and tokenizer, MB", 1e6) if name == "bytes" else (name, 1)
            values = [size[when] / unit if unit > 1 else size[when] for when in whens]
            rows.append([label, *values, 100 * size["after"] / size["before"]])
        cosines = []
        for text, each in report["parity"].items():
            for pair, ways in each["retrieval"].items():
                source, _, target = pair.partition("-")
                for label, way in ((f"{source} to {target}", "forward"), (f"{target} to {source}", "back")):
                    rows.append(
                        [f"retrieval {label}, {text} text, %", *(100 * ways[way][when] for when in whens), None]
                    )
            unknown = [f"{100 * each['unknown_share'][when]:.3f}" for when in whens]
            rows.append([f"unknown tokens, {text} text, %", *unknown, None])
            values = [f"{each[name]:.5f}" for name in ("cosine_mean", "cosine_min")]
            shares = [100 * each[name] for name in ("same_share", "same_tokens_share")]
            cosines.append([f"{text} text", each["texts"], *values, *shares])
        head = ["cosine to the old embedding", "texts", "mean", "least", "same, %", "same tokens, %"]
        counted = ", ".join(f"{language} {count:,}" for language, count in report["texts"].items())
        tables = [format_table(["", *whens, "left, %"], rows), format_table(head, cosines)]
        return "\n".join(["\n\n".join(tables), "", f"texts counted: {counted}", self.content["signature"]])


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
        model: Hub id or folder, which is not changed.
        texts: Specs, see :func:`~st_xling.data.language_texts.language_texts`. Each is read once.
        out: Folder of the slim model.
        languages: Languages that the text must cover; text of others is ignored.
        parity_texts: Specs of other text to compare the models on.
        parity_rows: Number of rows, drawn from all sources alike, that the models are compared on; a pair of
            translations is one row.
        min_count: Drop tokens that occur less often.
        keep: Tokens, words or texts whose tokens are kept.
        seed: Seed of the rows to compare.
        skip_bad_lines: Skip faulty lines, with a warning.
        overwrite: Replace an earlier slim model in ``out``.
        batch_size: Maximum batch size; chosen for the device by default.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the folder of the slim model before it is moved to its place, such as to write the card.
        options: Options of :func:`~st_xling.models.load_encoder`; the slim model keeps a ``layer``, a ``dtype`` or a
            prompt as its own.
    Raises:
        ValueError: For a language without text, a folder that may not be written to, and as
            :func:`~st_xling.models.slim.slim_encoder`.
    """
    if parity_rows < 1:
        raise ValueError(f"parity_rows must be 1 or more: got {parity_rows}; 500 is the default.")
    with model_folder(out, model, overwrite=overwrite) as folder:
        encoder = cast_to_saved_dtype(load_encoder(model, **options))
        counted = _Text(texts, languages, parity_rows, seed, skip_bad_lines)
        slim = slim_encoder(encoder, counted, min_count=min_count, keep=keep, progress=progress)
        compared = {"counted": counted}
        if parity_texts:
            compared["other"] = _Text(parity_texts, languages, parity_rows, seed, skip_bad_lines, covers_all=False)
            for _ in compared["other"]:
                pass
        is_folder = Path(model).is_dir()
        before, after = model_size(encoder), model_size(slim)
        content: dict[str, Any] = {
            "source": Path(model).resolve().name if is_folder else model,
            "source_fingerprint": model_fingerprint(encoder)[:8],
            "source_card": card_terms(model),
            "relation": RELATION,
            "langs": counted.languages,
            "report": {
                "texts": dict(counted.counts),
                "size": {name: {"before": before[name], "after": after[name]} for name in before},
                "parity": {
                    name: parity(encoder, slim, **text.rows, batch_size=batch_size, show_progress_bar=progress)
                    for name, text in compared.items()
                },
            },
            "signature": sign(
                "slim",
                f"languages:{','.join(counted.languages)}",
                f"min-count:{min_count}",
                f"parity-rows:{parity_rows}",
                seed=seed,
                parity=compared["other"].sha8 if parity_texts else None,
                model=model_options(encoder),
                data=counted.sha8,
            ),
            **({} if command is None else {"command": command}),
            "version": __version__,
        }
        slim.model_card_data.base_model = None if is_folder else model
        write_model(folder, slim, model, content, complete)
        return SlimReport(content)


def parity(
    before: SentenceTransformer,
    after: SentenceTransformer,
    texts: Sequence[str] = (),
    *,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> dict[str, Any]:
    """Compare an encoder with the one that it was made from.

    Args:
        before: The source.
        after: The encoder made from it.
        texts: Texts of any language.
        pairs: Name → translations, row by row, which are also evaluated by translation retrieval.
        batch_size: Maximum batch size; chosen for the device by default.
        show_progress_bar: Show a bar while encoding.
    Returns:
        ``texts``: number of distinct ones. ``cosine_mean``, ``cosine_min``: of a text's two embeddings; of separate
        encoders, over both. ``same_share``: share of cosines of at least 0.9999. ``same_tokens_share``: share of texts
        with the same tokens. ``unknown_share``: share of unknown tokens, ``before`` and ``after``. ``retrieval``: pair
        of languages → accuracies (P@1) of finding the target (``forward``) and the source (``back``), ``before`` and
        ``after``.
    Raises:
        ValueError: If there is no text, or the embeddings have different widths.
    """
    pairs = pairs or {}
    distinct = list(dict.fromkeys([*texts, *(text for columns in pairs.values() for side in columns for text in side)]))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    models = {"before": before, "after": after}
    # Alone and behind each prompt, whose end may change how a text begins.
    prompted = [prompt + text for prompt in ("", *filter(None, before.prompts.values())) for text in distinct]
    rows = [
        [model.tokenizer.convert_ids_to_tokens(ids) for ids in token_ids(model.tokenizer, prompted)]
        for model in models.values()
    ]
    same_tokens = np.array([one == other for one, other in zip(*rows)]).reshape(-1, len(distinct)).all(axis=0)
    unknown = {}
    for when, model in models.items():
        numbers = [number for ids in token_ids(model.tokenizer, distinct) for number in ids]
        unknown[when] = numbers.count(model.tokenizer.unk_token_id) / max(1, len(numbers))

    cosines = []
    # Of separate encoders, plain text goes through that of documents.
    for role in ("query", "text") if isinstance(before[0], Router) else ("text",):
        options: dict[str, Any] = {"role": role, "batch_size": batch_size, "show_progress_bar": show_progress_bar}
        vectors = {when: encode(model, distinct, **options) for when, model in models.items()}
        old, new = (each.astype(np.float64) for each in vectors.values())
        if old.shape != new.shape:
            raise ValueError(f"embeddings of one width are needed: got {old.shape[1]} and {new.shape[1]}.")
        cosines.append((old * new).sum(axis=1) / (np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)))
    rows_of = {text: row for row, text in enumerate(distinct)}
    retrieval: dict[str, dict[str, dict[str, float]]] = {}
    for name, columns in pairs.items():
        chosen = [[rows_of[text] for text in side] for side in columns]
        found = {when: retrieval_accuracy(*(each[own] for own in chosen)) for when, each in vectors.items()}
        ways = enumerate(("forward", "back"))
        retrieval[name] = {way: {when: values[place] for when, values in found.items()} for place, way in ways}
    whole = np.stack(cosines)
    return {
        "texts": len(distinct),
        "cosine_mean": float(whole.mean()),
        "cosine_min": float(whole.min()),
        "same_share": float((whole >= SAME).mean()),
        "same_tokens_share": float(same_tokens.mean()),
        "unknown_share": unknown,
        "retrieval": retrieval,
    }


class _Text:
    """The texts of some languages, one after the other, with a sample of the rows that were read.

    Attributes:
        languages: Languages as the user spells them.
        counts: Number of texts of each language.
        sample: Sampled rows, of each source as many.
    """

    def __init__(
        self,
        specs: Sequence[str],
        languages: Sequence[str],
        rows: int,
        seed: int,
        skip_bad_lines: bool,
        *,
        covers_all: bool = True,
    ) -> None:
        self.languages = list(dict.fromkeys(code.strip() for code in languages if code.strip()))
        if not self.languages:
            raise ValueError("languages are needed: got none; name those that the model shall keep, such as de,en.")
        self._sources = language_texts(specs, skip_bad_lines=skip_bad_lines)
        self._covers_all, self._seed, self._each = covers_all, seed, -(-rows // max(1, len(self._sources)))
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.sample: list[Texts] = []
        if all(source.languages for source in self._sources):  # otherwise only the rows name them
            self._check({code for source in self._sources for code in source.languages})

    @property
    def sha8(self) -> str:
        """Hash of all texts, in order."""
        return self._digest.hexdigest()[:8]

    @property
    def rows(self) -> dict[str, Any]:
        """Sampled rows for :func:`parity`: ``texts``, and ``pairs`` of two languages."""
        pairs: dict[str, tuple[list[str], list[str]]] = {}
        texts = []
        for row in self.sample:
            if len(row) == 2:
                columns = pairs.setdefault("-".join(code for code, _ in row), ([], []))
                for column, (_, text) in zip(columns, row):
                    column.append(text)
            else:
                texts += [text for _, text in row]
        return {"texts": texts, "pairs": pairs}

    def __iter__(self) -> Iterator[str]:
        known: dict[str, str | None] = {}  # code → as the user spells it; None: another language
        for seed, source in enumerate(self._sources, start=self._seed):
            draw, number = random.Random(seed), 0
            sample: list[Texts] = []
            for row in source:
                known.update({code: match_language(code, self.languages) for code, _ in row if code not in known})
                texts = tuple((name, text) for code, text in row if (name := known[code]) and text.strip())
                if not texts:
                    continue
                self._digest.update(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                number += 1
                if len(sample) < self._each:
                    sample.append(texts)
                elif (place := draw.randrange(number)) < self._each:
                    sample[place] = texts
                for language, text in texts:
                    self.counts[language] += 1
                    yield text
            self.sample += sample
        self._check({*self.counts, *(code for code, name in known.items() if name is None)})

    def _check(self, there: set[str]) -> None:
        found = {canonical_code(name) for code in there if (name := match_language(code, self.languages))}
        missing = [code for code in self.languages if canonical_code(code) not in found]
        if missing and (self._covers_all or not found):
            raise ValueError(
                f"every language must have text: got none of {', '.join(missing)} (there is text of: "
                f"{', '.join(sorted(there)) or 'none'}); add text of it, or remove it from --languages."
            )


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
            write_json(new / "results.json", {folder.task["command"]: report})
            if manifest.is_file():
                (new / "training").mkdir()
                shutil.copyfile(manifest, new / "training" / "run.json")
            if complete is not None:
                complete(new)
            folder.install("model", new, also=OF_THE_WEIGHTS)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
