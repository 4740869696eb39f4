"""KoLeo: spread embeddings over the sphere, by pushing each away from its nearest neighbor."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import GatheredBatch, similarity_matrix

#: Neighbors nearer than this count as this far, without a gradient: those of equal texts, which nothing should part.
NEAREST = 1e-4


def koleo(embeddings: Tensor) -> Tensor:
    r"""Minus the mean logarithm of each embedding's distance to its nearest neighbor (Kozachenko-Leonenko).

    .. math:: L = -\frac{1}{N} \sum_i \log \max(\min_{j \ne i} \| u_i - u_j \|, 10^{-4}), \quad u = x / \| x \|

    Up to constants that is an estimate of the negative entropy of the embeddings' directions.

    Args:
        embeddings: Of sentences of one language. *Shape:* ``(batch, dim)``

    Returns:
        In nats, up to constants; 0 for a single row, which has no neighbor. *Shape:* ``()``

    Raises:
        ValueError: ``embeddings`` is no matrix.

    Source:
        Sablayrolles et al. 2019, Spreading vectors for similarity search, equation 2; as a term: Janeiro et al. 2025.

    Example:
        >>> koleo(torch.eye(2))  # both are √2 away from the other
        tensor(-0.3466)
    """
    batch = GatheredBatch.of(embeddings)
    candidates = batch.gather(embeddings)
    similarities = similarity_matrix(embeddings.detach(), candidates.detach())
    if batch.total < 2:
        return embeddings.sum() * 0.0
    similarities = similarities.scatter(1, batch.rows(embeddings.device)[:, None], -torch.inf)
    units = F.normalize(embeddings, dim=1)
    nearest = F.normalize(candidates, dim=1)[similarities.argmax(dim=1)]
    squares = (units - nearest).square().sum(dim=1)
    return batch.mean(-0.5 * squares.clamp(min=NEAREST**2).log().sum())


class KoleoLoss(CrossLingualLoss):
    """Keeps the sentences of each column apart, where other terms only pull translations together.

    Args:
        model: The ``SentenceTransformer`` to train.

    References:
        - Sablayrolles et al. 2019, Spreading vectors for similarity search, section 3
        - Janeiro et al. 2025, MEXMA: Token-level objectives improve sentence representations: weight 0.01

    Requirements:
        1. Any text; every column by itself, and the columns' mean.

    Inputs:
        +-------------+--------+
        | Texts       | Labels |
        +=============+========+
        | (text, ...) | none   |
        +-------------+--------+

    Relations:
        - :class:`TranslationRankingLoss` has negatives and needs it less.

    Example:
        >>> from st_xling.losses import CrossUnmaskingLoss, EmbeddingDistanceLoss, KoleoLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = CrossUnmaskingLoss(model) + EmbeddingDistanceLoss(model) + 0.01 * KoleoLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    citation = bibtex("sablayrolles2019spreading")
    min_columns = 1

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        return torch.stack([koleo(column["sentence_embedding"]) for column in batch]).mean()
