"""Ids at the beginning of lines, which would be embedded and trained on as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from st_xling.utils.text import ParallelTextError, is_blank

# An id and a tab, or an id alone: one word with a digit, such as de-000001.
_ID = re.compile(r"(?=\S{0,63}\d)\S{1,64}(?:\t|$)")
_FEWEST_IDS, _COMPARED_IDS = 5, 1000

NEARLY_ALL = 0.95
"""Share of lines that must have ids."""


class LineIds:
    """Counts lines that begin with an id and a tab, or that are ids: one word with a digit."""

    def __init__(self) -> None:
        self.lines = self.found = 0
        self._first: list[str] = []

    def add(self, line: str) -> None:
        """Count a line, unless it is blank."""
        if is_blank(line):
            return
        self.lines += 1
        if match := _ID.match(line):
            self.found += 1
            if len(self._first) < _COMPARED_IDS:
                self._first.append(match[0].rstrip("\t"))

    @property
    def example(self) -> str | None:
        """The first id, if nearly every line has one, and they differ as ids do; otherwise ``None``."""
        are_many = self.lines >= _FEWEST_IDS and self.found >= NEARLY_ALL * self.lines
        return self._first[0] if are_many and len({*self._first}) >= NEARLY_ALL * len(self._first) else None


def check_no_ids(texts: Iterable[str], where: str) -> None:
    """Raise :class:`ParallelTextError` if nearly all of some texts begin with ids, or are ids."""
    ids = LineIds()
    for text in texts:
        ids.add(text)
    if (example := ids.example) is not None:
        raise ParallelTextError(
            f"{where}: {ids.found:,} of {ids.lines:,} texts are ids or begin with one, such as {example!r}; choose the "
            "columns of the sentences (?columns=1,2), or cut the ids off."
        )
