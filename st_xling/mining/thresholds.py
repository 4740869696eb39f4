"""From which score on pairs are worth keeping, and how good the kept ones are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from st_xling.mining.mine import MinedPairs


@dataclass(frozen=True)
class Threshold:
    """A threshold and what it yields; a pair is kept when its score is at least ``threshold``.

    Attributes:
        threshold: In the scores' unit; infinity keeps nothing.
        precision: Correct share of the kept pairs, in [0, 1].
        recall: Found share of the gold pairs, in [0, 1].
        f1: Their harmonic mean, in [0, 1].
    """

    threshold: float
    precision: float
    recall: float
    f1: float


def precision_recall_f1(n_correct: int, n_predicted: int, n_gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1 from counts.

    Args:
        n_correct: Predicted pairs that are gold.
        n_predicted: Predicted pairs.
        n_gold: Gold pairs, found or not.
    Returns:
        Fractions in [0, 1]. Nothing predicted has precision 0; nothing correct has F1 0.
    Raises:
        ValueError: Without gold pairs, or when more pairs are correct than predicted or gold.
    Example:
        >>> precision_recall_f1(1, 2, 4)
        (0.5, 0.25, 0.3333333333333333)
    """
    if n_gold < 1:
        raise ValueError(f"n_gold must be at least 1: got {n_gold}; recall needs gold pairs.")
    if not 0 <= n_correct <= min(n_predicted, n_gold):
        raise ValueError(
            f"n_correct must lie between 0 and both n_predicted and n_gold: got {n_correct} correct of {n_predicted} "
            f"predicted and {n_gold} gold; count each pair once."
        )
    precision = n_correct / n_predicted if n_predicted else 0.0
    return precision, n_correct / n_gold, 2 * n_correct / (n_predicted + n_gold)


def best_threshold(scores: ArrayLike, is_correct: ArrayLike, n_gold: int) -> Threshold:
    """The threshold of highest F1.

    Only distinct scores are considered, since pairs of one score stay or go together. The threshold lies midway between
    the lowest kept score and the next lower one. Where it keeps all pairs, it is the lowest score itself; where no pair
    is correct, infinity. Of equal F1 the highest threshold wins: the fewest pairs, the highest precision.

    Args:
        scores: Finite scores, in any order. *Shape:* ``(pairs,)``
        is_correct: Whether each pair is gold. *Shape:* ``(pairs,)``
        n_gold: Gold pairs in all, also those that are not among the candidates.
    Returns:
        The threshold with precision, recall and F1 of the pairs that score at least as much.
    Raises:
        ValueError: On unequal lengths, scores that are not finite, no gold, or more correct pairs than gold.
    Source:
        Schwenk 2018; Li et al. 2023 (DAP), appendix B.
    Example:
        >>> best_threshold([1.3, 1.1, 0.9], [True, True, False], n_gold=2)
        Threshold(threshold=1.0, precision=1.0, recall=1.0, f1=1.0)
    """
    values = np.asarray(scores)
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    correct = np.asarray(is_correct)
    if values.ndim != 1 or values.shape != correct.shape:
        raise ValueError(
            f"scores and is_correct must be two lists of one length: got shapes {values.shape} and {correct.shape}; "
            "pass one of each per pair."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"scores must be finite: got NaN or infinity at {np.flatnonzero(~np.isfinite(values))[:5].tolist()}; "
            "drop these pairs first."
        )
    correct = correct.astype(bool)
    precision_recall_f1(int(correct.sum()), len(correct), n_gold)  # raises for an impossible number of gold pairs
    if not correct.any():
        return Threshold(float("inf"), 0.0, 0.0, 0.0)
    order = np.argsort(-values, kind="stable")
    values, hits = values[order], np.cumsum(correct[order])
    # The last pair of each run of equal scores, the end of the list included: the only places to cut.
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    f1 = 2 * hits[last] / (last + 1 + n_gold)
    cut = last[int(f1.argmax())]  # numpy's argmax is the first, hence the highest threshold
    threshold = values[cut]
    if cut + 1 < len(values):
        dropped = values[cut + 1]
        # In the scores' own dtype: numpy compares float32 scores with a threshold rounded to float32.
        middle = (dropped / 2 + threshold / 2).astype(values.dtype)
        threshold = middle if middle > dropped else threshold
    return Threshold(float(threshold), *precision_recall_f1(int(hits[cut]), int(cut) + 1, n_gold))


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
        The same threshold with its metrics on these pairs.
    Raises:
        ValueError: As :func:`correct_pairs`, and without gold pairs.
    """
    wanted = list(gold)
    correct = correct_pairs(pairs, wanted)
    selected = pairs.scores >= threshold
    return Threshold(threshold, *precision_recall_f1(int((correct & selected).sum()), int(selected.sum()), len(wanted)))


def _distinct(pairs: Iterable[tuple[int, int]], name: str) -> dict[tuple[int, int], None]:
    """The pairs in order, without values: a set that remembers it."""
    seen: dict[tuple[int, int], None] = {}
    for source, target in pairs:
        if (source, target) in seen:
            raise ValueError(f"{name} must hold each pair once: got ({source}, {target}) twice; remove the repeats.")
        seen[source, target] = None
    return seen
