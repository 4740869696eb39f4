"""Compute margin scores of given pairs, for filtering a parallel corpus."""

from __future__ import annotations

import numpy as np
import torch

from st_xling.mining.margins import margin_scores
from st_xling.mining.search.corpus_matrix import CorpusMatrix, pair_cosines
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.utils.cosines import Embeddings, as_embeddings


def score_pairs(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    margin: str = "ratio",
    count_own: bool = True,
    method: str = "exact",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> np.ndarray:
    """Score each source with the target of the same row, among neighborhoods taken from the corpus itself.

    With ``count_own``, LASER's rule, a sentence's own partner may be one of its ``k`` neighbors: a good pair then
    raises its own denominator. Without, the neighbors are the ``k`` nearest others. Equal sentences are not merged.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(pairs, dim)``
        target_embeddings: Row-aligned. *Shape:* ``(pairs, dim)``
        k: Number of neighbors of each sentence.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        count_own: Whether a pair counts in the neighborhoods of its own sentences.
        method: As for :func:`~st_xling.mining.mine`; the scores of an approximate search are not exact.
        device: As for :func:`~st_xling.mining.mine`.
        memory_mib: As for :func:`~st_xling.mining.mine`.
        progress: Show a progress bar on stderr.
    Returns:
        Scores, float64; minus infinity for an undefined ratio, see :func:`~st_xling.mining.margin_scores`.
        *Shape:* ``(pairs,)``
    Raises:
        ValueError: On unequal numbers of rows, an unknown margin, or as :func:`~st_xling.mining.find_neighbors`.
    Source:
        LASER, ``mine_bitexts.py --mode score``.
    Example:
        >>> score_pairs(np.eye(3) + 0.1, np.eye(3) + 0.1, k=2).round(4).tolist()
        [1.6849, 1.6849, 1.6849]
    """
    margin_scores(0.0, 1.0, 1.0, margin=margin)  # an unknown margin should not wait for the search
    source_embeddings, target_embeddings = check_aligned(source_embeddings, target_embeddings)
    pairs = source_embeddings.shape[0]
    if not count_own and k >= pairs:
        raise ValueError(
            f"k must be smaller than the corpus without the pair itself: got k={k} for {pairs} pairs; lower k, add "
            "pairs, or count the pair itself."
        )
    k += not count_own
    nearest = find_neighbors(
        source_embeddings,
        target_embeddings,
        k=k,
        method=method,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
    )
    means = [direction.means if count_own else _means_of_others(direction) for direction in nearest]
    rows = np.arange(pairs)
    return PairScores(source_embeddings, target_embeddings, *means, margin=margin)(rows, rows)


class PairScores:
    """Margin scores of pairs of rows, some at a time, from their exact cosines and the means of their neighborhoods.

    Args:
        source_embeddings: *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        source_means: Mean cosine of each source's neighbors. *Shape:* ``(sources,)``
        target_means: The same of the targets. *Shape:* ``(targets,)``
        margin: As for :func:`score_pairs`.
    """

    def __init__(
        self,
        source_embeddings: Embeddings,
        target_embeddings: Embeddings,
        source_means: np.ndarray,
        target_means: np.ndarray,
        *,
        margin: str,
    ) -> None:
        cpu = torch.device("cpu")
        self._source = CorpusMatrix(source_embeddings, "source_embeddings", cpu)
        self._target = CorpusMatrix(target_embeddings, "target_embeddings", cpu)
        self._source_means, self._target_means, self._margin = source_means, target_means, margin

    def __call__(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Score pairs of these rows, in float64."""
        cosines = pair_cosines(self._source, self._target, torch.from_numpy(sources), torch.from_numpy(targets))
        means = self._source_means[sources], self._target_means[targets]
        return margin_scores(cosines.numpy(), *means, margin=self._margin)


def check_aligned(source_embeddings: Embeddings, target_embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Raise unless both have one row a pair; returns them by :func:`~st_xling.utils.cosines.as_embeddings`."""
    source = as_embeddings(source_embeddings, "source_embeddings")
    target = as_embeddings(target_embeddings, "target_embeddings")
    if source.shape[:1] != target.shape[:1]:
        rows = [some.shape[0] if some.ndim else "no" for some in (source, target)]
        raise ValueError(
            f"source_embeddings and target_embeddings must be row-aligned: got {rows[0]} and {rows[1]} rows; pass one "
            "target per source."
        )
    return source, target


def _means_of_others(nearest: Neighbors) -> np.ndarray:
    """Compute the means of the first ``k`` of ``k + 1`` neighbors, without the row's own partner."""
    own = nearest.indices == np.arange(len(nearest.indices))[:, None]
    dropped = np.where(own.any(axis=1), own.argmax(axis=1), own.shape[1] - 1)
    is_other = np.arange(own.shape[1]) != dropped[:, None]
    others = nearest.similarities[is_other].reshape(len(own), -1)
    return others.mean(axis=1, dtype=np.float64)
