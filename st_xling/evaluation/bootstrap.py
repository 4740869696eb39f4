"""How far a mean over queries might have come out otherwise, had other queries of the kind been asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Drawn places held at a time.
_AT_ONCE = 2**22


def bootstrap_interval(
    values: ArrayLike, *, samples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap over rows: the interval that holds the mean of a share of resampled sets.

    Rows are drawn with replacement, as many as there are, all measures of a row together. They count as independent:
    queries that translate each other are not, and the interval is then too narrow.

    Args:
        values: A row for each query, a column for each measure. *Shape:* ``(queries, measures)``
        samples: Sets drawn.
        confidence: Share of the sets' means inside, in (0, 1).
        seed: Of the drawing.
    Returns:
        Lower and upper ends. *Shapes:* ``(measures,)``; 0 without queries, as their means are.
    Raises:
        ValueError: For options out of range.
    Source:
        Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.
    Example:
        >>> low, high = bootstrap_interval([[1.0], [0.0], [1.0], [1.0]])
        >>> low.tolist(), high.tolist()
        ([0.25], [1.0])
    """
    check_bootstrap(samples, confidence)
    table = np.asarray(values, dtype=np.float64)
    rows, measures = table.shape
    if not rows:
        return np.zeros(measures), np.zeros(measures)
    generator = np.random.default_rng(seed)
    means = np.empty((samples, measures))
    step = max(1, _AT_ONCE // rows)
    for start in range(0, samples, step):
        sets = min(step, samples - start)
        drawn = generator.integers(rows, size=(sets, rows)) + rows * np.arange(sets)[:, None]
        times = np.bincount(drawn.ravel(), minlength=sets * rows).reshape(sets, rows)
        means[start : start + sets] = times @ table / rows
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return low, high


def check_bootstrap(samples: int, confidence: float) -> None:
    """Refuse options out of range."""
    if samples < 1:
        raise ValueError(f"samples of a bootstrap must be 1 or more: got {samples}; 1000 is the usual choice.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1): got {confidence}; 0.95 is the usual choice.")
