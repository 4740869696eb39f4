"""Mined pairs compared with gold: precision, recall and F1 at a threshold whose origin is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from st_xling.mining.thresholds import Threshold, best_threshold, precision_recall_f1

#: Where a threshold may come from; ``"none"``: no threshold, every pair given counts as mined.
THRESHOLD_SOURCES = ("given", "train", "tuned on this gold", "none")


@dataclass(frozen=True)
class MiningScores:
    """Precision, recall and F1 of the pairs that score at least a threshold.

    Attributes:
        precision: Correct share of the mined pairs, in [0, 1].
        recall: Found share of the gold pairs, in [0, 1].
        f1: Their harmonic mean, in [0, 1].
        threshold: In the scores' unit; minus infinity keeps all pairs, infinity none.
        threshold_source: One of :data:`THRESHOLD_SOURCES`.
        n_mined: Pairs that score at least ``threshold``.
        n_gold: Gold pairs.
        n_correct: Mined pairs that are gold.
    """

    precision: float
    recall: float
    f1: float
    threshold: float
    threshold_source: str
    n_mined: int
    n_gold: int
    n_correct: int


@dataclass(frozen=True, eq=False)
class EvaluatedPairs:
    """Candidate pairs of one corpus with its gold.

    Attributes:
        scores: float64, finite. *Shape:* ``(pairs,)``
        is_correct: Whether each pair is gold. *Shape:* ``(pairs,)``
        n_gold: Gold pairs, found or not.
    """

    scores: np.ndarray
    is_correct: np.ndarray
    n_gold: int

    def best(self) -> Threshold:
        """The threshold of highest F1 on this gold, see :func:`~st_xling.mining.best_threshold`."""
        return best_threshold(self.scores, self.is_correct, self.n_gold)

    def at(self, threshold: float, source: str) -> MiningScores:
        """Scores of the pairs that score at least ``threshold``, which comes from ``source``."""
        if np.isnan(threshold):
            raise ValueError("threshold must be a number: got NaN; leave it out to keep every pair.")
        selected = self.scores >= threshold
        correct, mined = int((selected & self.is_correct).sum()), int(selected.sum())
        rates = precision_recall_f1(correct, mined, self.n_gold)
        return MiningScores(*rates, float(threshold), source, mined, self.n_gold, correct)

    def curve(self) -> list[Threshold]:
        """Compute precision, recall and F1 with each distinct score as threshold, highest first."""
        order = np.argsort(-self.scores, kind="stable")
        values, hits = self.scores[order], np.cumsum(self.is_correct[order])
        # Equal scores pass a threshold together, so only the last of them is a point of the curve.
        last = np.flatnonzero(np.diff(values, append=-np.inf)).tolist()
        return [
            Threshold(float(values[row]), *precision_recall_f1(int(hits[row]), row + 1, self.n_gold)) for row in last
        ]


def judge_pairs(
    pairs: Iterable[tuple[Hashable, Hashable, float]], gold: Iterable[tuple[Hashable, Hashable]]
) -> EvaluatedPairs:
    """Compare scored pairs of ids with gold pairs of ids.

    Args:
        pairs: (source id, target id, score).
        gold: All gold pairs as (source id, target id).
    Raises:
        ValueError: On repeated pairs, scores that are not finite, or no gold.
    """
    scored, wanted = list(pairs), list(gold)
    for name, listed in (("predictions", [pair[:2] for pair in scored]), ("gold", wanted)):
        if twice := [pair for pair, count in Counter(listed).items() if count > 1]:
            raise ValueError(f"{name} must hold each pair once: got {twice[0]} twice; remove the repeats.")
    scores = np.array([score for *_, score in scored], dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite: got {scores[~np.isfinite(scores)][0]}; drop this pair first.")
    if not wanted:
        raise ValueError("gold must hold at least one pair: got none; recall needs gold pairs.")
    known = set(wanted)
    return EvaluatedPairs(scores, np.array([pair[:2] in known for pair in scored], dtype=bool), len(wanted))


def row_thresholds(
    evaluated: Sequence[EvaluatedPairs],
    *,
    threshold: float | Sequence[float] | str | None = None,
    train: Sequence[EvaluatedPairs] | None = None,
) -> tuple[list[float], str]:
    """A threshold for each corpus, and where they came from.

    Args:
        evaluated: The corpora that are evaluated.
        threshold: One number for all, one for each, or ``"tune"``: the best on its own gold. By default minus
            infinity, which keeps every pair.
        train: Other pairs, corpus by corpus, whose best thresholds are taken instead.
    Returns:
        One number a corpus, and one of :data:`THRESHOLD_SOURCES`.
    Raises:
        ValueError: When both are given, or their number does not match.
    """
    if train is not None:
        if threshold is not None:
            raise ValueError(f"expected a threshold or training pairs to find one: got both, threshold={threshold!r}.")
        if len(train) != len(evaluated):
            raise ValueError(f"expected training pairs for each of {len(evaluated)} corpora: got {len(train)}.")
        return [pairs.best().threshold for pairs in train], "train"
    if threshold is None:
        return [float("-inf")] * len(evaluated), "none"
    if isinstance(threshold, str):
        if threshold != "tune":
            raise ValueError(f"threshold must be a number, one a corpus, or 'tune': got {threshold!r}.")
        return [pairs.best().threshold for pairs in evaluated], "tuned on this gold"
    numbers = np.asarray(threshold, dtype=np.float64)
    each = numbers.tolist() if numbers.ndim else [float(numbers)] * len(evaluated)
    if len(each) != len(evaluated):
        raise ValueError(f"expected one threshold, or one for each of {len(evaluated)} corpora: got {len(each)}.")
    return each, "given"
