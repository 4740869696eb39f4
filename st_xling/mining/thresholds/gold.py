"""Mined pairs compared with gold pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from st_xling.mining.mine import MinedPairs
from st_xling.mining.thresholds.threshold import Threshold, precision_recall_f1


def correct_pairs(pairs: MinedPairs, gold: Iterable[tuple[int, int]]) -> np.ndarray:
    """Which mined pairs are gold.

    Args:
        pairs: Mined pairs, each once.
        gold: (source index, target index), each once.
    Returns:
        Booleans, for :func:`best_threshold`. *Shape:* ``(pairs,)``
    Raises:
        ValueError: When a pair is repeated on either side: counting it twice would falsify recall.
    """
    wanted = _distinct(gold, "gold")
    mined = _distinct(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist()), "pairs")
    return np.fromiter((pair in wanted for pair in mined), dtype=bool, count=len(mined))


def evaluate_pairs(pairs: MinedPairs, gold: Iterable[tuple[int, int]], threshold: float) -> Threshold:
    """Precision, recall and F1 of the pairs that score at least a threshold chosen elsewhere, such as on training data.

    Args:
        pairs: Mined pairs.
        gold: All gold pairs as (source index, target index), each once.
        threshold: Keep pairs whose score is at least this.
    Returns:
        The same threshold with its figures on these pairs.
    Raises:
        ValueError: As :func:`correct_pairs`, and without gold pairs.
    """
    wanted = list(gold)
    correct = correct_pairs(pairs, wanted)
    kept = pairs.scores >= threshold
    return Threshold(threshold, *precision_recall_f1(int((correct & kept).sum()), int(kept.sum()), len(wanted)))


def _distinct(pairs: Iterable[tuple[int, int]], name: str) -> dict[tuple[int, int], None]:
    """The pairs in order, without values: a set that remembers it."""
    seen: dict[tuple[int, int], None] = {}
    for source, target in pairs:
        if (source, target) in seen:
            raise ValueError(f"{name} must hold each pair once: got ({source}, {target}) twice; remove the repeats.")
        seen[source, target] = None
    return seen
