"""A threshold for text without gold: known translations added to it show what each threshold keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from st_xling.mining.mine import MinedPairs, mine
from st_xling.mining.score_pairs import check_aligned
from st_xling.utils.cosines import Embeddings, check_shapes, float64_rows

# Whether each retrieval decides about the sources (0), the targets (1) or both.
_DECIDES = {"forward": (0,), "backward": (1,), "intersect": (0, 1), "max": (0, 1)}


@dataclass(frozen=True, eq=False)
class Calibration:
    """Estimates at each threshold, ascending; every array has *shape* ``(thresholds,)``.

    Attributes:
        thresholds: A pair is kept when its score is at least this.
        recall: Estimated share of the text's translations that are kept.
        recall_low: Lower end of its interval.
        recall_high: Upper end.
        precision: Estimated share of translations among the kept pairs; NaN where the text has none.
        precision_low: Lower end of its interval.
        precision_high: Upper end.
        kept: Sentences of the text in kept pairs, averaged over the languages that the retrieval decides about.
        confidence: Of the intervals.
    """

    thresholds: np.ndarray
    recall: np.ndarray
    recall_low: np.ndarray
    recall_high: np.ndarray
    precision: np.ndarray
    precision_low: np.ndarray
    precision_high: np.ndarray
    kept: np.ndarray
    confidence: float

    @property
    def f1(self) -> np.ndarray:
        """Harmonic mean of both estimates; 0 where there is no precision."""
        precision = np.nan_to_num(self.precision)
        total = precision + self.recall
        return np.divide(2 * precision * self.recall, total, out=np.zeros_like(total), where=total > 0)

    def best(self) -> float:
        """The threshold of the highest estimated F1; the higher one among equals."""
        f1 = self.f1
        return float(self.thresholds[len(f1) - 1 - int(f1[::-1].argmax())])

    def with_precision(self, precision: float) -> float:
        """The lowest threshold from which on the estimated precision is at least this; infinity if there is none."""
        below = np.flatnonzero(~(self.precision >= precision) & (self.kept > 0))
        first = 0 if len(below) == 0 else int(below[-1]) + 1
        reached = first < len(self.thresholds) and self.kept[first] > 0
        return float(self.thresholds[first]) if reached else float("inf")


def calibrate(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    known_source: Embeddings,
    known_target: Embeddings,
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    thresholds: Sequence[float] | None = None,
    distractors: float = 0.5,
    confidence: float = 0.95,
    draws: int = 4000,
    seed: int = 0,
    method: str = "exact",
    **search_options: Any,
) -> Calibration:
    r"""Seed a text with known translations, mine it, and estimate precision and recall at each threshold.

    The known translations are parted by chance: pairs, of which both sentences are added to the text, and distractors,
    of which one is. At a threshold, let :math:`R` be the
    share of pairs found, :math:`W` that of pairs' sentences kept in another pair, :math:`F` that of distractors kept in
    any pair, and :math:`M` that of the text's sentences kept. Of the text a share :math:`\pi` has a translation there,
    so :math:`M = \pi (R + W) + (1 - \pi) F`. This is solved for :math:`\pi` at the threshold where pairs and
    distractors differ most, the largest :math:`R + W - F`. Then, at every threshold,

    .. math:: \mathrm{precision} = \frac{\pi R}{\pi (R + W) + (1 - \pi) F}, \qquad \mathrm{recall} = R

    Where a retrieval decides about both languages, precision is the mean of both. :math:`R` has Wilson's interval.
    The interval of precision comes from draws of :math:`(R, W)` and :math:`F` from their Jeffreys posteriors, so that
    no error among few distractors is not taken for no error at all.

    What this assumes: known pairs are as hard to find as the text's translations (same domain, same noise);
    distractors are as easy to mistake as the text's sentences without a translation; neither known sentences nor
    translations of them are in the text already, or else a right pair is counted as wrong; known sentences are
    distinct, independent of each other, and few against the text, so that they do not change its neighbourhoods.
    Intervals cover the sampling of known sentences, not a breach of these.

    Args:
        source_embeddings: The text to mine. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        known_source: Sentences with a known translation, numpy or torch. *Shape:* ``(known, dim)``
        known_target: Their translations, row-aligned. *Shape:* ``(known, dim)``
        k: As for :func:`~st_xling.mining.mine`.
        margin: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        thresholds: Where to estimate; by default at up to 100 scores at which known pairs are found.
        distractors: Share of the known pairs that become distractors, in (0, 1).
        confidence: Of the intervals, in (0, 1).
        draws: Draws for the intervals of precision.
        seed: For parting and drawing.
        method: As for :func:`~st_xling.mining.mine`. The text should be
            mined by the same: what a search misses lowers the estimated recall too.
        search_options: As for :func:`~st_xling.mining.neighbours`.
    Returns:
        Estimates with intervals.
    Raises:
        ValueError: With fewer than 4 known pairs, unequal rows or dims, options out of range, or when no known pair
            is found and no thresholds are given; and as :func:`~st_xling.mining.mine`.
    Source:
        Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test", for :math:`\pi`.
    """
    check_shapes(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
    check_shapes(source_embeddings, known_source, "source_embeddings", "known_source")
    check_shapes(known_source, known_target, "known_source", "known_target")
    check_aligned(known_source, known_target)
    known, rows = known_source.shape[0], (source_embeddings.shape[0], target_embeddings.shape[0])
    if known < 4:
        raise ValueError(f"known pairs must be at least 4, better hundreds: got {known}; give more.")
    for name, value in (("distractors", distractors), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1: got {value}; leave it out for the default.")
    alone = max(1, round(known * distractors / 2))
    if known - 2 * alone < 1:
        raise ValueError(f"distractors must leave a pair to be found: got {distractors} of {known} pairs; lower it.")
    # Both texts to mine: the text itself, the pairs, distractors that only this language has.
    order = np.random.default_rng(seed).permutation(known)
    pairs = order[2 * alone :]
    source = Stacked([source_embeddings, known_source[pairs], known_source[order[:alone]]])
    target = Stacked([target_embeddings, known_target[pairs], known_target[order[alone : 2 * alone]]])
    mined = mine(source, target, k=k, margin=margin, retrieval=retrieval, method=method, **search_options)
    scores = [_scores(mined, language, rows, len(pairs), alone) for language in _DECIDES[retrieval]]
    right = scores[0]["right"]
    cuts = _default_cuts(right) if thresholds is None else np.unique(np.asarray(thresholds, dtype=np.float64))
    n_right = _reaching(right, cuts)
    random = np.random.default_rng(seed)
    estimates = [_precision(one, cuts, random, draws) for one in scores]
    point = np.mean([estimate[0] for estimate in estimates], axis=0)
    spread = np.mean([estimate[1] for estimate in estimates], axis=0)
    low, high = np.quantile(spread, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    recall_low, recall_high = wilson(n_right, len(right), confidence)
    kept = np.mean([_reaching(one["text"], cuts) for one in scores], axis=0)
    return Calibration(cuts, n_right / len(right), recall_low, recall_high, point, low, high, kept, confidence)


class Stacked:
    """Rows of several matrices of one dim, one below another, read as float64 when they are needed."""

    ndim = 2

    def __init__(self, parts: Sequence[Embeddings]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.shape[0] for part in parts])
        self.shape: tuple[int, ...] = (int(self._ends[-1]), parts[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        rows = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        homes = np.searchsorted(self._ends, rows, side="right")
        result = np.empty((len(rows), self.shape[1]))
        for home in np.unique(homes).tolist():
            places, part = np.flatnonzero(homes == home), self._parts[home]
            result[places] = float64_rows(part[rows[places] - (self._ends[home] - part.shape[0])], 0, None)
        return result


def _scores(
    mined: MinedPairs, language: int, rows: tuple[int, int], pairs: int, distractors: int
) -> dict[str, np.ndarray]:
    """Best score of each sentence of one language in a mined pair, minus infinity without one.

    Args:
        mined: Pairs of both texts, in which the known pairs follow the ``rows`` of the text itself.
        language: 0 for sources, 1 for targets.
        rows: Of the text itself, sources and targets.
        pairs: Known pairs.
        distractors: Of this language.
    Returns:
        ``text``: of the text's sentences; ``right``: of known pairs' sentences with their partner; ``wrong``: with
        anything else; ``alone``: of distractors.
    """
    own, other = (mined.source_indices, mined.target_indices)[:: 1 if language == 0 else -1]
    n = rows[language]
    best = np.full(n + pairs + distractors, -np.inf)
    np.maximum.at(best, own, mined.scores)
    known = (own >= n) & (own < n + pairs)
    partners = own - n == other - rows[1 - language]
    result = {"text": best[:n], "alone": best[n + pairs :]}
    for name, chosen in (("right", known & partners), ("wrong", known & ~partners)):
        result[name] = np.full(pairs, -np.inf)
        np.maximum.at(result[name], own[chosen] - n, mined.scores[chosen])
    return result


def _precision(
    scores: dict[str, np.ndarray], cuts: np.ndarray, random: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """The estimate at each threshold, *shape* ``(thresholds,)``, and draws of it, *shape* ``(draws, thresholds)``."""
    known = np.unique(np.concatenate([scores["right"], scores["alone"]]))
    right, wrong, mistaken = _shares(scores, known)
    clearest = known[[int((right + wrong - mistaken).argmax())]]
    kept = _reaching(scores["text"], clearest) / len(scores["text"])
    share = _translated(*_shares(scores, clearest), kept)
    shares = _translated(*_shares(scores, clearest, random, draws), kept)
    point = _right_among_kept(*_shares(scores, cuts), share)
    spread = _right_among_kept(*_shares(scores, cuts, random, draws), shares)
    empty = _reaching(scores["text"], cuts) == 0
    point[empty], spread[:, empty] = np.nan, np.nan
    return point, spread


def _shares(
    scores: dict[str, np.ndarray], cuts: np.ndarray, random: np.random.Generator | None = None, draws: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R, W and F of :func:`calibrate` at each threshold; or draws of them from their posteriors, by row."""
    right, wrong, mistaken = (_reaching(scores[name], cuts) for name in ("right", "wrong", "alone"))
    pairs, distractors = len(scores["right"]), len(scores["alone"])
    # With "max" and "intersect" a sentence is in one pair; a backward search may hold a source several times.
    wrong = np.minimum(wrong, pairs - right)
    if random is None:
        return right / pairs, wrong / pairs, mistaken / distractors
    # A Dirichlet draw is gamma draws over their sum; the prior's half a count for each outcome is Jeffreys'.
    shape = (draws, len(cuts))
    parts = [random.standard_gamma(count + 0.5, shape) for count in (right, wrong, pairs - right - wrong)]
    total = parts[0] + parts[1] + parts[2]
    return parts[0] / total, parts[1] / total, random.beta(mistaken + 0.5, distractors - mistaken + 0.5, shape)


def _translated(right: np.ndarray, wrong: np.ndarray, mistaken: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Share of the text with a translation; 0 where distractors are kept as often as pairs: scores tell nothing."""
    apart = right + wrong - mistaken
    return np.divide(kept - mistaken, apart, out=np.zeros_like(apart), where=apart > 0).clip(0.0, 1.0)


def _right_among_kept(right: np.ndarray, wrong: np.ndarray, mistaken: np.ndarray, share: np.ndarray) -> np.ndarray:
    kept = share * (right + wrong) + (1 - share) * mistaken
    return np.divide(share * right, kept, out=np.zeros_like(kept), where=kept > 0)


def _reaching(scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """How many scores are at least each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), cuts, side="left")


def _default_cuts(scores: np.ndarray) -> np.ndarray:
    finite = np.unique(scores[np.isfinite(scores)])
    if len(finite) == 0:
        raise ValueError(
            "known pairs must be found somewhere: none of them was mined; check that both sides are encoded by one "
            "model and row-aligned, or give thresholds."
        )
    return np.unique(np.quantile(finite, np.linspace(0, 1, min(100, len(finite))), method="nearest"))


def wilson(hits: np.ndarray, trials: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a binomial share.

    Args:
        hits: Successes. Any shape
        trials: Trials, at least 1, taken as independent.
        confidence: In (0, 1).
    Returns:
        Lower and upper ends, in [0, 1]. *Shapes:* that of ``hits``
    Source:
        Wilson 1927; Brown, Cai and DasGupta 2001, "Interval Estimation for a Binomial Proportion".
    Example:
        >>> [end.round(3).item() for end in wilson(np.array(9), 10, 0.95)]
        [0.596, 0.982]
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    # At the ends of the scale one side is 0 or 1 in exact arithmetic; rounding should not leave a crumb.
    return np.where(hits == 0, 0.0, middle - half), np.where(hits == trials, 1.0, middle + half)
