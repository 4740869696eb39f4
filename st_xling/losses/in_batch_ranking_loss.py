"""In-batch ranking of passages: the retrieval loss, with or without hard negatives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import GatheredBatch, similarity_matrix


class InBatchRankingLoss(CrossLingualLoss):
    r"""Negative log-likelihood of a query's passage among all passages of the batch (IR).

    .. math:: L = -\frac{1}{N} \sum_i \log \frac{e^{s \cos(q_i, p_i)}}{\sum_j e^{s \cos(q_i, p_j)}}

    The loss of ST's ``MultipleNegativesRankingLoss``, which can share its encoder pass with others and whose
    processes may have unequal batches.

    Args:
        model: The ``SentenceTransformer`` to train.
        scale: Inverse temperature ``s``, unitless, above 0.

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
        >>> from st_xling.losses import InBatchRankingLoss, SemanticContrastiveLoss
        >>> from st_xling.models import tiny_encoder
        >>> queries, passages = ["Who sleeps?", "Who reads?"], ["The dog is sleeping.", "She is reading."]
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> columns = [queries, passages, sources, targets]
        >>> model = tiny_encoder(queries + passages + sources, vocabulary=100, hidden_size=16)
        >>> loss = InBatchRankingLoss(model).on(0, 1) + 0.01 * SemanticContrastiveLoss(model).on(2, 3)
        >>> sum(loss([model.preprocess(texts) for texts in columns]).values()).backward()
    """

    citation = bibtex("hu2023language")

    def __init__(self, model: nn.Module, *, scale: float = 20.0) -> None:
        super().__init__(model)
        if not scale > 0:
            raise ValueError(f"scale must be above 0: got {scale}; 20 is a temperature of 0.05.")
        self.scale = scale

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        queries, *passages = (column["sentence_embedding"] for column in batch)
        gathered = GatheredBatch.of(queries)
        # The passage of a query is in its row of the first passage column; hard negatives follow behind all rows.
        candidates = torch.cat([gathered.gather(column) for column in passages])
        logits = self.scale * similarity_matrix(queries, candidates)
        true = gathered.rows(queries.device)
        return gathered.mean(F.cross_entropy(logits, true, reduction="sum"))
