"""Results as a table of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def format_table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, decimals: int = 1, summary: int = 0) -> str:
    """Columns padded to their widest cell: the first to the left, the others to the right.

    Args:
        head: Names of the columns.
        rows: Cells; floats are printed with ``decimals``, ``None`` as ``-``, whole numbers with thousands separators.
        decimals: Of floats.
        summary: Rows at the end, such as averages, before which stands a line of dashes.

    Example:
        >>> print(format_table(["language", "to en %"], [["deu", 98.04], ["all", 98.0]], summary=1))
        language  to en %
        deu          98.0
        -----------------
        all          98.0
    """

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.{decimals}f}"
        return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    table = [list(map(str, head)), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    lines = [
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths))
        )
        for row in table
    ]
    if summary:
        lines.insert(len(lines) - summary, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(line.rstrip() for line in lines)
