"""In-batch ranking of passages: the retrieval loss, with or without hard negatives."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.losses.across_processes import SharedBatch
from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.losses.semantic_contrastive import MULTILINGUAL_IR
from st_xling.losses.similarity import similarity_matrix


class InBatchRankingLoss(CrossLingualLoss):
    r"""Negative log-likelihood of a query's passage among all passages of the batch (IR).

    .. math:: L = -\frac{1}{N} \sum_i \log \frac{e^{s \cos(q_i, p_i)}}{\sum_j e^{s \cos(q_i, p_j)}}

    The loss of the host's ``MultipleNegativesRankingLoss``, which can share its encoder pass with others and whose
    processes may have unequal batches.

    Args:
        model: The ``SentenceTransformer`` to train.
        scale: Inverse temperature ``s``, unitless, above 0.
        gather_across_devices: With several processes, rank among the passages of all, with gradients.

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

    def __init__(self, model: nn.Module, *, scale: float = 20.0, gather_across_devices: bool = True) -> None:
        super().__init__(model)
        self.scale, self.gather_across_devices = scale, gather_across_devices

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        queries, *passages = (column["sentence_embedding"] for column in batch)
        shared = SharedBatch.of(queries, gather=self.gather_across_devices)
        everyone = torch.cat([shared.everyone(column) for column in passages])
        logits = self.scale * similarity_matrix(queries, everyone)
        return shared.mean(F.cross_entropy(logits, shared.rows(queries.device), reduction="sum"))

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "gather_across_devices": self.gather_across_devices}

    @property
    def citation(self) -> str:
        return MULTILINGUAL_IR
