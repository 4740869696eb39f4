"""Tab- and comma-separated text: one pair a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from st_xling.data.faults import FaultLog, iter_lines
from st_xling.data.pairs import PairRow, is_pair
from st_xling.data.records import ColumnPair, Languages, find_columns
from st_xling.utils.languages import UNKNOWN, resolve_pair

Cells = tuple[int, "list[str] | None"]
"""Number and cells of a line; no cells where its fault is noted already."""

_QUOTED_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=,|\Z)')


def tsv_rows(faults: FaultLog, path: str, languages: Languages, columns: ColumnPair | None) -> Iterator[PairRow]:
    """The pairs of ``source TAB target`` lines, as ``read_tsv`` says."""
    if columns is not None:
        _check_positions(columns, path)
    defaults = resolve_pair(path, *languages, swapped_on_purpose=columns is not None)
    lines = enumerate(iter_lines(path, faults), 1)
    cells = ((number, None if line is None else line.split("\t")) for number, line in lines)
    return _chosen_cells(cells, faults, path, defaults, columns)


def csv_rows(faults: FaultLog, path: str, languages: Languages, columns: ColumnPair | None) -> Iterator[PairRow]:
    """The pairs of a comma-separated file, as ``read_csv`` says."""
    by_name = columns is not None and isinstance(columns[0], str)
    if columns is not None and not by_name:
        _check_positions(columns, path)
    defaults = resolve_pair(path, *languages, swapped_on_purpose=columns is not None)
    lines = _csv_cells(path, faults)
    first = next(lines, (1, None))
    header = first[1] or []
    named = find_columns(header, columns=columns if by_name else None, languages=defaults)
    if named and named.source_language and not by_name and not any(defaults):
        named = None  # two bare codes are no header unless asked for: "no,si" may well be a pair
    if named is None:
        if by_name:
            raise ValueError(f"{path}: expected the columns {columns!r} in the header, got {header}; pass names it has")
        yield from _chosen_cells(chain([first], lines), faults, path, defaults, columns)
        return
    # A column chosen by name states its language better than the name of the file.
    preferred = (languages, named.languages, defaults) if by_name else (defaults, named.languages)
    source, target = (next(filter(None, codes), None) for codes in zip(*preferred))
    yield from _chosen_cells(
        lines,
        faults,
        path,
        (source, target),
        (header.index(named.source), header.index(named.target)) if columns is None or by_name else columns,
        width=len(header),
        language_positions=[
            header.index(name) if code is None and name in header else None
            for name, code in zip(("source_language", "target_language"), languages)
        ],
    )


def split_csv(line: str) -> list[str] | None:
    """The fields of one CSV line by the rule of ``read_csv``, or ``None`` if a field's opening quote is never closed.

    Example:
        >>> split_csv('"a, b",5" pipe')
        ['a, b', '5" pipe']
    """
    if '"' not in line:
        return line.split(",")
    fields, start = [], 0
    while start <= len(line):
        quoted = _QUOTED_FIELD.match(line, start)
        if quoted:
            fields.append(quoted[1].replace('""', '"'))
            start = quoted.end() + 1
        elif line.startswith('"', start):
            return None
        else:
            end = line.find(",", start)
            end = len(line) if end < 0 else end
            fields.append(line[start:end])
            start = end + 1
    return fields


def _csv_cells(path: str, faults: FaultLog) -> Iterator[Cells]:
    opened = 0  # the line of an unclosed quote, until a later line with quotes has been seen
    for number, line in enumerate(iter_lines(path, faults), 1):
        row = None if line is None else split_csv(line)
        if line is not None and row is None:
            faults.add(path, number, "unclosed quote", "a field begins with a quote that this line does not close")
            opened = number
        elif opened and row is not None and line is not None and '"' in line:
            if any(cell.endswith('"') and cell.count('"') % 2 for cell in row) and line.count('"') % 2:
                faults.add(path, number, "unclosed quote", f"ends a field that line {opened} opened")
                row = None
            opened = 0
        yield number, row


def _chosen_cells(
    lines: Iterable[Cells],
    faults: FaultLog,
    path: str,
    languages: Languages,
    positions: ColumnPair | None,
    *,
    width: int | None = None,
    language_positions: Sequence[int | None] = (None, None),
) -> Iterator[PairRow]:
    """The chosen cells of every line that has two sentences there.

    Args:
        lines: From the first pair on.
        faults: Where faulty lines are noted.
        path: The file, for messages.
        languages: Of rows that do not say their own.
        positions: Columns of source and target, counted from 0; ``None`` for the first two of exactly two.
        width: How many columns every row must have, where a header says so.
        language_positions: Columns of the two languages of a row, where it has such.
    """
    source, target = (int(position) for position in positions or (0, 1))
    expected = width or (None if positions else 2)
    at_least = max(source, target) + 1
    defaults = tuple(code or UNKNOWN for code in languages)
    for number, row in lines:
        if row is None:
            continue
        if len(row) != expected if expected is not None else len(row) < at_least:
            wanted = f"at least {at_least}" if expected is None else str(expected)
            faults.add(path, number, "wrong column count", f"expected {wanted}, got {len(row)}")
        elif is_pair(faults, path, number, row[source], row[target]):
            one, other = (
                code if place is None else row[place] or code for code, place in zip(defaults, language_positions)
            )
            yield row[source], row[target], one, other


def _check_positions(columns: ColumnPair, path: str | Path) -> None:
    if len(set(columns)) != 2 or not all(isinstance(column, int) and column >= 0 for column in columns):
        raise ValueError(
            f"columns of {path} must be two different positions counted from 0, got {columns!r}; pass e.g. (0, 1)"
        )
