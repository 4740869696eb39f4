"""In-batch ranking of passages: the retrieval loss, with or without hard negatives."""

from __future__ import annotations

from typing import Any

from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.losses.semantic_contrastive import MULTILINGUAL_IR


class InBatchRankingLoss(CrossLingualLoss):
    r"""Negative log-likelihood of a query's passage among all passages of the batch (IR).

    .. math:: L = -\frac{1}{N} \sum_i \log \frac{e^{s \cos(q_i, p_i)}}{\sum_j e^{s \cos(q_i, p_j)}}

    The host's ``MultipleNegativesRankingLoss`` does the arithmetic; this class lets it share an encoder pass.

    Args:
        model: The ``SentenceTransformer`` to train.
        scale: Inverse temperature ``s``, unitless, above 0.
        gather_across_devices: Rank among the passages of all processes, with gradients.

    References:
        - Hu et al. 2023, Language Agnostic Multilingual Information Retrieval with Contrastive Learning, equation 1
          (garbled in print)

    Requirements:
        1. (query, passage) pairs, or tuples with hard negatives.

    Inputs:
        +------------------------------------------+--------+
        | Texts                                    | Labels |
        +==========================================+========+
        | (query, passage)                         | none   |
        +------------------------------------------+--------+
        | (query, passage, negative_1, ...)        | none   |
        +------------------------------------------+--------+

    Relations:
        - :class:`TranslationRankingLoss` ranks both ways, with margin and duplicate mask: for translations.

    Example:
        >>> loss = InBatchRankingLoss(model).on(0, 1) + 0.01 * SemanticContrastiveLoss(model).on(2, 3)  # doctest: +SKIP
    """

    def __init__(self, model: nn.Module, *, scale: float = 20.0, gather_across_devices: bool = False) -> None:
        super().__init__(model)
        self.scale, self.gather_across_devices = scale, gather_across_devices
        # Not a child module: its arithmetic is borrowed, the model stays ours.
        self._host = [MultipleNegativesRankingLoss(model, scale=scale, gather_across_devices=gather_across_devices)]  # type: ignore[arg-type]

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        embeddings = [column["sentence_embedding"] for column in batch]
        return self._host[0].compute_loss_from_embeddings(embeddings, labels)  # type: ignore[arg-type]

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "gather_across_devices": self.gather_across_devices}

    @property
    def citation(self) -> str:
        return MULTILINGUAL_IR
