"""A histogram of scores in plain text, with what share of them a threshold keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

BINS = 10

_BAR_CHARS = 30


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts of scores in ten bins.

    With a threshold between the lowest and the highest score, a bin begins at it, so that each is kept or dropped as a
    whole; the bins below it are equally wide, and so are those above.

    Attributes:
        edges: Edges of the bins, ascending; empty without finite scores. A bin has its lower edge, the last one both.
        counts: Number of scores in each bin.
        threshold: Minimum score of what is kept; ``None`` if all are.
        undefined: Number of scores that are not finite, which no threshold keeps.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    threshold: float | None
    undefined: int = 0

    @classmethod
    def of(cls, scores: ArrayLike, threshold: float | None = None) -> ScoreHistogram:
        """Count scores."""
        values = np.asarray(scores, dtype=np.float64)
        finite = values[np.isfinite(values)]
        undefined = len(values) - len(finite)
        if not len(finite):
            return cls((), (), threshold, undefined)
        low = float(finite.min())
        high = float(finite.max())
        edges = np.linspace(low, high, BINS + 1)
        if low == high:
            edges = np.array([low, high])
        elif threshold is not None and low < threshold <= high:
            below = round((threshold - low) / (high - low) * BINS)
            below = min(max(below, 1), BINS - 1)
            edges = np.concatenate(
                [np.linspace(low, threshold, below, endpoint=False), np.linspace(threshold, high, BINS - below + 1)]
            )
        # By the rule that keeps pairs, not numpy's: an edge belongs to the bin above it, whatever rounding does.
        reaching = [int((finite >= edge).sum()) for edge in edges[:-1]]
        counts = -np.diff([*reaching, 0])
        return cls(tuple(edges.tolist()), tuple(counts.tolist()), threshold, undefined)

    @property
    def total(self) -> int:
        """Number of scores, with those that are not finite."""
        return sum(self.counts) + self.undefined

    @property
    def kept(self) -> int:
        """Number of scores that the threshold keeps."""
        if self.threshold is None:
            return self.total
        return sum(count for edge, count in zip(self.edges, self.counts) if edge >= self.threshold)

    def as_dict(self) -> dict[str, Any]:
        """Return edges, counts, and how many scores are kept and dropped, for JSON."""
        shares = {"kept": self.kept, "dropped": self.total - self.kept}
        return {"edges": list(self.edges), "counts": list(self.counts), **shares}

    def lines(self) -> list[str]:
        """Draw the histogram, best scores first, in lines of at most 80 characters."""
        drawn = []
        most = max(self.counts, default=0)
        for row in reversed(range(len(self.counts))):
            count = self.counts[row]
            bar = "#" * math.ceil(_BAR_CHARS * count / most) if count else ""
            scores = f"{self.edges[row]:8.4f} to {self.edges[row + 1]:8.4f}"
            fate = ""
            if self.threshold is not None:
                fate = "  kept" if self.edges[row] >= self.threshold else "  dropped"
            drawn.append(f"{scores} {bar:{_BAR_CHARS}} {count:8,} {count / self.total:4.0%}{fate}".rstrip())
        if self.undefined:
            drawn.append(f"{self.undefined:,} without a score")
        return drawn
