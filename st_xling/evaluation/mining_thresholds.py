"""Which threshold each corpus gets: a given one, that of its training part, or the best on its own gold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from st_xling.evaluation.mining_scores import JudgedPairs


def row_thresholds(
    judged: Sequence[JudgedPairs],
    *,
    threshold: float | Sequence[float] | str | None = None,
    train: Sequence[JudgedPairs] | None = None,
) -> tuple[list[float], str]:
    """A threshold for each corpus, and where they came from.

    Args:
        judged: The corpora that are judged.
        threshold: One number for all, one for each, or ``"tune"``: the best on the gold that is judged by. By default
            minus infinity, which keeps every pair.
        train: Other pairs, corpus by corpus, whose best thresholds are taken instead.
    Returns:
        One number a corpus, and one of :data:`~st_xling.evaluation.mining_scores.THRESHOLD_SOURCES`.
    Raises:
        ValueError: When both are given, or their number does not match.
    """
    if train is not None:
        if threshold is not None:
            raise ValueError(f"expected a threshold or training pairs to find one: got both, threshold={threshold!r}.")
        if len(train) != len(judged):
            raise ValueError(f"expected training pairs for each of {len(judged)} corpora: got {len(train)}.")
        return [pairs.best().threshold for pairs in train], "train"
    if threshold is None:
        return [float("-inf")] * len(judged), "none"
    if isinstance(threshold, str):
        if threshold != "tune":
            raise ValueError(f"threshold must be a number, one a corpus, or 'tune': got {threshold!r}.")
        return [pairs.best().threshold for pairs in judged], "tuned on this gold"
    numbers = np.asarray(threshold, dtype=np.float64)
    given = numbers.tolist() if numbers.ndim else [float(numbers)] * len(judged)
    if len(given) != len(judged):
        raise ValueError(f"expected one threshold, or one for each of {len(judged)} corpora: got {len(given)}.")
    return given, "given"
