"""What guards look at and what they answer: batches of candidate pairs, and verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from st_xling.mining.guards.letters import letter_key


class Candidate(NamedTuple):
    """One pair that mining proposes: two texts, their score (unit of the margin), and their rows in the two heaps."""

    source: str
    target: str
    score: float
    source_index: int
    target_index: int


class Verdict(NamedTuple):
    """Why a guard turns a pair down.

    Attributes:
        value: What was measured, as JSON can write it.
        limit: What it was measured against; ``None`` where a guard has no limit.
    """

    value: Any
    limit: float | None


@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """Some candidates, as columns.

    Attributes:
        sources, targets: Texts. *Length:* ``pairs``
        scores: float64. *Shape:* ``(pairs,)``
        source_indices, target_indices: Rows of the two heaps, int64. *Shape:* ``(pairs,)``
    """

    sources: list[str]
    targets: list[str]
    scores: np.ndarray
    source_indices: np.ndarray
    target_indices: np.ndarray

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def letters(self) -> tuple[list[str], list[str]]:
        """The :func:`letter_key` of every text, source side and target side."""
        return [letter_key(text) for text in self.sources], [letter_key(text) for text in self.targets]

    def select(self, rows: Sequence[int]) -> CandidateBatch:
        """The candidates at ``rows``, in that order; letters that are known already are taken along."""
        index = np.asarray(rows, dtype=np.int64)
        some = CandidateBatch(
            [self.sources[row] for row in rows],
            [self.targets[row] for row in rows],
            self.scores[index],
            self.source_indices[index],
            self.target_indices[index],
        )
        if "letters" in self.__dict__:
            some.__dict__["letters"] = tuple([side[row] for row in rows] for side in self.letters)
        return some


class Guard(Protocol):
    """Turns pairs down for one reason.

    Attributes:
        reason: The code that rejects carry.
    """

    reason: ClassVar[str]

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        """One verdict a pair, ``None`` for a pair that may stay. Depends on nothing but the pair itself."""
        ...


def candidate_batches(candidates: Iterable[Candidate], *, batch_pairs: int = 8192) -> Iterator[CandidateBatch]:
    """Cut a stream of candidates into batches, in order; one batch is in memory at a time.

    Args:
        candidates: Any iterable, of any length.
        batch_pairs: Pairs a batch; memory, never a verdict, depends on it.
    Raises:
        ValueError: If ``batch_pairs`` is below 1.
    """
    if batch_pairs < 1:
        raise ValueError(f"batch_pairs must be at least 1: got {batch_pairs}; 8192 is the usual choice.")
    stream = iter(candidates)
    while rows := list(islice(stream, batch_pairs)):
        sources, targets, scores, source_indices, target_indices = zip(*rows)
        yield CandidateBatch(
            list(sources),
            list(targets),
            np.asarray(scores, dtype=np.float64),
            np.asarray(source_indices, dtype=np.int64),
            np.asarray(target_indices, dtype=np.int64),
        )
