"""How mined pairs score, correct ones and others: few enough numbers to be kept with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from st_xling.evaluation.mining_scores import JudgedPairs

BINS = 40


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts of candidate pairs by score.

    Attributes:
        low: Score at which the first bin begins.
        high: Score at which the last one ends; it is part of it.
        correct: Pairs in the gold, a bin each.
        wrong: The others.
    """

    low: float
    high: float
    correct: tuple[int, ...]
    wrong: tuple[int, ...]

    @classmethod
    def of(cls, pairs: JudgedPairs, *, bins: int = BINS) -> ScoreHistogram | None:
        """Of judged pairs; ``None`` if there are none."""
        if not len(pairs.scores):
            return None
        low, high = float(pairs.scores.min()), float(pairs.scores.max())
        edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
        correct, wrong = (
            tuple(np.histogram(pairs.scores[rows], bins=edges)[0].tolist())
            for rows in (pairs.is_correct, ~pairs.is_correct)
        )
        return cls(float(edges[0]), float(edges[-1]), correct, wrong)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"low": self.low, "high": self.high, "correct": list(self.correct), "wrong": list(self.wrong)}
