"""Candidates made of bare pairs of texts."""

import numpy as np

from st_xling.mining import MinedPairs
from st_xling.mining.guards import CandidateBatch, Guard, Verdict


def candidates(*pairs: tuple[str, str]) -> CandidateBatch:
    """Row ``i`` of one side with row ``i`` of the other, the score falling from 2."""
    rows = np.arange(len(pairs))
    return CandidateBatch(MinedPairs(2 - rows / 100, rows, rows), *([pair[side] for pair in pairs] for side in (0, 1)))


def verdicts(guard: Guard, *pairs: tuple[str, str]) -> list[Verdict | None]:
    """What a guard says of pairs."""
    return guard.check(candidates(*pairs))
