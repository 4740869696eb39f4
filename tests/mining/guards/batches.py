"""Candidates made of bare pairs of texts."""

from st_xling.mining.guards import Candidate, Guard, Verdict, candidate_batches


def candidates(*pairs: tuple[str, str]) -> list[Candidate]:
    """Row ``i`` of one side with row ``i`` of the other, the score falling from 2."""
    return [Candidate(source, target, 2 - row / 100, row, row) for row, (source, target) in enumerate(pairs)]


def verdicts(guard: Guard, *pairs: tuple[str, str]) -> list[Verdict | None]:
    """What a guard says of pairs."""
    (batch,) = candidate_batches(candidates(*pairs))
    return guard.check(batch)
