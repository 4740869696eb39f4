"""Guards asked about pairs of distinct sentences, whose texts are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from st_xling.mining.guards import REASONS, CandidateBatch, GuardOptions, NeighbourCounts, PairGuards, Reject
from st_xling.mining.mine import MinedPairs


class GuardedPairs:
    """Says which pairs may stay.

    Args:
        guards: What is asked.
        sources: Texts of the source side, by place.
        targets: Texts of the target side.
        on_reject: Called with each pair that is turned down.
    """

    def __init__(
        self,
        guards: PairGuards,
        sources: Sequence[str],
        targets: Sequence[str],
        on_reject: Callable[[Reject], object] | None = None,
    ) -> None:
        self.guards, self._texts, self._on_reject = guards, (sources, targets), on_reject

    def __call__(self, pairs: MinedPairs) -> np.ndarray:
        """Booleans. *Shape:* ``(pairs,)``"""
        rows = (pairs.source_indices, pairs.target_indices)
        sources, targets = ([text[row] for row in side.tolist()] for text, side in zip(self._texts, rows))
        allowed, rejects = split_rows(self.guards, CandidateBatch(sources, targets, pairs.scores, *rows))
        if self._on_reject is not None:
            for reject in rejects:
                self._on_reject(reject)
        return allowed


def split_rows(guards: PairGuards, batch: CandidateBatch) -> tuple[np.ndarray, list[Reject]]:
    """Which candidates of a batch stay, *shape* ``(pairs,)``, and the rejects of the others, in order."""
    kept, rejects = guards.split(batch)
    # Equal pairs have equal verdicts, so that a pair says which candidate it was.
    width = int(batch.target_indices.max(initial=0)) + 1
    keys = batch.source_indices * width + batch.target_indices
    return np.isin(keys, kept.source_indices * width + kept.target_indices), rejects


def check_guards(options: GuardOptions, k: int) -> None:
    """Raise if a limit is out of its range: that should not wait for a search."""
    nothing = np.zeros(1, dtype=np.int32)
    options.build(counts=NeighbourCounts(nothing, nothing, k))


def guard_signature(options: GuardOptions, idle: Sequence[str] = ()) -> str:
    """The guards that are on, with their limits, in the order in which they look at a pair.

    Example:
        >>> guard_signature(GuardOptions(hub=None, near_copy=None, language=None))
        'copy,length_ratio=2.5,numbers'
    """
    switches = {field.name for field in fields(options) if isinstance(field.default, bool)}
    words = []
    for reason in REASONS:
        value = getattr(options, reason)
        if value is not None and value is not False and reason not in idle:
            words.append(reason if reason in switches else f"{reason}={value:g}")
    return ",".join(words) or "none"
