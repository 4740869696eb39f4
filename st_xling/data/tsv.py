"""Tab-separated text: one pair a line, quotes are text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import ColumnPair
from st_xling.data.faults import FaultLog
from st_xling.data.lines import read_lines
from st_xling.data.pairs import PairCollector
from st_xling.utils.languages import resolve_pair

if TYPE_CHECKING:
    from datasets import Dataset


def read_tsv(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a file of ``source TAB target`` lines, plain or gzipped.

    Quotes and backslashes are text, and no header is assumed. Without ``columns`` every line must have exactly two
    columns; with it, at least as many as it reaches.

    Args:
        path: The file.
        source_language: Language of the source side; else from a name like ``de-en.tsv``; else ``"und"``.
        target_language: The same, of the target side.
        columns: Positions of source and target, counted from 0.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
        ValueError: If ``columns`` are not two positions.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    pairs = tsv_collector(path, faults, source_language, target_language, columns)
    collect_lines(read_lines(path, faults), pairs, columns)
    return pairs.dataset()


def tsv_collector(
    path: str | Path,
    faults: FaultLog,
    source_language: str | None,
    target_language: str | None,
    columns: ColumnPair | None,
) -> PairCollector:
    """What takes the pairs of the file; raises as ``read_tsv`` for columns and languages."""
    if columns is not None:
        check_positions(columns, path)
    languages = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    return PairCollector(str(path), faults, *languages)


def collect_lines(
    lines: Sequence[str | None], pairs: PairCollector, columns: ColumnPair | None, *, first_line: int = 1
) -> None:
    """Add the pairs of tab-separated lines; ``None`` is a line whose fault is noted already."""
    rows = [None if line is None else line.split("\t") for line in lines]
    collect_rows(rows, pairs, columns, first_line=first_line)


def collect_rows(
    rows: list[list[str] | None],
    pairs: PairCollector,
    positions: ColumnPair | None,
    *,
    first_line: int,
    width: int | None = None,
    language_positions: Sequence[int | None] = (None, None),
) -> None:
    """Add the chosen cells of every row to ``pairs``.

    Args:
        rows: The cells of each line; ``None`` for a line whose fault is noted already.
        pairs: Where the pairs go.
        positions: Columns of source and target, counted from 0; ``None`` for the first two of exactly two.
        first_line: Number of the first row's line in the file.
        width: How many columns every row must have, where a header says so.
        language_positions: Columns of the two languages of a row, where it has such.
    """
    source, target = (int(position) for position in positions or (0, 1))
    expected = width or (None if positions else 2)
    at_least = max(source, target) + 1
    for number, row in enumerate(rows, first_line):
        if row is None:
            continue
        if len(row) != expected if expected is not None else len(row) < at_least:
            wanted = f"at least {at_least}" if expected is None else str(expected)
            pairs.faults.add(pairs.where, number, "wrong column count", f"expected {wanted}, got {len(row)}")
            continue
        languages = (None if position is None else row[position] for position in language_positions)
        pairs.add(number, row[source], row[target], *languages)


def check_positions(columns: ColumnPair, path: str | Path) -> None:
    """Refuse anything but two different positions counted from 0, with a ``ValueError``."""
    if len(set(columns)) != 2 or not all(isinstance(column, int) and column >= 0 for column in columns):
        raise ValueError(
            f"columns of {path} must be two different positions counted from 0, got {columns!r}; pass e.g. (0, 1)"
        )
