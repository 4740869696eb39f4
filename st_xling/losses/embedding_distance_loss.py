"""Embedding distance: translations should lie in the same place."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import batch_of_pairs
from st_xling.models.backbones import normalizes
from st_xling.utils.options import check_choice

Distance = Literal["squared", "cosine"]


def embedding_distance(source: Tensor, target: Tensor, *, distance: Distance = "squared") -> Tensor:
    r"""Mean distance of translations' embeddings.

    .. math:: L = \frac{1}{N d} \sum_i \| x_i - y_i \|^2 \quad or \quad \frac{1}{N} \sum_i 1 - \cos(x_i, y_i)

    Args:
        source: Embeddings. *Shape:* ``(batch, dim)``
        target: Their translations', row-aligned. *Shape:* ``(batch, dim)``
        distance: ``"squared"``: by dimension, as the paper has it, for embeddings of any length; ``"cosine"``: for
            those of length 1, whose squared distance by dimension is next to nothing.

    Returns:
        Unitless (no nats: it is no likelihood). *Shape:* ``()``

    Raises:
        ValueError: Columns of unequal size, or another distance.

    Source:
        Janeiro et al. 2025 (MEXMA), alignment loss.

    Example:
        >>> embedding_distance(torch.eye(2), torch.ones(2, 2))
        tensor(0.5000)
    """
    check_choice("distance", distance, Distance)
    batch = batch_of_pairs(source, target)
    if distance == "squared":
        return batch.mean((source - target).square().mean(dim=1).sum())
    return batch.mean((1 - nn.functional.cosine_similarity(source, target, dim=1)).sum())


class EmbeddingDistanceLoss(CrossLingualLoss):
    """Pulls translations together, and nothing apart: combine it with a term that keeps sentences distinct.

    Args:
        model: The ``SentenceTransformer`` to train.
        distance: ``"squared"`` (by dimension) or ``"cosine"``; ``"auto"``: cosine where the model normalizes its
            embeddings, else squared.

    References:
        - Janeiro et al. 2025, MEXMA: Token-level objectives improve sentence representations

    Requirements:
        1. Parallel pairs.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

    Relations:
        - :class:`SiameseContrastiveLoss` without negatives, squared by dimension.
        - sentence-transformers' ``MSELoss`` compares with a teacher's embeddings, which stand in the labels.

    Example:
        >>> loss = CrossUnmaskingLoss(model) + EmbeddingDistanceLoss(model) + 0.01 * KoleoLoss(model)  # doctest: +SKIP
    """

    max_columns = 2
    citation = bibtex("janeiro2025mexma")

    def __init__(self, model: nn.Module, *, distance: Distance | Literal["auto"] = "auto") -> None:
        super().__init__(model)
        if distance == "auto":
            distance = "cosine" if normalizes(model) else "squared"
        self.distance = distance

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = batch[0]["sentence_embedding"], batch[1]["sentence_embedding"]
        return embedding_distance(source, target, distance=self.distance)
