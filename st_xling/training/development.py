"""Development scores as they may be read: of how many pairs, and with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

FEWEST_STEPS = 20
"""A run of fewer optimizer steps is too short to judge the model by."""


@dataclass(frozen=True)
class DevelopmentScore:
    """A score in [0, 1] on development text: accuracy, or a mean of reciprocal ranks.

    Attributes:
        value: The score.
        rows: Number of pairs or queries that it is the mean of.
        unit: ``"pairs"`` or ``"queries"``.

    Example:
        >>> print(DevelopmentScore(0.6, 5, "pairs"))
        60.0 % of 5 pairs (95 % interval 23.1 to 88.2)
    """

    value: float
    rows: int
    unit: str = "pairs"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        r"""Wilson's score interval.

        .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

        Exact for the share of correct ones among ``rows``. A mean over languages or directions, or of other values in
        [0, 1], varies no more than such a share, so that the interval is at most too wide; only languages of very
        different size make it too narrow.

        Args:
            confidence: Probability that it contains the true score.

        Returns:
            Lower and upper limit, in [0, 1].

        Source:
            Wilson 1927, Probable Inference, the Law of Succession, and Statistical Inference.
        """
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        n = self.rows
        p = self.value
        center = p + z**2 / (2 * n)
        spread = z * math.sqrt(max(0.0, p * (1 - p)) / n + z**2 / (4 * n**2))
        scale = 1 + z**2 / n
        return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)

    def facts(self) -> dict[str, Any]:
        """Return rows, unit and interval, for ``results.json``."""
        low, high = self.interval()
        return {"dev_rows": self.rows, "dev_unit": self.unit, "dev_low": low, "dev_high": high}

    def __str__(self) -> str:
        low, high = self.interval()
        interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
        unit = self.unit
        if self.rows == 1:
            unit = {"pairs": "pair", "queries": "query"}.get(unit, unit)
        return f"{100 * self.value:.1f} % of {self.rows:,} {unit} ({interval})"


def development_score(value: float | None, evaluator: Any) -> DevelopmentScore | None:
    """Return a score of an evaluator with the number of its pairs or queries.

    Args:
        value: The score; ``None`` without one.
        evaluator: One of ours; of others the number is not known.

    Returns:
        ``None`` without a score in [0, 1], or without a number.
    """
    rows, unit = _count_rows(evaluator)
    if value is None or not rows or not 0 <= value <= 1:
        return None
    return DevelopmentScore(value, rows, unit)


def best_metric(evaluator: Any) -> str | None:
    """Return the name of an evaluator's metric that chooses a checkpoint, as a trainer logs it.

    Args:
        evaluator: An evaluator, ours or of sentence-transformers, or a list of them; ``None``: none.
    """
    if evaluator is None:
        return None
    # Some of ST's evaluators name their metric, or put their name before it, only when they are first called.
    metric = getattr(evaluator, "primary_metric", None) or "sequential_score"
    prefix = f"{getattr(evaluator, 'name', '')}_"
    if prefix == "_" or metric.startswith(prefix):
        return f"eval_{metric}"
    return f"eval_{prefix}{metric}"


def _count_rows(evaluator: Any) -> tuple[int, str]:
    """Return the number of pairs or queries of an evaluator, 0 if it is not one of ours, and their unit."""
    pairs = getattr(evaluator, "pairs", None)
    # An evaluator of retrieval has pools, too, of passages: its sets come first.
    if sets := getattr(evaluator, "sets", ()):
        count = 0
        for retrieval_set in sets:
            count += sum(map(len, retrieval_set.queries.values()))
        return count, "queries"
    if pools := getattr(evaluator, "pools", ()):
        return len(pools), "queries"
    if isinstance(pairs, Mapping):
        return sum(len(source) for source, _ in pairs.values()), "pairs"
    return 0, "pairs"


def steps_and_time(steps: int, seconds: float) -> str:
    """``"1 step in 3 s, too short to judge"``, ``"200 steps in 80 s"``."""
    words = f"{steps:,} step{'s' * (steps != 1)} in {seconds:.0f} s"
    return words if steps >= FEWEST_STEPS else f"{words}, too short to judge"
