"""Embedding distance: translations should lie in the same place."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import batch_of_pairs
from st_xling.models.backbones import normalizes
from st_xling.utils.options import check_choice

EmbeddingDistance = Literal["squared", "cosine"]


def embedding_distance(source: Tensor, target: Tensor, *, distance: EmbeddingDistance = "squared") -> Tensor:
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
    check_choice("distance", distance, EmbeddingDistance)
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
        >>> from st_xling.losses import CrossUnmaskingLoss, EmbeddingDistanceLoss, KoleoLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = CrossUnmaskingLoss(model) + EmbeddingDistanceLoss(model) + 0.01 * KoleoLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    max_columns = 2
    citation = bibtex("janeiro2025mexma")

    def __init__(self, model: nn.Module, *, distance: EmbeddingDistance | Literal["auto"] = "auto") -> None:
        super().__init__(model)
        if distance == "auto":
            distance = "cosine" if normalizes(model) else "squared"
        self.distance = distance

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = (column["sentence_embedding"] for column in batch[:2])
        return embedding_distance(source, target, distance=self.distance)
