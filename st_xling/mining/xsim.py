"""Compute xsim: how often the margin-based nearest target is not the translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from st_xling.mining.mine import mine
from st_xling.mining.score_pairs import check_aligned
from st_xling.utils.cosines import Embeddings


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


def xsim(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    margin: str = "ratio",
    target_texts: Sequence[str] | None = None,
    method: str = "exact",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> Xsim:
    """Similarity search error from source to target: the best-scored of each source's ``k`` nearest targets is taken.

    Among equal scores the lowest index is taken. A source without any ratio that means something counts as an error.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sentences, dim)``
        target_embeddings: Translations, row-aligned. *Shape:* ``(sentences, dim)``
        k: Number of neighbors of each sentence.
        margin: ``"absolute"`` (plain cosine), ``"distance"`` or ``"ratio"``.
        target_texts: The targets' sentences; where given, a target with the translation's text is no error, so that
            repeated sentences do no harm.
        method: As for :func:`~st_xling.mining.mine`; the errors of an approximate search are not exact.
        device: As for :func:`~st_xling.mining.mine`.
        memory_mib: As for :func:`~st_xling.mining.mine`.
        progress: Show a progress bar on stderr.
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
    source_embeddings, target_embeddings = check_aligned(source_embeddings, target_embeddings)
    total = source_embeddings.shape[0]
    if target_texts is not None and len(target_texts) != total:
        raise ValueError(
            f"target_texts must have one text per target: got {len(target_texts)} for {total} rows; pass all of them."
        )
    best = best_targets(
        source_embeddings,
        target_embeddings,
        k=k,
        margin=margin,
        method=method,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
    ).tolist()
    hits = sum(
        row == found or (target_texts is not None and found >= 0 and target_texts[row] == target_texts[found])
        for row, found in enumerate(best)
    )
    return Xsim(total - hits, total)


def best_targets(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    margin: str = "ratio",
    method: str = "exact",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> np.ndarray:
    """Find the target with the highest margin score of each source, or -1 for a source without one.

    Arguments are those of :func:`~st_xling.mining.mine`.

    Returns:
        *Shape:* ``(sources,)``
    """
    pairs = mine(
        source_embeddings,
        target_embeddings,
        k=k,
        margin=margin,
        retrieval="forward",
        method=method,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
    )
    best = np.full(source_embeddings.shape[0], -1)
    best[pairs.source_indices] = pairs.target_indices
    return best
