r"""Any text in one cell of a tab-separated line, and back.

===============  ==========
in the sentence  in the cell
===============  ==========
backslash        ``\\``
tab              ``\t``
line feed        ``\n``
carriage return  ``\r``
===============  ==========

Everything else stands as it is: other characters that Unicode calls line breaks end no line for our readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_PLAIN = {escape: plain for plain, escape in _ESCAPES.items()}
_TO_ESCAPE = str.maketrans(_ESCAPES)
_PLAIN_FOUND = re.compile(r"[\\\t\n\r]")
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)


def escape(text: str) -> str:
    r"""The text without tabs and line ends.

    Example:
        >>> print(escape("one\ttwo"))
        one\ttwo
    """
    # Nearly no text has any, and to look is ten times faster than to translate.
    return text.translate(_TO_ESCAPE) if _PLAIN_FOUND.search(text) else text


def unescape(cell: str) -> str:
    r"""Inverse of :func:`escape`.

    Raises:
        ValueError: On a backslash that begins none of the four escapes.
    """
    return _ESCAPED.sub(_plain, cell) if "\\" in cell else cell


def tsv_line(cells: Iterable[object]) -> str:
    """Cells as one line, without its line end; each is escaped."""
    return "\t".join(escape(str(cell)) for cell in cells)


def tsv_cells(line: str) -> list[str]:
    """Inverse of :func:`tsv_line`."""
    return [unescape(cell) for cell in line.split("\t")]


def _plain(found: re.Match[str]) -> str:
    if found[0] not in _PLAIN:
        raise ValueError(
            rf"expected a backslash to begin one of \\ \t \n \r: got {found[0]!r} at character {found.start() + 1}; "
            "this cell was not written by st-xling, so read it as it is."
        )
    return _PLAIN[found[0]]
