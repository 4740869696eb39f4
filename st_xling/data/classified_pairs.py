"""Sentence pairs with a class: XNLI and MultiNLI (inference), PAWS and PAWS-X (paraphrases)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from st_xling.data.check import FaultLog
from st_xling.data.formats import named_cells
from st_xling.utils.languages import canonical_language

XNLI_LABELS = ("entailment", "neutral", "contradiction")
PAWSX_LABELS = ("0", "1")

_COLUMNS = (
    ("sentence1", "premise"),
    ("sentence2", "hypothesis", "hypo"),
    ("gold_label", "label"),
    ("language", "lang"),
)
"""Names of the columns: first sentence, second sentence, label and, where there is one, language."""

# The machine-translated training sets of XNLI 1.0 spell contradiction otherwise; "-" means that annotators had no
# majority, and is missing from every published figure.
_XNLI: dict[str, str | None] = {
    **{label: label for label in XNLI_LABELS},
    "contradictory": "contradiction",
    "-": None,
}


@dataclass(frozen=True)
class ClassifiedPairs:
    """Pairs of one language in the order of their file.

    Attributes:
        first: Premise or first sentence of each pair.
        second: Hypothesis or second sentence, row-aligned.
        labels: Name of each pair's class, row-aligned.
        rows: Each pair's row among the language's in the file, counted from 0; skipped rows leave gaps, so that equal
            numbers mean the same item in every language of a parallel set.
        total: The language's rows in the file, including skipped ones.
    """

    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    total: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, places: Iterable[int]) -> ClassifiedPairs:
        """The pairs at ``places``."""
        chosen = list(places)
        first, second, labels = (
            [column[place] for place in chosen] for column in (self.first, self.second, self.labels)
        )
        return ClassifiedPairs(first, second, labels, [self.rows[place] for place in chosen], self.total)


def read_xnli(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Pairs of premise and hypothesis of one language: is the second entailed, contradicted, or neither?

    Reads what is published as ``xnli.test.tsv``, ``xnli.test.jsonl``, ``multinli_1.0_train.txt`` or ``.jsonl`` and
    ``multinli.train.en.tsv`` (a header or keys name the columns ``gold_label`` or ``label``, ``sentence1`` and
    ``sentence2`` or ``premise`` and ``hypo``), and lines of ``premise TAB hypothesis TAB label``, as XTREME has them;
    plain or packed. A quote is text. Rows labeled ``-`` are skipped.

    Args:
        path: The file; JSON lines if its name ends in ``.jsonl`` or ``.json``.
        language: Rows to take where a column ``language`` tells them apart; ``None``: all.
    Returns:
        Labels ``entailment``, ``neutral`` and ``contradiction``.
    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    return _read(path, "XNLI", _XNLI, None, language)


def read_pawsx(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Pairs of sentences of one language: does the second say the same as the first?

    Reads what is published (``test_2k.tsv``, ``translated_train.tsv``: columns ``id``, ``sentence1``, ``sentence2``,
    ``label``), the same as JSON lines, and lines of ``sentence TAB sentence TAB label``, as XTREME has them; plain or
    packed. A quote is text. A sentence ``NS`` was never translated: its row is skipped.

    Args, Raises: as :func:`read_xnli`.
    Returns:
        Labels ``1``, a paraphrase, and ``0``, none.
    """
    return _read(path, "PAWS-X", {label: label for label in PAWSX_LABELS}, "NS", language)


def _read(
    path: str | Path, name: str, known: Mapping[str, str | None], untranslated: str | None, language: str | None
) -> ClassifiedPairs:
    """The pairs of a file.

    Args:
        path: The file.
        name: Of the data set, for messages.
        known: Label in the file → name of the class; ``None``: such a row is skipped.
        untranslated: A sentence that marks a row to skip.
        language: Of the rows to take from a file that has a column of languages.
    """
    faults = FaultLog(can_skip=False, what=name)
    rows: list[tuple[str, str, str, int]] = []
    others, total = set(), 0
    for number, (first, second, label, code) in named_cells(path, _COLUMNS, 3, faults, any_header=True):
        if language is not None and code and canonical_language(str(code)) != canonical_language(language):
            others.add(str(code))
            continue
        row, total = total, total + 1
        spelling = str(label).strip() if isinstance(label, (str, int)) else ""
        if spelling not in known:
            faults.add(path, number, "unknown label", f"expected one of {', '.join(known)}, got {label!r}")
        elif not all(isinstance(text, str) and text.strip() for text in (first, second)):
            faults.add(path, number, "empty side", "expected two sentences")
        elif known[spelling] is not None and untranslated not in (first.strip(), second.strip()):
            rows.append((first, second, str(known[spelling]), row))
    if not rows and not faults.faults:
        there = f" in {language!r}; the file has {', '.join(sorted(others))}" if others else ""
        faults.add_beyond_repair(path, "no rows", f"expected labeled pairs{there}")
    faults.finalize()
    firsts, seconds, labels, numbers = map(list, zip(*rows))
    return ClassifiedPairs(firsts, seconds, labels, numbers, total)
