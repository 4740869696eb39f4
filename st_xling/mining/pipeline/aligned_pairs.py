"""Make pairs of the groups of aligned documents: check them, join neighbors to paragraphs, and show them on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from st_xling.data.pair_page import PageGroup, PageLine
from st_xling.mining.documents import SentenceGroup
from st_xling.mining.filters import PairFilters, RejectedPair
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.utils.options import check_number

#: Why a group is no pair, where no filter rejects it.
UNPAIRED = "no partner"
BELOW = "below the minimum score"


@dataclass(frozen=True)
class CheckedGroup:
    """A group of an aligned document, or neighboring groups that are one pair.

    Attributes:
        source: Rows of its lines in the source document.
        target: Rows of its lines in the target document.
        score: Its score; of several groups the lowest.
        problem: Why it is no pair: :data:`UNPAIRED`, :data:`BELOW`, or the reason code of a filter; ``None`` if it is.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float
    problem: str | None = None


class AlignedTexts:
    """Lines of an aligned document and its translation.

    Args:
        source_lines: Lines of the document.
        target_lines: Lines of its translation.
        prefixes: What stands before the number of a line in its id, for source and target.
        line_ids: Ids of lines that have others than their numbers, for source and target.
    """

    def __init__(
        self,
        source_lines: Sequence[str],
        target_lines: Sequence[str],
        prefixes: tuple[str, str] = ("", ""),
        line_ids: tuple[Sequence[str], Sequence[str]] = ((), ()),
    ) -> None:
        self._source_lines = source_lines
        self._target_lines = target_lines
        self._prefixes = prefixes
        self._source_ids = line_ids[0] or [str(row + 1) for row in range(len(source_lines))]
        self._target_ids = line_ids[1] or [str(row + 1) for row in range(len(target_lines))]

    def ids(self, group: CheckedGroup) -> tuple[list[str], list[str]]:
        """Return the ids of the lines of a group on either side: their numbers from 1, unless they have others."""
        source_prefix, target_prefix = self._prefixes
        source_ids = [f"{source_prefix}{self._source_ids[row]}" for row in group.source]
        target_ids = [f"{target_prefix}{self._target_ids[row]}" for row in group.target]
        return source_ids, target_ids

    def texts(self, group: CheckedGroup) -> tuple[str, str]:
        """Return the texts of a group, its lines joined by spaces."""
        source = " ".join(self._source_lines[row] for row in group.source)
        target = " ".join(self._target_lines[row] for row in group.target)
        return source, target

    def page_group(self, group: CheckedGroup) -> PageGroup:
        """Return a group as a page shows it."""
        source = [PageLine(self._source_ids[row], self._source_lines[row]) for row in group.source]
        target = [PageLine(self._target_ids[row], self._target_lines[row]) for row in group.target]
        score = group.score if group.source and group.target else None
        return PageGroup(source, target, score, group.problem)


def check_groups(
    groups: Sequence[SentenceGroup],
    texts: AlignedTexts,
    *,
    min_score: float | None,
    filters: PairFilters,
    log: IO[bytes],
) -> list[CheckedGroup]:
    """Find out which groups of a document are pairs.

    Args:
        groups: Groups of the document, in order.
        texts: Its lines and those of its translation.
        min_score: Minimum score of a pair.
        filters: Enabled filters.
        log: Stream for the pairs that filters reject, as JSON lines.
    """
    checked: list[CheckedGroup] = []
    for group in groups:
        problem = None
        if not group.source or not group.target:
            problem = UNPAIRED
        elif min_score is not None and group.score < min_score:
            problem = BELOW
        checked.append(CheckedGroup(group.source, group.target, group.score, problem))

    numbers = [number for number, group in enumerate(checked) if group.problem is None]
    sources: list[str] = []
    targets: list[str] = []
    for number in numbers:
        source, target = texts.texts(checked[number])
        sources.append(source)
        targets.append(target)

    def on_reject(pair: RejectedPair) -> None:
        number = numbers[pair.source_index]
        rejected = checked[number]
        log.write(pair.as_json(*texts.ids(rejected)))
        checked[number] = CheckedGroup(rejected.source, rejected.target, rejected.score, pair.reason)

    rows = np.arange(len(numbers))
    scores = np.array([checked[number].score for number in numbers])
    filters.allowed(MinedPairs(scores, rows, rows), sources, targets, on_reject)
    return checked


def check_merge_to(merge_to: int | None) -> None:
    """Raise ``ValueError`` for a number of characters that no pair could have."""
    check_number("merge_to", merge_to, least=1)


def merge_groups(groups: Sequence[CheckedGroup], texts: AlignedTexts, max_chars: int) -> list[CheckedGroup]:
    """Join neighboring pairs of a document to longer ones, from the first on, as long as both sides have room.

    What is no pair is not joined, and ends a paragraph: text would be missing in it, on one side or on both.

    Args:
        groups: Groups of the document, in order.
        texts: Its lines and those of its translation.
        max_chars: Maximum number of characters of either side. A longer group remains as it is.
    """
    merged: list[CheckedGroup] = []
    for group in groups:
        if merged and merged[-1].problem is None and group.problem is None:
            last = merged[-1]
            joined = CheckedGroup(last.source + group.source, last.target + group.target, min(last.score, group.score))
            if max(map(len, texts.texts(joined))) <= max_chars:
                merged[-1] = joined
                continue
        merged.append(group)
    return merged
