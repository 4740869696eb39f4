"""From a model and text of some languages to the folder of a slim model, with the report."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data.language_texts import LanguageTexts, Row, language_texts
from st_xling.models import load_encoder
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.slim.parity import Parity, parity
from st_xling.models.slim.report import SlimFigures
from st_xling.models.slim.set_apart import MOST_ROWS, check_hold_out, sampled, set_apart
from st_xling.models.slim.slim_encoder import slim_encoder
from st_xling.models.slim.write import SlimFolder
from st_xling.utils.languages import canonical_language


def slim_model(
    model: str,
    texts: Sequence[str],
    out: str | Path | None = None,
    *,
    languages: Sequence[str],
    parity_texts: Sequence[str] = (),
    min_count: int = 1,
    keep: Iterable[str] = (),
    hold_out: float | None = None,
    seed: int = 0,
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    batch_size: int = 64,
    device: str | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
) -> SlimFigures:
    """Cut a model's vocabulary to the tokens of some languages, compare, and save.

    Args:
        model: Hub id or folder; it is not touched.
        texts: Specs, as :func:`~st_xling.data.language_texts.language_texts` takes them. Each is read once.
        out: Folder of the slim model; ``None``: only a plan.
        languages: Those that must be covered; text of others is left out.
        parity_texts: Specs of text to compare the models on, instead of text that is held out.
        min_count: Tokens that come less often go.
        keep: Tokens, words or texts whose tokens stay.
        hold_out: Share of the rows of each source (at most a thousand) or number of rows that are not counted, but
            compared; by default 0.05, and with ``parity_texts`` 0.
        seed: Of what is held out and of the sample of what is not.
        skip_bad_lines: Leave faulty lines out, with a warning.
        overwrite: Replace an earlier slim model in ``out``.
        batch_size: Texts encoded at a time.
        device: Where to encode; ``None`` lets the host choose.
        progress: Show bars on stderr.
        command: To be kept with the figures.
        complete: Called with the folder of the slim model before it takes its place, such as to write the card.

    Raises:
        ValueError: A language without text, a folder that may not be written to, and as
            :func:`~st_xling.models.slim.slim_encoder`.
    """
    with contextlib.nullcontext() if out is None else SlimFolder(Path(out), model, overwrite=overwrite) as folder:
        share = (0.0 if parity_texts else 0.05) if hold_out is None else hold_out
        check_hold_out(share)
        text = _Text(texts, languages, share, seed, skip_bad_lines)
        compared = _Text(parity_texts, languages, 0.0, seed, skip_bad_lines, every=False) if parity_texts else None
        encoder = load_encoder(model, device=device)
        found = slim_encoder(
            encoder, text, min_count=min_count, keep=keep, plan=out is None, progress=progress, total=text.total
        )
        if compared is not None:
            for _ in compared:
                pass
        is_folder = Path(model).is_dir()
        figures: dict[str, Any] = {
            "source": Path(model).resolve().name if is_folder else model,
            "fingerprint": model_fingerprint(encoder)[:8],
            "languages": text.languages,
            "texts": dict(text.counts),
            "report": found.report,
            "signature": _signature(text, compared, min_count=min_count, share=share, seed=seed),
            "command": command,
        }
        if folder is None or found.model is None:
            return SlimFigures(**figures)
        options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": progress}
        result = SlimFigures(
            **figures,
            counted=_compare(encoder, found.model, text.samples, **options),
            held_out=_compare(encoder, found.model, text.held_out if compared is None else compared.samples, **options),
        )
        found.model.model_card_data.base_model = None if is_folder else model
        folder.write(found.model, result.as_dict(), complete)
        return result


class _Text:
    """The texts to count, one after the other, while some of the rows are set apart; with ``every``, of every language.

    Attributes:
        languages: As the user spells them.
        counts: Texts passed on, by language.
        samples: By source, rows that were passed on.
        held_out: By source, rows that were not.
        total: Texts, where that is known.
    """

    def __init__(
        self,
        specs: Sequence[str],
        languages: Sequence[str],
        hold_out: float,
        seed: int,
        skip_bad_lines: bool,
        *,
        every: bool = True,
    ) -> None:
        self.languages = list(dict.fromkeys(code.strip() for code in languages if code.strip()))
        self._wanted = {canonical_language(code): code for code in self.languages}
        if not self.languages:
            raise ValueError("languages are needed: got none; name those that the model shall still read, as de,en.")
        self._sources = language_texts(specs, skip_bad_lines=skip_bad_lines)
        self._hold_out, self._seed, self._every = hold_out, seed, every
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.samples: dict[str, list[Row]] = {}
        self.held_out: dict[str, list[Row]] = {}
        if all(source.languages for source in self._sources):  # else only the rows tell
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
        for number, source in enumerate(self._sources):
            name = source.name if source.name not in self.samples else f"{source.name}-{number + 1}"
            sample, kept = self.samples.setdefault(name, []), self.held_out.setdefault(name, [])
            rows = set_apart(self._rows(source), self._hold_out, kept, seed=self._seed + number)
            for row in sampled(rows, MOST_ROWS, sample, seed=self._seed + number):
                for language, text in row:
                    self.counts[language] += 1
                    yield text
        left = {code for rows in self.held_out.values() for row in rows for code, _ in row} - set(self.counts)
        if left:
            told = ", ".join(sorted(left))
            raise ValueError(
                f"hold_out must leave text to count: {self._hold_out:g} takes all of {told}; hold out less."
            )
        self._check(set(self.counts))

    def _rows(self, source: LanguageTexts) -> Iterator[Row]:
        for row in source:
            wanted = tuple((self._wanted.get(canonical_language(code)), text) for code, text in row if text.strip())
            left = tuple((code, text) for code, text in wanted if code is not None)
            self.others.update(code for code, _ in row if canonical_language(code) not in self._wanted)
            if left:
                self._digest.update(json.dumps(left, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                yield left

    def _check(self, there: set[str]) -> None:
        known = {canonical_language(code) for code in there}
        missing = [code for wanted, code in self._wanted.items() if wanted not in known]
        if missing and (self._every or not known & set(self._wanted)):
            found = ", ".join(sorted({*self.others, *there})) or "none"
            if not self._every:
                raise ValueError(
                    f"parity is found on text of {', '.join(missing)}: got text of {found} alone; give such text with "
                    "--parity, or leave it out."
                )
            raise ValueError(
                f"every language must have text: got none of {', '.join(missing)} (there is text of: {found}); add "
                f"--text {missing[0]}=FILE, or leave {missing[0]} out of --langs."
            )


def _signature(text: _Text, compared: _Text | None, *, min_count: int, share: float, seed: int) -> str:
    """What the figures depend on besides the source, once all text is read."""
    parts = [
        "slim",
        f"langs:{','.join(text.languages)}",
        f"min-count:{min_count}",
        f"hold-out:{share:g}",
        f"seed:{seed}",
        f"data:{text.sha8}",
        *([] if compared is None else [f"parity:{compared.sha8}"]),
        f"st-xling:{__version__}",
    ]
    return "|".join(parts)


def _compare(
    before: SentenceTransformer, after: SentenceTransformer, rows: dict[str, list[Row]], **options: Any
) -> Parity | None:
    """Parity on rows; those of two languages are pairs. Nothing where there are no rows."""
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    texts = []
    for each in rows.values():
        for row in each:
            if len(row) == 2:
                sides = pairs.setdefault("-".join(code for code, _ in row), ([], []))
                for side, (_, text) in zip(sides, row):
                    side.append(text)
            else:
                texts += [text for _, text in row]
    if not texts and not pairs:
        return None
    return parity(before, after, texts, pairs=pairs, **options)
