"""All guards over a stream of candidate pairs: what stays, what goes, and why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from st_xling.mining.guards.candidates import Candidate, CandidateBatch, candidate_batches
from st_xling.mining.guards.hub import NeighbourCounts
from st_xling.mining.guards.options import REASONS, GuardOptions
from st_xling.mining.guards.rejects import Reject
from st_xling.mining.mine import MinedPairs

logger = logging.getLogger(__name__)


class PairGuards:
    """Applies the guards that are on, cheapest first; a pair that one turns down is not shown to the next.

    A verdict depends on the pair alone (and the neighbour counts), so order and batches change nothing. Guards that are
    on but cannot work are named in one warning.

    Args:
        options: Which guards are on.
        counts: Neighbour counts, for the hub guard.
    Attributes:
        idle: Reason code to why its guard cannot work.
        counts: Pairs seen so far by outcome: ``"kept"`` and reason codes.
    """

    def __init__(self, options: GuardOptions | None = None, *, counts: NeighbourCounts | None = None) -> None:
        self.guards, self.idle = (options or GuardOptions()).build(counts=counts)
        self.counts: Counter[str] = Counter()
        if self.idle:
            reasons = "; ".join(f"{reason}: {why}" for reason, why in self.idle.items())
            logger.warning("guards that do not look at every pair: %s", reasons)

    @property
    def rejected(self) -> dict[str, int]:
        """Pairs turned down so far, by the reason codes that occurred, in the order in which guards look."""
        return {reason: self.counts[reason] for reason in REASONS if self.counts[reason]}

    def split(self, batch: CandidateBatch) -> tuple[CandidateBatch, list[Reject]]:
        """The candidates that stay, and those that go, both in the order they came in."""
        rejects: dict[int, Reject] = {}
        rows = np.arange(len(batch))
        left = batch
        for guard in self.guards:
            if not len(left):
                break
            verdicts = guard.check(left)
            turned_down = np.fromiter((verdict is not None for verdict in verdicts), dtype=bool, count=len(left))
            if not turned_down.any():
                continue
            for place in np.flatnonzero(turned_down).tolist():
                verdict = verdicts[place]
                assert verdict is not None
                row = int(rows[place])
                rejects[row] = Reject(guard.reason, _candidate(batch, row), verdict)
            stay = np.flatnonzero(~turned_down)
            rows, left = rows[stay], left.select(stay.tolist())
        self.counts.update(reject.reason for reject in rejects.values())
        self.counts["kept"] += len(left)
        return left, [rejects[row] for row in sorted(rejects)]

    def filter(
        self,
        candidates: Iterable[Candidate],
        *,
        on_reject: Callable[[Reject], object] | None = None,
        batch_pairs: int = 8192,
    ) -> Iterator[Candidate]:
        """The candidates that stay, from a stream of any length; one batch is in memory at a time.

        Args:
            candidates: In any order, which is kept.
            on_reject: Called with each reject, such as ``RejectsFile.write``.
            batch_pairs: Pairs looked at together; memory, never the result, depends on it.
        """
        for batch in candidate_batches(candidates, batch_pairs=batch_pairs):
            kept, rejects = self.split(batch)
            if on_reject is not None:
                for reject in rejects:
                    on_reject(reject)
            for row in range(len(kept)):
                yield _candidate(kept, row)

    def filter_mined(
        self,
        pairs: MinedPairs,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        on_reject: Callable[[Reject], object] | None = None,
        batch_pairs: int = 8192,
    ) -> MinedPairs:
        """The mined pairs that stay, best first as before.

        Args:
            pairs: What :func:`~st_xling.mining.mine` found.
            sources: Texts of the source side; anything that gives the text of a row.
            targets: Texts of the target side.
            on_reject: Called with each reject.
            batch_pairs: Pairs looked at together.
        """
        kept = []
        for start in range(0, len(pairs), batch_pairs):
            rows = slice(start, start + batch_pairs)
            left, rejects = self.split(_with_texts(pairs.select(rows), sources, targets))  # type: ignore[arg-type]
            if on_reject is not None:
                for reject in rejects:
                    on_reject(reject)
            kept.append((left.scores, left.source_indices, left.target_indices))
        return MinedPairs(*(np.concatenate(column) for column in zip(*kept))) if kept else pairs


def _with_texts(pairs: MinedPairs, sources: Sequence[str], targets: Sequence[str]) -> CandidateBatch:
    return CandidateBatch(
        [sources[row] for row in pairs.source_indices.tolist()],
        [targets[row] for row in pairs.target_indices.tolist()],
        pairs.scores,
        pairs.source_indices,
        pairs.target_indices,
    )


def _candidate(batch: CandidateBatch, row: int) -> Candidate:
    return Candidate(
        batch.sources[row],
        batch.targets[row],
        float(batch.scores[row]),
        int(batch.source_indices[row]),
        int(batch.target_indices[row]),
    )
