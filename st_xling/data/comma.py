"""Comma-separated text: one pair a line, quotes are syntax where a line keeps to RFC 4180."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import ColumnPair, find_columns
from st_xling.data.faults import FaultLog
from st_xling.data.lines import read_lines
from st_xling.data.pairs import PairCollector
from st_xling.data.tsv import check_positions, collect_rows
from st_xling.utils.languages import resolve_pair

if TYPE_CHECKING:
    from datasets import Dataset

_QUOTED_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=,|\Z)')


def read_csv(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    r"""Pairs of a comma-separated file, plain or gzipped.

    Quotes are syntax only where RFC 4180 is kept *within a line*: a field is quoted if it begins with ``"`` and ends,
    before a comma or the end of the line, with the matching ``"``; ``""`` in it is one quote. A quote elsewhere is
    text, so ``5" pipe,5-Zoll-Rohr`` is a pair. A field that begins with a quote which its line never closes is a fault
    of that line alone: it swallows nothing. Fields that span lines are not supported; the line that would end one is a
    fault too.

    The first line is a header if it names the columns: those of ``columns``, or ``source``/``target``,
    ``src``/``tgt``, ``sentence1``/``sentence2``, or the two languages asked for or named by the file. Otherwise it is a
    pair. A header may have ``source_language`` and ``target_language`` too, which hold where no language is asked for.

    Args, Returns, Raises: as ``read_tsv``; ``columns`` may also be two names of the header.
    """
    by_name = columns is not None and isinstance(columns[0], str)
    if columns is not None and not by_name:
        check_positions(columns, path)
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    languages = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    rows = _csv_rows(path, read_lines(path, faults), faults)
    header = rows[0] if rows and rows[0] is not None else []
    found = find_columns(header, columns=columns if by_name else None, languages=languages)
    if found and found.source_language and not by_name and not any(languages):
        found = None  # two bare codes are no header unless asked for: "no,si" may well be a pair
    if by_name and found is None:
        raise ValueError(f"{path}: expected the columns {columns!r} in the header, got {header}; pass names it has")
    if by_name and found:
        # A column chosen by name states its language better than the name of the file.
        languages = (
            source_language or found.source_language or languages[0],
            target_language or found.target_language or languages[1],
        )
    elif found:
        languages = (languages[0] or found.source_language, languages[1] or found.target_language)
    pairs = PairCollector(str(path), faults, *languages)
    if found is None:
        collect_rows(rows, pairs, columns, first_line=1)
        return pairs.dataset()

    asked = {"source_language": source_language, "target_language": target_language}
    collect_rows(
        rows[1:],
        pairs,
        (header.index(found.source), header.index(found.target)) if columns is None or by_name else columns,
        first_line=2,
        width=len(header),
        language_positions=[
            header.index(name) if value is None and name in header else None for name, value in asked.items()
        ],
    )
    return pairs.dataset()


def _csv_rows(path: str | Path, lines: list[str | None], faults: FaultLog) -> list[list[str] | None]:
    rows: list[list[str] | None] = []
    opened = 0  # the line of an unclosed quote, until a later line with quotes has been seen
    for number, line in enumerate(lines, 1):
        row = None if line is None else split_csv(line)
        if line is not None and row is None:
            faults.add(path, number, "unclosed quote", "a field begins with a quote that this line does not close")
            opened = number
        elif opened and row is not None and line is not None and '"' in line:
            if any(cell.endswith('"') and cell.count('"') % 2 for cell in row) and line.count('"') % 2:
                faults.add(path, number, "unclosed quote", f"ends a field that line {opened} opened")
                row = None
            opened = 0
        rows.append(row)
    return rows


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
