"""Find the sentences that may have a translation by a static encoder, so that only these are read by a transformer.

In two comparable corpora few sentences have a translation, and embedding the others is nearly all of the time of
mining. A static encoder reads many times as fast, finds the neighbors of every sentence, and scores them by their
ratio margin. The *chance* of a sentence is the best of these margins. Sentences whose chance reaches a *cut* are
embedded by the encoder, and mined.

- **Recall.** Margins that the static encoder gives to translations are about normally distributed. Those of the pairs
  that were mined are the part of this distribution above the cut, so that what is below it can be estimated, see
  :func:`fit_margins`. Known translations of another kind of text do not tell: they have other margins.
- **Margins.** The score of a pair compares its cosine with those of the neighbors of its sentences in the whole corpus.
  Among the kept sentences alone, neighbors are farther away and all scores higher. So a random *background* of the
  other sentences is embedded, too, and each of its sentences stands for all that it was drawn from, see
  :func:`whole_corpus_means`.
- **Threshold.** Pairs among the background show how wrong pairs of the whole corpus are scored, see
  :func:`mine_backgrounds`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from st_xling.mining.margins import margin_scores
from st_xling.mining.mined_pairs import best_pairs
from st_xling.mining.score_mixture import SampledPairs
from st_xling.mining.search.exact import Neighbors, nearest_rows
from st_xling.mining.search.find import find_neighbors
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin

#: Fewer pairs do not show how their margins are distributed.
LEAST_PAIRS = 30

# Sentences whose margins are computed at a time.
_ROWS_AT_ONCE = 1 << 16

# Deviations of the observed mean by which the fitted mean may be lower: with nearly all translations below the cut,
# those above it tell little about the others.
_MOST_DEVIATIONS_BELOW = 4.0


@dataclass(frozen=True)
class MarginFit:
    """Normal distribution of the static margins of translations.

    Attributes:
        mean: Its mean.
        deviation: Its standard deviation.
        pairs: Pairs that it was fitted to.
    """

    mean: float
    deviation: float
    pairs: int

    def recall(self, cut: float) -> float:
        """Return the share of translations whose margin reaches a cut."""
        return 0.5 * math.erfc((cut - self.mean) / (self.deviation * math.sqrt(2)))

    def cut(self, recall: float) -> float:
        """Return the cut that a share of the translations reaches."""
        from scipy.stats import norm  # slow to import

        return float(self.mean + self.deviation * norm.isf(recall))


def sentence_chances(neighbors: Neighbors, reverse: Neighbors) -> np.ndarray:
    """Return the best ratio margin of each sentence with any of its neighbors.

    Args:
        neighbors: Neighbors of the sentences.
        reverse: Neighbors of the sentences of the other language.

    Returns:
        Chances, float32; minus infinity for a sentence without a defined margin. *Shape:* ``(sentences,)``
    """
    means = neighbors.means
    reverse_means = reverse.means
    chances = np.empty(len(means), dtype=np.float32)
    for start in range(0, len(means), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        partner_means = reverse_means[neighbors.indices[block]]
        margins = margin_scores(neighbors.similarities[block], means[block, None], partner_means)
        chances[block] = margins.max(axis=1)
    return chances


def cut_for_share(chances: tuple[np.ndarray, np.ndarray], share: float) -> float:
    """Return the cut that a share of the sentences of both texts reaches; minus infinity for all of them."""
    if share >= 1:
        return -math.inf
    both = np.concatenate(chances)
    rank = max(1, round(share * len(both)))
    return float(np.partition(both, len(both) - rank)[len(both) - rank])


def fit_margins(margins: np.ndarray, cut: float) -> MarginFit | None:
    """Fit a normal distribution to the margins of translations, of which only those above a cut are known.

    Maximum likelihood of the truncated distribution. The mean is held by a weak prior near that of the known margins:
    few pairs just above the cut could as well be the tail of arbitrarily many below it.

    Args:
        margins: Static margins of mined pairs; those below the cut are ignored. *Shape:* ``(pairs,)``
        cut: Least margin.

    Returns:
        The fit; ``None`` for fewer than :data:`LEAST_PAIRS` pairs, or if their margins are all equal.

    Example:
        >>> margins = np.random.default_rng(0).normal(1.3, 0.2, size=4000)
        >>> fit = fit_margins(margins, cut=1.2)
        >>> round(fit.recall(1.2), 2), round(float((margins >= 1.2).mean()), 2)
        (0.69, 0.68)
    """
    known = margins[np.isfinite(margins) & (margins >= cut)]
    if len(known) < LEAST_PAIRS or np.ptp(known) == 0:
        return None
    if not math.isfinite(cut):
        return MarginFit(float(known.mean()), float(known.std()), len(known))

    from scipy.optimize import minimize  # slow to import
    from scipy.stats import norm

    known_mean = float(known.mean())
    known_deviation = float(known.std())

    def loss(parameters: np.ndarray) -> float:
        """Negative log likelihood of a mean and the logarithm of a deviation, with the prior of the mean."""
        mean = parameters[0]
        deviation = math.exp(parameters[1])
        distances = (known - mean) / deviation
        log_densities = -0.5 * distances**2 - parameters[1]
        log_known_part = norm.logsf((cut - mean) / deviation)
        prior = 0.5 * ((mean - known_mean) / (_MOST_DEVIATIONS_BELOW * known_deviation)) ** 2
        return float(-(log_densities - log_known_part).sum() + prior)

    found = minimize(loss, [known_mean, math.log(known_deviation)], method="Nelder-Mead")
    return MarginFit(float(found.x[0]), math.exp(found.x[1]), len(known))


def draw_background(sentences: int, share: float, *, most: int, seed: int) -> np.ndarray:
    """Draw a random background of a text: rows, ascending, int64.

    Args:
        sentences: Sentences of the text.
        share: Share of them to draw.
        most: Rows at most.
        seed: Seed of the draw.
    """
    size = min(most, round(share * sentences))
    drawn = np.random.default_rng(seed).choice(sentences, size=size, replace=False)
    return np.sort(drawn.astype(np.int64))


@dataclass(frozen=True)
class Background:
    """Random sentences of what was left out of a text.

    Attributes:
        embeddings: *Shape:* ``(sampled, dim)``
        weight: Sentences that each stands for, itself among them.
    """

    embeddings: Embeddings
    weight: float

    def __len__(self) -> int:
        return int(self.embeddings.shape[0])


def with_background(
    neighbors: Neighbors, embeddings: Embeddings, background: Background | None, *, memory_mib: int, device: str
) -> Neighbors:
    """Return neighbors among the kept sentences of a text with means as in the whole text.

    Args:
        neighbors: Neighbors of some sentences among the kept ones of the other language.
        embeddings: Embeddings of these sentences. *Shape:* ``(n, dim)``
        background: Of the other language; ``None`` if nothing was left out of it.
        memory_mib: Limit on the memory of the search in it, in MiB.
        device: Device to search on.
    """
    if background is None:
        return neighbors
    k = min(neighbors.similarities.shape[1], len(background))
    sampled = nearest_rows(embeddings, background.embeddings, k=k, memory_mib=memory_mib, device=device)
    means = whole_corpus_means(neighbors.similarities, sampled.similarities, background.weight)
    return replace(neighbors, corpus_means=means)


def mine_backgrounds(
    embeddings: tuple[Embeddings, Embeddings],
    backgrounds: tuple[Background | None, Background | None],
    *,
    k: int,
    margin: Margin,
    memory_mib: int,
    device: str,
) -> SampledPairs | None:
    """Mine the random sentences of both texts in each other, for the estimate of a threshold.

    Args:
        embeddings: Embeddings of the kept sentences of source and target. *Shape:* ``(kept, dim)``
        backgrounds: Backgrounds of both; ``None`` if nothing was left out.
        k: Neighbors of a sentence.
        margin: Margin of the scores.
        memory_mib: Limit on the memory of the search, in MiB.
        device: Device to search on.

    Returns:
        The pairs, with scores as in the whole texts, which stand for those of the sentences that were left out;
        ``None`` if nothing was left out of one text, or for fewer than ``k`` random sentences.
    """
    source, target = backgrounds
    if source is None or target is None or min(len(source), len(target)) < k:
        return None

    def with_kept(neighbors: Neighbors, background: Background, kept: Embeddings, weight: float) -> Neighbors:
        """Return neighbors among random sentences with means as in the whole text."""
        in_kept = nearest_rows(background.embeddings, kept, k=k, memory_mib=memory_mib, device=device)
        means = whole_corpus_means(in_kept.similarities, neighbors.similarities, weight)
        return replace(neighbors, corpus_means=means)

    forward, backward = find_neighbors(source.embeddings, target.embeddings, k=k, memory_mib=memory_mib, device=device)
    forward = with_kept(forward, source, embeddings[1], target.weight)
    backward = with_kept(backward, target, embeddings[0], source.weight)
    pairs = best_pairs(forward, backward, margin=margin)
    return SampledPairs.of(
        forward,
        backward,
        pairs.scores,
        pairs.source_indices,
        pairs.target_indices,
        weight=(source.weight + target.weight) / 2,
        margin=margin,
    )


def whole_corpus_means(kept: np.ndarray, sampled: np.ndarray, weight: float) -> np.ndarray:
    """Estimate the mean cosine of the ``k`` nearest neighbors in a corpus of which some sentences are only sampled.

    Each sampled sentence stands for ``weight`` sentences as near as itself; the ``k`` nearest of the kept sentences and
    of these are averaged.

    Args:
        kept: Cosines of the nearest kept sentences, best first. *Shape:* ``(n, k)``
        sampled: Cosines of the nearest sampled sentences. *Shape:* ``(n, sampled k)``
        weight: Sentences that a sampled sentence stands for.

    Returns:
        Means, float64. *Shape:* ``(n,)``

    Example:
        >>> whole_corpus_means(np.array([[0.9, 0.5]]), np.array([[0.7]]), weight=10).round(2).tolist()
        [0.8]
    """
    k = kept.shape[1]
    cosines = np.concatenate([kept, sampled], axis=1).astype(np.float64)
    weights = np.ones_like(cosines)
    weights[:, k:] = weight
    nearest_first = np.argsort(-cosines, axis=1, kind="stable")
    cosines = np.take_along_axis(cosines, nearest_first, axis=1)
    weights = np.take_along_axis(weights, nearest_first, axis=1)
    nearer = np.cumsum(weights, axis=1) - weights
    counted = np.clip(k - nearer, 0, weights)
    return (cosines * counted).sum(axis=1) / k


class StackedRows:
    """Rows of several embeddings in an order of their own, read when they are indexed.

    Args:
        parts: *Shape* of each: ``(rows, dim)``
        order: Rows of the parts in a row, such as ``[2, 0]`` for the third and the first, int64. *Shape:* ``(n,)``
    """

    ndim = 2

    def __init__(self, parts: list[Embeddings], order: np.ndarray) -> None:
        self._parts = parts
        self._ends = np.cumsum([int(part.shape[0]) for part in parts])
        self._order = order
        self.shape: tuple[int, ...] = (len(order), int(parts[0].shape[1]))

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        wanted = self._order[rows]
        result = np.empty((len(wanted), self.shape[1]), dtype=np.float32)
        part_of_row = np.searchsorted(self._ends, wanted, side="right")
        for number, part in enumerate(self._parts):
            is_here = part_of_row == number
            if is_here.any():
                start = self._ends[number] - int(part.shape[0])
                result[is_here] = np.asarray(part[wanted[is_here] - start])
        return result


class JoinedColumns:
    """Vectors of several encoders side by side, each scaled to length 1: their cosines are the means of theirs.

    Args:
        parts: Row-aligned. *Shape* of each: ``(rows, dim of its encoder)``
    """

    ndim = 2

    def __init__(self, parts: list[Embeddings]) -> None:
        self._parts = parts
        self.shape: tuple[int, ...] = (int(parts[0].shape[0]), sum(int(part.shape[1]) for part in parts))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        columns = [np.asarray(part[rows], dtype=np.float32) for part in self._parts]
        return np.concatenate(columns, axis=1)
