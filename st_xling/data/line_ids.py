"""Ids at the beginning of lines, which would be embedded and trained on as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from st_xling.utils.text import ParallelTextError, is_blank

# An id and a tab, or only an id: one word with a digit, such as de-000001, or a verse, such as GEN 1:1 or 2 Kor 3,4.
_ID = re.compile(r"(?:(?=\S{0,63}\d)\S{1,64}|(?:[1-4]\.?\s?)?[^\W\d_]{2,16}\.?\s\d{1,3}[:,.]\d{1,3})(?:\t|$)")

# Fewest lines by which ids are recognized, and most ids that are kept to see whether they differ.
_FEWEST_IDS = 5
_COMPARED_IDS = 1000

NEARLY_ALL = 0.95
"""Share of lines that must have ids."""


class LineIds:
    """Counts lines that begin with an id and a tab, or that are ids: one word with a digit.

    Attributes:
        lines: Number of lines that are not blank.
        with_ids: Number of them that begin with an id, or are one.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.with_ids = 0
        self._first: list[str] = []

    def add(self, line: str) -> None:
        """Count a line, unless it is blank."""
        if is_blank(line):
            return
        self.lines += 1
        if match := _ID.match(line):
            self.with_ids += 1
            if len(self._first) < _COMPARED_IDS:
                self._first.append(match[0].rstrip("\t"))

    @property
    def example(self) -> str | None:
        """The first id, if nearly every line has one, and they differ as ids do; otherwise ``None``."""
        are_many = self.lines >= _FEWEST_IDS and self.with_ids >= NEARLY_ALL * self.lines
        # Words such as "2024" at the beginning of every line are no ids.
        if not are_many or len({*self._first}) < NEARLY_ALL * len(self._first):
            return None
        return self._first[0]


def check_no_ids(texts: Iterable[str], where: str) -> None:
    """Raise :class:`ParallelTextError` if nearly all of some texts begin with ids, or are ids."""
    ids = LineIds()
    for text in texts:
        ids.add(text)
    if (example := ids.example) is not None:
        raise ParallelTextError(
            f"{where}: {ids.with_ids:,} of {ids.lines:,} texts are ids or begin with one, such as {example!r}; choose "
            "the columns of the sentences (?columns=1,2), or cut the ids off."
        )
