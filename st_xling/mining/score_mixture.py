r"""Estimate a threshold from the scores alone, without known pairs.

Most mined pairs are wrong wherever few sentences have a translation, and their scores are maxima: the best of many
sentences that are no translation. The upper tail of maxima is exponential for most distributions, so that above a score
:math:`u` the mined pairs are a mixture of wrong pairs and translations:

.. math:: f(s) = n_0\, \frac{1}{\beta} e^{-(s - u) / \beta} + n_1\, \mathcal{N}(s; \mu, \sigma)

It is fitted by expectation maximization. Second choices say where to begin, since the second-best match of a sentence
is wrong whether or not the best one is right: with quartiles :math:`q_1, q_2, q_3` of the scores of second choices

- the tail begins at :math:`u = q_2 + 1.2\,(q_3 - q_1)`, about their 95th percentile
- :math:`\beta` starts at the smaller of two estimates, and is held near it with the weight of ten pairs: the median
  distance of best and second choice over :math:`\ln 2` (the distance of the two largest of many values is exponential,
  with the :math:`\beta` of the tail), which is too large where most sentences have a translation; and
  :math:`(q_3 - q_1) / 1.03` (the quartiles of the second largest), which does not depend on how many have one

The threshold is the one with the highest F1 of the fitted mixture:

.. math:: F_1(t) = \frac{2\, T(t)}{T(t) + W(t) + n_1}, \quad T(t) = n_1 \Pr[\mathcal{N}(\mu, \sigma) \ge t - u],
    \quad W(t) = n_0\, e^{-(t - u) / \beta}

among those at which at least half of the kept pairs are translations, by the same estimate.

No translations stand out if the mixture is not significantly better than wrong pairs alone (likelihood ratio, chi
square of 3 degrees of freedom, p = 0.01), if :math:`\mu < \beta \ln 10`, where more than a tenth of the tail is left,
as when the second part only bends the tail of the first, or if no threshold keeps half.
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

# Weight of the first estimate of beta, in pairs.
_PRIOR_PAIRS = 10

_ITERATIONS = 300

# Sentences of a language whose second choices are looked at, scores that are fitted one by one, and thresholds tried.
_MOST_SENTENCES, _MOST_SCORES, _THRESHOLDS = 200_000, 20_000, 4001

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
class _Mixture:
    """A fitted mixture of scores, counted from ``start``."""

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


def estimate_threshold(
    forward: Neighbors, backward: Neighbors, scores: np.ndarray, *, margin: Margin = "ratio"
) -> ThresholdEstimate:
    """Estimate the threshold with the best F1 of mined pairs from their scores, without known translations.

    Assumptions: scores of wrong pairs have an exponential upper tail, those of translations are about normal; copies
    and other pairs that are neither were rejected by filters. With absolute cosines as scores, whose level differs from
    sentence to sentence, and with ``k=2`` the estimate is worse than with a margin and ``k`` from 3 on.

    Args:
        forward: Source → target neighbors, at least two for each sentence.
        backward: Target → source neighbors.
        scores: Scores of all pairs mined from them, without a threshold, by any retrieval. *Shape:* ``(pairs,)``
        margin: Margin of their scores.
    Returns:
        The estimate, which depends on nothing but the arguments.
    """
    problem = ""
    if len(scores) < LEAST_PAIRS:
        problem = f"{len(scores):,} pairs are too few to estimate a threshold"
    elif min(forward.indices.shape[1], backward.indices.shape[1]) < 2:
        problem = "a threshold is estimated from the second choices of sentences, which k=1 does not have"
    else:
        choices = [_two_best(forward, backward, margin), _two_best(backward, forward, margin)]
        mixture = _fit(scores, choices)
        if mixture is None:
            problem = "the scores do not vary enough to estimate a threshold"
    if problem:
        return ThresholdEstimate(None, None, None, f"{problem}: all pairs are kept")
    assert mixture is not None
    found = _best_threshold(mixture, float(scores.max())) if mixture.stands_out else None
    if found is None:
        note = (
            "no group of translations stands out in the scores, as in texts that have none in common: all pairs are "
            "kept, and most of them are probably wrong"
        )
        return ThresholdEstimate(None, None, None, note)
    threshold, precision = found
    note = f"threshold {threshold:.4f} estimated from the scores: precision about {precision:.2f}"
    return ThresholdEstimate(threshold, precision, mixture.translations, note)


def _two_best(own: Neighbors, other: Neighbors, margin: Margin) -> np.ndarray:
    """Compute the scores of the best and the second choice of sentences that have two. *Shape:* ``(sentences, 2)``"""
    rows = np.arange(0, len(own.indices), 1 + len(own.indices) // _MOST_SENTENCES)
    own_means, other_means = own.means, other.means
    best = np.empty((len(rows), 2))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        nearest = other_means[own.indices[block]]
        scores = margin_scores(own.similarities[block], own_means[block, None], nearest, margin=margin)
        best[start : start + len(block)] = -np.sort(-scores, axis=1)[:, :2]
    return best[np.isfinite(best[:, 1])]


def _fit(scores: np.ndarray, choices: list[np.ndarray]) -> _Mixture | None:
    """Fit the mixture to the scores above its start; ``None`` if they have no spread.

    Args:
        scores: Scores of all mined pairs.
        choices: Scores of the best and second choices, of source and target sentences.
    """
    starts, betas = [], []
    for choice in choices:
        if not len(choice):
            return None
        low, middle, high = np.quantile(choice[:, 1], [0.25, 0.5, 0.75])
        starts.append(middle + 1.2 * (high - low))
        betas.append(min(np.median(choice[:, 0] - choice[:, 1]) / math.log(2), (high - low) / 1.03))
    start, first_beta = float(np.mean(starts)), float(np.mean(betas))
    excess, counts = _tail(scores, start)
    if first_beta <= 0 or not len(excess):
        return None
    n = float(counts.sum())

    # Wrong pairs alone, and from where on they are so few that the others must be translations.
    def log_prior(beta: float) -> float:
        return -_PRIOR_PAIRS * (math.log(beta) + first_beta / beta)

    alone = float(((counts * excess).sum() + _PRIOR_PAIRS * first_beta) / (n + _PRIOR_PAIRS))
    alone_likelihood = float((counts * (-math.log(alone) - excess / alone)).sum()) + log_prior(alone)
    beta = first_beta
    near = float(counts[excess < 2 * beta].sum())
    wrong = min(n, near / (1 - math.exp(-2)))
    far = excess > beta * math.log(max(wrong, 1.0) + 1)
    mean, deviation = max(_quantile(excess, counts, 0.98), 4 * beta), 1.5 * beta
    if counts[far].sum() > 3:
        mean = _quantile(excess[far], counts[far], 0.5)
        deviation = max(_deviation(excess[far], counts[far]), beta)
    share = max(1 - wrong / n, 0.02)

    likelihood = -math.inf
    for _ in range(_ITERATIONS):
        wrong_density = (1 - share) * np.exp(-excess / beta) / beta
        deviations = (excess - mean) / deviation
        right_density = share * np.exp(-0.5 * deviations**2) / (deviation * math.sqrt(2 * math.pi))
        # The smallest positive number: far from both, the two densities can underflow.
        density = np.maximum(wrong_density + right_density, np.finfo(float).tiny)
        likelihood = float((counts * np.log(density)).sum()) + log_prior(beta)
        right = counts * right_density / density
        total = float(right.sum())
        if total < 1e-6:
            break
        share = total / n
        mean = float((right * excess).sum()) / total
        # No narrower than chance would make a few pairs.
        deviation = max(math.sqrt(float((right * (excess - mean) ** 2).sum()) / total), 0.5 * first_beta)
        left = counts - right
        beta = float(((left * excess).sum() + _PRIOR_PAIRS * first_beta) / (left.sum() + _PRIOR_PAIRS))
    return _Mixture(
        start=start,
        wrong=(1 - share) * n,
        beta=beta,
        translations=share * n,
        mean=mean,
        deviation=deviation,
        likelihood_ratio=2 * (likelihood - alone_likelihood),
    )


def _tail(scores: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much scores exceed ``start``, ascending, and how often; many scores are counted in narrow bins."""
    excess = np.sort(scores[scores >= start] - start)
    if len(excess) <= _MOST_SCORES:
        return excess, np.ones(len(excess))
    counts, edges = np.histogram(excess, bins=_MOST_SCORES)
    middles = (edges[:-1] + edges[1:]) / 2
    return middles[counts > 0], counts[counts > 0].astype(float)


def _quantile(values: np.ndarray, counts: np.ndarray, share: float) -> float:
    """Return a quantile of ascending values that occur so often."""
    reached = np.cumsum(counts)
    return float(values[min(np.searchsorted(reached, share * reached[-1]), len(values) - 1)])


def _deviation(values: np.ndarray, counts: np.ndarray) -> float:
    mean = np.average(values, weights=counts)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))


def _best_threshold(mixture: _Mixture, highest: float) -> tuple[float, float] | None:
    """Return the threshold with the best F1 of the mixture and its precision; ``None`` if none is precise enough."""
    from scipy.special import ndtr  # slow to import

    excess = np.linspace(0.0, highest - mixture.start, _THRESHOLDS)
    right = mixture.translations * ndtr((mixture.mean - excess) / mixture.deviation)
    kept = right + mixture.wrong * np.exp(-excess / mixture.beta)
    precision = np.divide(right, kept, out=np.zeros_like(kept), where=kept > 0)
    f1 = np.where(precision >= LEAST_PRECISION, 2 * right / (kept + mixture.translations), -1.0)
    best = int(f1.argmax())
    if f1[best] <= 0:
        return None
    # As many digits as signatures have, so that the number that is shown keeps the same pairs.
    return float(f"{mixture.start + excess[best]:.6g}"), float(precision[best])
