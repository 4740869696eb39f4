"""Names that data sets do not share."""

from __future__ import annotations

from collections.abc import Container


def free_name(name: str, taken: Container[str]) -> str:
    """``name``, or the first of ``name-2``, ``name-3``, … that is not taken.

    Example:
        >>> free_name("de-en", {"de-en", "de-en-2"})
        'de-en-3'
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
