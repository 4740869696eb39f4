"""Compute xsim: how often the margin-based nearest target is not the translation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from st_xling.mining.margins import check_aligned
from st_xling.mining.mine import mine
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin


@dataclass(frozen=True)
class Xsim:
    """Number of errors among sentences.

    Attributes:
        errors: Number of sources whose best target is another sentence than their translation.
        total: Number of sources.
    """

    errors: int
    total: int

    @property
    def error_rate(self) -> float:
        """In [0, 1]; lower is better."""
        return self.errors / self.total

    @property
    def accuracy(self) -> float:
        """In [0, 1]; one minus the error rate."""
        return (self.total - self.errors) / self.total


def xsim(source_embeddings: Embeddings, target_embeddings: Embeddings, *, k: int = 4, margin: Margin = "ratio") -> Xsim:
    """Compute the similarity search error from source to target: each source takes the best-scored of its neighbors.

    Among equal scores the lowest index is taken. A source without any defined ratio counts as an error.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sentences, dim)``
        target_embeddings: Translations, row-aligned. *Shape:* ``(sentences, dim)``
        k: Number of neighbors of each sentence.
        margin: ``"absolute"`` (plain cosine), ``"distance"`` or ``"ratio"``.
    Returns:
        Errors, error rate and accuracy.
    Raises:
        ValueError: On unequal numbers of rows, an unknown margin, or as :func:`~st_xling.mining.find_neighbors`.
    Source:
        LASER, ``xsim.py``; NLLB Team 2022, section 5.
    Example:
        >>> xsim(np.eye(4), np.eye(4)[[0, 1, 3, 2]] + 0.1, k=2).error_rate
        0.5
    """
    source, target = check_aligned(source_embeddings, target_embeddings)
    total = source.shape[0]
    return Xsim(int((best_targets(source, target, k=k, margin=margin) != np.arange(total)).sum()), total)


def best_targets(
    source_embeddings: Embeddings, target_embeddings: Embeddings, *, k: int = 4, margin: Margin = "ratio"
) -> np.ndarray:
    """Find the target with the highest margin score of each source, or -1 for a source without one.

    Arguments are those of :func:`~st_xling.mining.mine`.

    Returns:
        *Shape:* ``(sources,)``
    """
    pairs = mine(source_embeddings, target_embeddings, k=k, margin=margin, retrieval="forward")
    best = np.full(source_embeddings.shape[0], -1)
    best[pairs.source_indices] = pairs.target_indices
    return best
