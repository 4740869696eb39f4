r"""Estimate a threshold from the scores alone, without known pairs.

A translation is far better than the second choices of its two sentences; a wrong pair is not, since it is merely the
best of many. For a mined pair with score :math:`s_{ij}`, let :math:`s_i` and :math:`s_j` be the best scores of its
sentences with any other partner, and

.. math:: d = (s_{ij} - s_i) + (s_{ij} - s_j)

The distance of the largest of many values from the second largest is exponential for most distributions. So the
distances above some :math:`u` are a mixture of those of wrong pairs and of translations, which is fitted by expectation
maximization:

.. math:: f(d) = n_0\, \frac{1}{\beta} e^{-(d - u) / \beta} + n_1\, \mathcal{N}(d; \mu, \sigma)

Second choices say where to begin, since they are wrong whether or not the best one is right. The scale :math:`b` of one
distance is the smaller of two estimates: the median of :math:`s_{ij} - s_i` over :math:`\ln 2`, too large where
most sentences have a translation, and :math:`(q_3 - q_2) / 0.558` with the median and the upper quartile of the scores
of second choices, which does not depend on how many have one; and of both languages, since sentences that are unlike
all others widen it. Then :math:`u = 2 b`, and :math:`\beta` starts at :math:`1.3\, b` (the sum of two exponential
distances), and is held near it with the weight of ten pairs.

The mixture gives each pair a probability :math:`r` to be a translation. The threshold is the score :math:`t` with the
highest F1,

.. math:: F_1(t) = \frac{2 \sum_{s \ge t} r}{|\{s \ge t\}| + \sum r}

among those at which at least half of the kept pairs are translations, by the same estimate. No translations stand out
if there is no such threshold; if the mixture is not significantly better than wrong pairs alone (likelihood ratio, chi
square of 3 degrees of freedom, p = 0.01); or if :math:`\mu < \beta \ln 10`, where more than a tenth of the wrong pairs
is left, as when the second part only bends the tail of the first.

A first stage mines only sentences that resemble one of the other language, and their wrong pairs are the best of all
wrong ones: too many of them are far out for an exponential distribution. Pairs among random sentences of what was left
out have the distances of the others, whatever their number, since gaps between the best of many values do not depend on
how many there are. They are fitted with the mined ones, each with the weight of those that it was drawn from, see
:class:`SampledPairs`; :math:`b` is theirs.

F1 in % of the test splits of four news sets, with multilingual-e5-small, by ``python -m tests.benchmarks.thresholds``:

====== ========= ====================== ====
pair   estimated of the training split  best
====== ========= ====================== ====
de-en  73.1      75.1                   78.0
fr-en  85.0      84.7                   86.6
ru-en  81.7      84.2                   85.3
zh-en  60.0      59.3                   60.7
====== ========= ====================== ====
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from st_xling.mining.margins import margin_scores
from st_xling.mining.search.exact import Neighbors
from st_xling.utils.options import Margin

#: Value of a threshold that is estimated from the scores.
ESTIMATED = "estimated"

#: Fewer mined pairs have no distribution to speak of.
LEAST_PAIRS = 20

#: Least estimated precision of the kept pairs.
LEAST_PRECISION = 0.5

# Likelihood ratio at which three parameters more are significant: chi square, p = 0.01.
_SIGNIFICANT = 11.34

# Part of the wrong pairs' tail beyond the mean of the translations.
_MOST_BEYOND = 0.1

# Weight of the first value of beta in the fit, in pairs.
_PRIOR_PAIRS = 10

_ITERATIONS = 300

# Sentences of a language whose second choices are looked at.
_MOST_SENTENCES = 200_000

# Distances that are fitted one by one; more are counted in bins.
_MOST_DISTANCES = 20_000

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class ThresholdEstimate:
    """A threshold that was estimated from the scores of mined pairs.

    Attributes:
        threshold: Minimum score of the kept pairs; ``None`` if it cannot be estimated, or no translations stand out.
        precision: Estimated fraction of translations among the kept pairs; ``None`` without a threshold.
        translations: Estimated number of translations that stand out; ``None`` without a threshold.
        note: The result in a sentence.
    """

    threshold: float | None
    precision: float | None
    translations: float | None
    note: str


@dataclass(frozen=True)
class SampledPairs:
    """Pairs among random sentences that stand for those that were not mined.

    Attributes:
        distances: By how much each scores more than its sentences with others. *Shape:* ``(pairs,)``
        scale: Scale of the distance of a best choice from the second one.
        weight: Pairs that each stands for, itself among them.
    """

    distances: np.ndarray
    scale: float
    weight: float

    @classmethod
    def of(
        cls,
        forward: Neighbors,
        backward: Neighbors,
        scores: np.ndarray,
        source_indices: np.ndarray,
        target_indices: np.ndarray,
        *,
        weight: float,
        margin: Margin = "ratio",
    ) -> SampledPairs:
        """Describe all pairs that were mined among random sentences.

        Args:
            forward: Source → target neighbors among the random sentences, with means as in the whole texts.
            backward: Target → source neighbors.
            scores: Scores of all pairs mined from them. *Shape:* ``(pairs,)``
            source_indices: Their source rows. *Shape:* ``(pairs,)``
            target_indices: Their target rows. *Shape:* ``(pairs,)``
            weight: Sentences that each random one stands for.
            margin: Margin of the scores.
        """
        distances = _distances(forward, backward, scores, source_indices, target_indices, margin)
        return cls(distances, _smaller_scale(forward, backward, margin), weight)


@dataclass(frozen=True)
class _Mixture:
    """A fitted mixture of distances, counted from ``start``."""

    start: float
    wrong: float
    beta: float
    translations: float
    mean: float
    deviation: float
    likelihood_ratio: float

    @property
    def stands_out(self) -> bool:
        """Whether the translations are a group of their own, rather than the end of the wrong pairs' tail."""
        is_far = self.mean >= -self.beta * math.log(_MOST_BEYOND)
        return is_far and self.likelihood_ratio >= _SIGNIFICANT

    def probabilities(self, distances: np.ndarray) -> np.ndarray:
        """Return the probability of pairs with these distances to be translations."""
        excess = np.where(np.isfinite(distances), distances, self.start) - self.start
        above = np.maximum(excess, 0.0)  # below the start all are wrong
        wrong = self.wrong * _exponential(above, self.beta)
        right = self.translations * _normal(above, self.mean, self.deviation)
        total = np.maximum(wrong + right, np.finfo(float).tiny)
        return np.where(excess > 0, right / total, 0.0)


def estimate_threshold(
    forward: Neighbors,
    backward: Neighbors,
    scores: np.ndarray,
    source_indices: np.ndarray,
    target_indices: np.ndarray,
    *,
    margin: Margin = "ratio",
    sampled: SampledPairs | None = None,
) -> ThresholdEstimate:
    """Estimate the threshold with the best F1 of mined pairs from their scores, without known translations.

    Assumptions: copies and other pairs that are neither wrong nor translations were rejected by filters, and few
    sentences have near duplicates in their own language, which are second choices as good as the first. The estimated
    precision is that of a model of the scores; where the scores of wrong pairs and translations overlap, as with a weak
    encoder, it can be off by 0.25.

    Args:
        forward: Source → target neighbors, at least two for each sentence.
        backward: Target → source neighbors.
        scores: Scores of all pairs mined from them, without a threshold, by any retrieval; descending, as in
            :class:`~st_xling.mining.MinedPairs`. *Shape:* ``(pairs,)``
        source_indices: Their source rows. *Shape:* ``(pairs,)``
        target_indices: Their target rows. *Shape:* ``(pairs,)``
        margin: Margin of their scores.
        sampled: Pairs that stand for those of sentences that were not mined.

    Returns:
        The estimate, which depends on nothing but the arguments.

    Raises:
        ValueError: For scores that are not descending, or not numbers.
    """
    # The best F1 is looked for among the highest scores, from the first one on.
    if not (np.diff(scores) <= 0).all():
        raise ValueError(
            "scores must descend, without NaN, with source_indices and target_indices in the same order: sort the "
            "three by the scores."
        )
    if not len(scores):
        return _without_threshold("no threshold is estimated, as there are no pairs")
    if len(scores) < LEAST_PAIRS:
        return _without_threshold(f"{len(scores):,} pairs are too few to estimate a threshold: all pairs are kept")
    if min(forward.indices.shape[1], backward.indices.shape[1]) < 2:
        return _without_threshold(
            "a threshold is estimated from the second choices of sentences, which k=1 does not have: all pairs are kept"
        )
    distances = _distances(forward, backward, scores, source_indices, target_indices, margin)
    if sampled is None:
        mixture = _fit_mixture(distances, np.ones(len(distances)), _smaller_scale(forward, backward, margin))
    else:
        all_distances = np.concatenate([distances, sampled.distances])
        weights = np.ones(len(all_distances))
        weights[len(distances) :] = sampled.weight
        mixture = _fit_mixture(all_distances, weights, sampled.scale)
    if mixture is None:
        return _without_threshold("the scores do not vary enough to estimate a threshold: all pairs are kept")
    best = None
    if mixture.stands_out:
        best = _best_threshold(scores, mixture.probabilities(distances))
    if best is None:
        return _without_threshold(
            "no group of translations stands out in the scores, as in texts that have none in common: all pairs are "
            "kept, and most of them are probably wrong"
        )
    threshold, precision = best
    note = f"threshold {threshold:.4f} estimated from the scores; look at the pairs that score just above it"
    return ThresholdEstimate(threshold, precision, mixture.translations, note)


def _without_threshold(note: str) -> ThresholdEstimate:
    return ThresholdEstimate(threshold=None, precision=None, translations=None, note=note)


def _smaller_scale(forward: Neighbors, backward: Neighbors, margin: Margin) -> float:
    """Estimate the scale of the distances of best and second choices in both languages, and return the smaller one."""
    source_scale = _scale(_two_best(forward, backward, margin))
    target_scale = _scale(_two_best(backward, forward, margin))
    return min(source_scale, target_scale)


def _two_best(neighbors: Neighbors, reverse: Neighbors, margin: Margin) -> np.ndarray:
    """Compute the scores of the best and the second choice of sentences that have two.

    Args:
        neighbors: Neighbors of the sentences.
        reverse: Neighbors of the sentences of the other language.
        margin: Margin of the scores.

    Returns:
        Scores, best first. *Shape:* ``(sentences, 2)``
    """
    step = 1 + len(neighbors.indices) // _MOST_SENTENCES
    rows = np.arange(0, len(neighbors.indices), step)
    means = neighbors.means
    reverse_means = reverse.means
    best = np.empty((len(rows), 2))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        partner_means = reverse_means[neighbors.indices[block]]
        scores = margin_scores(neighbors.similarities[block], means[block, None], partner_means, margin=margin)
        best[start : start + len(block)] = -np.sort(-scores, axis=1)[:, :2]
    return best[np.isfinite(best[:, 1])]


def _scale(choices: np.ndarray) -> float:
    """Estimate the scale of the distances of best and second choices; 0 if they do not vary.

    Args:
        choices: Scores of the best and second choices. *Shape:* ``(sentences, 2)``
    """
    if not len(choices):
        return 0.0
    best = choices[:, 0]
    second = choices[:, 1]
    middle, high = np.quantile(second, [0.5, 0.75])
    by_distances = np.median(best - second) / math.log(2)
    by_second_choices = (high - middle) / 0.558
    return float(min(by_distances, by_second_choices))


def _distances(
    forward: Neighbors,
    backward: Neighbors,
    scores: np.ndarray,
    source_indices: np.ndarray,
    target_indices: np.ndarray,
    margin: Margin,
) -> np.ndarray:
    """Compute by how much pairs score more than their sentences of both languages with any other partner."""
    distances = _distances_from_others(forward, backward, source_indices, target_indices, scores, margin)
    distances += _distances_from_others(backward, forward, target_indices, source_indices, scores, margin)
    return distances


def _distances_from_others(
    neighbors: Neighbors,
    reverse: Neighbors,
    rows: np.ndarray,
    partners: np.ndarray,
    scores: np.ndarray,
    margin: Margin,
) -> np.ndarray:
    """Compute by how much pairs score more than their sentences of one language with any other partner.

    Args:
        neighbors: Neighbors of the sentences of this language.
        reverse: Neighbors of the sentences of the other language.
        rows: Sentence of this language in each pair. *Shape:* ``(pairs,)``
        partners: Sentence of the other language. *Shape:* ``(pairs,)``
        scores: Scores of the pairs. *Shape:* ``(pairs,)``
        margin: Margin of the scores.

    Returns:
        Distances; infinity where a sentence has no other partner with a score. *Shape:* ``(pairs,)``
    """
    means = neighbors.means
    reverse_means = reverse.means
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        sentences = rows[block]
        candidates = neighbors.indices[sentences]
        candidate_scores = margin_scores(
            neighbors.similarities[sentences], means[sentences, None], reverse_means[candidates], margin=margin
        )
        candidate_scores[candidates == partners[block, None]] = -np.inf
        distances[block] = scores[block] - candidate_scores.max(axis=1)
    return distances


def _fit_mixture(distances: np.ndarray, weights: np.ndarray, scale: float) -> _Mixture | None:
    """Fit the mixture to the distances above its start by expectation maximization.

    Args:
        distances: Of all pairs; infinite ones are left out. *Shape:* ``(pairs,)``
        weights: Pairs that each stands for. *Shape:* ``(pairs,)``
        scale: Scale of the distance of a best choice from the second one.

    Returns:
        The mixture; ``None`` if the distances have no spread.
    """
    start = 2 * scale
    first_beta = 1.3 * scale
    is_finite = np.isfinite(distances)
    excess, counts = _tail(distances[is_finite], weights[is_finite], start)
    if first_beta <= 0 or not len(excess):
        return None
    n = float(counts.sum())

    # Beta is held near its first value as by _PRIOR_PAIRS pairs with that mean.
    def log_prior(beta: float) -> float:
        return -_PRIOR_PAIRS * (math.log(beta) + first_beta / beta)

    # The alternative, to which the likelihood is compared: wrong pairs alone.
    alone = float(((counts * excess).sum() + _PRIOR_PAIRS * first_beta) / (n + _PRIOR_PAIRS))
    alone_likelihood = float((counts * (-math.log(alone) - excess / alone)).sum()) + log_prior(alone)

    beta = first_beta
    share, mean, deviation = _first_translations(excess, counts, beta)
    likelihood = -math.inf
    for _ in range(_ITERATIONS):
        wrong_density = (1 - share) * _exponential(excess, beta)
        right_density = share * _normal(excess, mean, deviation)
        # The smallest positive number: far from both, the two densities can underflow.
        density = np.maximum(wrong_density + right_density, np.finfo(float).tiny)
        likelihood = float((counts * np.log(density)).sum()) + log_prior(beta)
        right = counts * right_density / density
        total_right = float(right.sum())
        if total_right < 1e-6:
            break
        share = total_right / n
        mean = float((right * excess).sum()) / total_right
        # No narrower than chance would make a few pairs.
        variance = float((right * (excess - mean) ** 2).sum()) / total_right
        deviation = max(math.sqrt(variance), 0.5 * first_beta)
        wrong = counts - right
        beta = float(((wrong * excess).sum() + _PRIOR_PAIRS * first_beta) / (wrong.sum() + _PRIOR_PAIRS))
    return _Mixture(
        start=start,
        wrong=(1 - share) * n,
        beta=beta,
        translations=share * n,
        mean=mean,
        deviation=deviation,
        likelihood_ratio=2 * (likelihood - alone_likelihood),
    )


def _first_translations(excess: np.ndarray, counts: np.ndarray, beta: float) -> tuple[float, float, float]:
    """Return share, mean and deviation of the translations to begin the fit with.

    These are the pairs so far out that less than one wrong pair would be there.
    """
    n = float(counts.sum())
    near = float(counts[excess < 2 * beta].sum())
    wrong = min(n, near / (1 - math.exp(-2)))  # within 2 beta are 1 - exp(-2) of the wrong ones
    share = max(1 - wrong / n, 0.02)
    far = excess > beta * math.log(max(wrong, 1.0) + 1)
    if counts[far].sum() > 3:
        mean = _quantile(excess[far], counts[far], 0.5)
        deviation = max(_deviation(excess[far], counts[far]), beta)
    else:
        mean = max(_quantile(excess, counts, 0.98), 4 * beta)
        deviation = 1.5 * beta
    return share, mean, deviation


def _tail(distances: np.ndarray, weights: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much distances exceed ``start``, ascending, and the weight of each; many are counted in bins."""
    is_above = distances >= start
    excess = distances[is_above] - start
    weights = weights[is_above]
    if len(excess) <= _MOST_DISTANCES:
        ascending = np.argsort(excess, kind="stable")
        return excess[ascending], weights[ascending]
    counts, edges = np.histogram(excess, bins=_MOST_DISTANCES, weights=weights)
    middles = (edges[:-1] + edges[1:]) / 2
    return middles[counts > 0], counts[counts > 0]


def _quantile(values: np.ndarray, counts: np.ndarray, share: float) -> float:
    """Return a quantile of ascending values, of which each occurs ``counts`` times."""
    reached = np.cumsum(counts)
    row = np.searchsorted(reached, share * reached[-1])
    return float(values[min(row, len(values) - 1)])


def _deviation(values: np.ndarray, counts: np.ndarray) -> float:
    mean = np.average(values, weights=counts)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))


def _exponential(excess: np.ndarray, beta: float) -> np.ndarray:
    return np.exp(-excess / beta) / beta


def _normal(excess: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    return np.exp(-0.5 * ((excess - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))


def _best_threshold(scores: np.ndarray, probabilities: np.ndarray) -> tuple[float, float] | None:
    """Return the threshold with the best expected F1 and its precision; ``None`` if none is precise enough.

    Args:
        scores: Scores of the pairs, descending. *Shape:* ``(pairs,)``
        probabilities: Probability of each pair to be a translation. *Shape:* ``(pairs,)``
    """
    right = np.cumsum(probabilities)
    kept = np.arange(1, len(scores) + 1)
    precision = right / kept
    f1 = 2 * right / (kept + right[-1])
    is_end = np.append(scores[1:] != scores[:-1], True)  # equal scores are kept or dropped together
    f1[~is_end | (precision < LEAST_PRECISION)] = -1.0
    best = int(f1.argmax())
    if f1[best] <= 0:
        return None
    threshold = float(scores[best])
    if best + 1 < len(scores):
        # Midway to the next score, in as many digits as signatures have, so that the number shown keeps the same pairs.
        middle = float(f"{(scores[best] + scores[best + 1]) / 2:.6g}")
        if scores[best + 1] < middle <= scores[best]:
            threshold = middle
    return threshold, float(precision[best])
