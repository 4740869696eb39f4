"""Rows of results, and tables of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Column:
    """One measure of an evaluation.

    Attributes:
        name: Head of the table.
        metric: Its id in a card's metadata; ``None`` if it does not appear there.
        percent: True if values are fractions, shown in percent.
        picture: True if the bar chart of languages shows it.
        decimals: Number of decimals in a table of plain text.
    """

    name: str
    metric: str | None = None
    percent: bool = True
    picture: bool = False
    decimals: int = 1


@dataclass(frozen=True)
class Row:
    """The results of one language, pair of languages or average.

    Attributes:
        label: Name of the row.
        values: One value for each column; ``None`` where there is none.
        average: True if it is an average over other rows.
        arguments: Entries of the metadata besides the signature, such as the threshold.
        intervals: Lower and upper end for each column; empty without intervals.
    """

    label: str
    values: list[float | None]
    average: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    intervals: list[list[float]] = field(default_factory=list)


def format_rows(head: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Format rows as a table; a line of dashes separates the averages at the end.

    Args:
        head: Head of the labels.
        columns: The measures.
        rows: Their values.

    Example:
        >>> columns = [Column("to English"), Column("pairs", percent=False, decimals=0)]
        >>> print(format_rows("language", columns, [Row("deu", [0.98, 1000]), Row("all", [0.98, None], average=True)]))
        language  to English  pairs
        deu             98.0   1000
        ---------------------------
        all             98.0      -
    """

    def cell(column: Column, value: float | None) -> str | None:
        if value is None:
            return None
        if column.percent:
            value = 100 * value
        return f"{value:.{column.decimals}f}"

    cells = [[row.label, *map(cell, columns, row.values)] for row in rows]
    averages = sum(row.average for row in rows)
    are_last = all(row.average for row in rows[len(rows) - averages :])
    summary = averages if are_last else 0
    names = [column.name for column in columns]
    return format_table([head, *names], cells, summary=summary)


def format_table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, summary: int = 0) -> str:
    """Format a table whose columns are padded to their widest cell: the first to the left, the others to the right.

    Args:
        head: Names of the columns.
        rows: Cells; floats are printed with one decimal, ``None`` as ``-``, whole numbers with thousands separators.
        summary: Rows at the end, such as averages, after a line of dashes.

    Example:
        >>> print(format_table(["language", "to en %"], [["deu", 98.04], ["all", 98.0]], summary=1))
        language  to en %
        deu          98.0
        -----------------
        all          98.0
    """

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.1f}"
        if value is None:
            return "-"
        return f"{value:,}" if isinstance(value, int) else str(value)

    table = [[str(name) for name in head]]
    for row in rows:
        table.append([cell(value) for value in row])
    widths = [max(map(len, column)) for column in zip(*table)]
    lines = []
    for label, *cells in table:
        padded = [text.rjust(width) for text, width in zip(cells, widths[1:])]
        lines.append("  ".join([label.ljust(widths[0]), *padded]))
    if summary:
        lines.insert(len(lines) - summary, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(line.rstrip() for line in lines)
