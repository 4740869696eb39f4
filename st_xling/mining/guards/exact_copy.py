"""Guard ``copy``: both sides are the same text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from st_xling.mining.guards.candidates import CandidateBatch, Verdict


@dataclass(frozen=True)
class CopyGuard:
    """Turns down a pair whose sides have the same letters, marks and digits, in the same order.

    Compared are :func:`~st_xling.mining.guards.letter_key` of both sides, so that case, width, spacing and punctuation
    do not hide a copy. Two sides without any letter or digit ("…" and "!!!") are equal too: they translate nothing.
    A copy gets a cosine near 1 from any encoder and would lead every list of mined pairs. It has no option: a copy is
    one or is not.
    """

    reason: ClassVar[str] = "copy"

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        return [Verdict(1.0, None) if source == target else None for source, target in zip(*batch.letters)]
