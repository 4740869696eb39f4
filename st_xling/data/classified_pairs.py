"""Sentence pairs with a class, as inference and paraphrase sets have them: what their readers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from st_xling.data.faults import FaultLog, read_lines
from st_xling.data.records import json_objects
from st_xling.utils.languages import canonical_language

FIRST = ("sentence1", "premise")
SECOND = ("sentence2", "hypothesis", "hypo")
LABEL = ("gold_label", "label")
LANGUAGE = ("language", "lang")


@dataclass(frozen=True)
class ClassifiedPairs:
    """Pairs of one language in the order of their file.

    Attributes:
        first: Premise or first sentence of each pair.
        second: Hypothesis or second sentence, row-aligned.
        labels: Name of each pair's class, row-aligned.
        rows: Each pair's row among the language's in the file, counted from 0; rows left out leave gaps, so that equal
            numbers mean the same item in every language of a parallel set.
        total: The language's rows in the file, those left out included.
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


@dataclass(frozen=True)
class PairFormat:
    """How one data set writes its pairs.

    Attributes:
        name: For messages.
        labels: Spelling in the file → name of the class; ``None``: such a row is left out.
        left_out: A sentence that marks a row to be left out.
    """

    name: str
    labels: Mapping[str, str | None]
    left_out: str | None = None


def read_classified(path: str | Path, form: PairFormat, language: str | None) -> ClassifiedPairs:
    """Pairs of a tab-separated file, with a header or of three columns, or of JSON lines; plain or gzipped.

    Args:
        path: The file; JSON lines if its name ends in ``.jsonl`` or ``.json`` (``.gz``).
        form: What it holds.
        language: Of the rows to take from a file that has a column of languages; ``None``: all rows.
    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    faults = FaultLog(can_skip=False, what=form.name)
    lines = read_lines(path, faults)
    json_lines = Path(str(path).removesuffix(".gz")).suffix in (".jsonl", ".json")
    cells = _json_cells(path, lines, faults) if json_lines else _tsv_cells(path, lines, faults)
    pairs, others = _collect(path, cells, form, language, faults)
    if not pairs.labels and not faults.faults:
        found = f"; the file has {', '.join(sorted(others))}" if others else ""
        faults.add_beyond_repair(path, "no rows", f"expected labelled pairs{_in(language, others)}{found}")
    faults.settle()
    return pairs


def _collect(
    path: str | Path,
    cells: Iterator[tuple[int, tuple[Any, Any, Any, Any]]],
    form: PairFormat,
    language: str | None,
    faults: FaultLog,
) -> tuple[ClassifiedPairs, set[str]]:
    kept = ClassifiedPairs()
    others: set[str] = set()
    total = 0
    for number, (first, second, label, spoken) in cells:
        if language is not None and spoken and canonical_language(str(spoken)) != canonical_language(language):
            others.add(str(spoken))
            continue
        row, total = total, total + 1
        spelling = str(label).strip() if isinstance(label, (str, int)) else ""
        if spelling not in form.labels:
            known = ", ".join(form.labels)
            faults.add(path, number, "unknown label", f"expected one of {known}, got {label!r}")
        elif not all(isinstance(text, str) and text.strip() for text in (first, second)):
            faults.add(path, number, "empty side", "expected two sentences")
        elif form.labels[spelling] is not None and form.left_out not in (first.strip(), second.strip()):
            kept.first.append(first)
            kept.second.append(second)
            kept.labels.append(str(form.labels[spelling]))
            kept.rows.append(row)
    return replace(kept, total=total), others


def _tsv_cells(
    path: str | Path, lines: Sequence[str | None], faults: FaultLog
) -> Iterator[tuple[int, tuple[Any, Any, Any, Any]]]:
    """Line number; first, second, label and, where there is a column for it, language of each row."""
    head = (lines[0] or "").split("\t") if lines else []
    places = _places(head)
    with_header = all(place is not None for place in places[:3])
    if with_header:
        width, exact = max(place for place in places if place is not None) + 1, False
    else:
        # GLUE's and the shared tasks' own files have more columns than are read, the cut ones have these three.
        places, width, exact = [0, 1, 2, None], 3, True
    for number, line in enumerate(lines, 1):
        if line is None or (number == 1 and (with_header or _names(head))):
            continue
        cells = line.split("\t")
        if len(cells) < width or (exact and len(cells) > width) or (with_header and len(cells) > len(head)):
            expected = f"{width} to {len(head)}" if with_header and len(head) > width else str(width)
            hint = "" if with_header else " (sentence TAB sentence TAB label), or a header that names the columns"
            faults.add(path, number, "bad column count", f"expected {expected}{hint}, got {len(cells)}")
            continue
        first, second, label, language = (None if place is None else cells[place] for place in places)
        yield number, (first, second, label, language)


def _json_cells(
    path: str | Path, lines: Sequence[str | None], faults: FaultLog
) -> Iterator[tuple[int, tuple[Any, Any, Any, Any]]]:
    for number, row in json_objects(path, lines, faults, 1):
        found = [next((row[name] for name in names if name in row), None) for names in _COLUMNS]
        missing = [names[0] for names, value in zip(_COLUMNS[:3], found) if value is None]
        if missing:
            faults.add(path, number, "no such key", f"expected {', '.join(missing)}, got {', '.join(row) or 'none'}")
            continue
        yield number, (found[0], found[1], found[2], found[3])


_COLUMNS = (FIRST, SECOND, LABEL, LANGUAGE)


def _places(head: Sequence[str]) -> list[int | None]:
    """Where each of :data:`_COLUMNS` is in a header; the names of a column come in the order they are tried in."""
    return [next((head.index(name) for name in names if name in head), None) for names in _COLUMNS]


def _names(head: Sequence[str]) -> bool:
    """Whether three cells are names of columns, of another order or spelling."""
    return len(head) == 3 and head[2].strip().lower() in LABEL


def _in(language: str | None, others: set[str]) -> str:
    return f" in {language!r}" if language is not None and others else ""
