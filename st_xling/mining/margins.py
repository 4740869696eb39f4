"""Margin scores: a pair's cosine relative to the neighborhoods of its two sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike

from st_xling.mining.search.corpus_matrix import CorpusMatrix, pair_cosines
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.utils.cosines import Embeddings, as_embeddings
from st_xling.utils.options import Margin, check_choice

#: Least mean neighbor cosine that a ratio is taken over.
SMALLEST_DENOMINATOR = 1e-6


def margin_scores(
    cosines: ArrayLike, source_means: ArrayLike, target_means: ArrayLike, *, margin: Margin = "ratio"
) -> np.ndarray:
    r"""Compute the margin scores of candidate pairs.

    .. math:: \mathrm{score}(x, y) = m\Bigl(\cos(x, y),\;
        \sum_{z \in N_k(x)} \frac{\cos(x, z)}{2k} + \sum_{z \in N_k(y)} \frac{\cos(y, z)}{2k}\Bigr),
        \quad m_{absolute}(a, b) = a, \quad m_{distance}(a, b) = a - b, \quad m_{ratio}(a, b) = a / b

    With the sums over :math:`2k`, :math:`b` is the mean of ``source_means`` and ``target_means``. Equation 8 of DAP has
    :math:`k` there: its ratio is half of this one, its ranking the same. We keep LASER's :math:`2k`, so that a
    threshold such as 1.06 means here what it means there.

    A ratio over a :math:`b` below 1e-6 is meaningless: cosines carry an error near 1e-7, and over a negative :math:`b`
    a bad pair would turn into a good one. Such a pair scores minus infinity, whatever its cosine.

    Args:
        cosines: Cosines of the pairs. Any shape
        source_means: Mean cosine of each source's ``k`` nearest targets. Broadcast against ``cosines``
        target_means: Mean cosine of each target's ``k`` nearest sources. Broadcast against ``cosines``
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.

    Returns:
        Scores, float64; higher is better. *Shape:* that of the broadcast inputs
    Raises:
        ValueError: On an unknown margin, or when an input is not finite.
    Source:
        Artetxe and Schwenk 2019, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings", equation
        2 and table 1; Li et al. 2023 (DAP), equation 8.

    Example:
        >>> margin_scores(0.9, 0.7, 0.5).round(4).item()
        1.5
    """
    check_choice("margin", margin, Margin)
    inputs = {"cosines": cosines, "source_means": source_means, "target_means": target_means}
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in inputs.items()}
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite: got NaN or infinity; check the embeddings they come from.")
    cosine, source_mean, target_mean = np.broadcast_arrays(*arrays.values())
    if margin == "absolute":
        return cosine.copy()
    neighborhood = (source_mean + target_mean) / 2
    if margin == "distance":
        return np.asarray(cosine - neighborhood)
    scores = np.full(cosine.shape, -np.inf)
    np.divide(cosine, neighborhood, out=scores, where=neighborhood >= SMALLEST_DENOMINATOR)
    return scores


def score_pairs(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    margin: Margin = "ratio",
    search: Callable[..., tuple[Neighbors, Neighbors]] = find_neighbors,
) -> np.ndarray:
    """Score each source with the target of the same row, among neighborhoods taken from the corpus itself.

    By LASER's rule a sentence's own partner may be one of its ``k`` neighbors: a good pair then raises its own
    denominator. Equal sentences are not merged.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(pairs, dim)``
        target_embeddings: Row-aligned. *Shape:* ``(pairs, dim)``
        k: Number of neighbors of each sentence.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        search: :func:`~st_xling.mining.find_neighbors`, perhaps with other options, such as
            ``partial(find_neighbors, method="approximate")``.

    Returns:
        Scores, float64; minus infinity for an undefined ratio, see :func:`margin_scores`. *Shape:* ``(pairs,)``
    Raises:
        ValueError: On unequal numbers of rows, an unknown margin, or as :func:`~st_xling.mining.find_neighbors`.
    Source:
        LASER, ``mine_bitexts.py --mode score``.

    Example:
        >>> score_pairs(np.eye(3) + 0.1, np.eye(3) + 0.1, k=2).round(4).tolist()
        [1.6849, 1.6849, 1.6849]
    """
    margin_scores(0.0, 1.0, 1.0, margin=margin)  # an unknown margin should not wait for the search
    source, target = check_aligned(source_embeddings, target_embeddings)
    rows = np.arange(source.shape[0])
    return pair_scorer(source, target, *search(source, target, k=k), margin)(rows, rows)


def pair_scorer(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    forward: Neighbors,
    backward: Neighbors,
    margin: Margin,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function that scores pairs of source and target rows by their exact cosines, in float64.

    Args:
        source_embeddings: *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        forward: Neighbors of each source.
        backward: Neighbors of each target.
        margin: As for :func:`score_pairs`.
    """
    source = CorpusMatrix(source_embeddings, "source_embeddings", torch.device("cpu"))
    target = CorpusMatrix(target_embeddings, "target_embeddings", torch.device("cpu"))
    source_means = forward.means
    target_means = backward.means

    def score(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        cosines = pair_cosines(source, target, torch.from_numpy(sources), torch.from_numpy(targets)).numpy()
        return margin_scores(cosines, source_means[sources], target_means[targets], margin=margin)

    return score


def check_aligned(source_embeddings: Embeddings, target_embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Raise unless both have one row a pair; returns them by :func:`~st_xling.utils.cosines.as_embeddings`."""
    source = as_embeddings(source_embeddings, "source_embeddings")
    target = as_embeddings(target_embeddings, "target_embeddings")
    if source.shape[:1] != target.shape[:1]:
        rows = f"{source.shape[0]} and {target.shape[0]} rows" if source.ndim and target.ndim else "single numbers"
        raise ValueError(f"source_embeddings and target_embeddings must be row-aligned: got {rows}.")
    return source, target
