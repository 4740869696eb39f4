"""Semantic contrastive loss: a sentence and its translation against every other sentence of the batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import batch_of_pairs, similarity_matrix


def semantic_contrastive(source: Tensor, target: Tensor, *, temperature: float = 0.05) -> Tensor:
    r"""NT-Xent over the 2N sentences of N translation pairs.

    .. math:: L = -\frac{1}{2N} \sum_{(i,j)} \log \frac{e^{\cos(z_i, z_j)/\tau}}{\sum_{k \ne i} e^{\cos(z_i, z_k)/\tau}}
        + \log \frac{e^{\cos(z_j, z_i)/\tau}}{\sum_{k \ne j} e^{\cos(z_j, z_k)/\tau}}

    Args:
        source: Embeddings of one sentence of each pair. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned; both may mix languages. *Shape:* ``(batch, dim)``
        temperature: :math:`\tau`, unitless, above 0.

    Returns:
        Mean loss in nats. *Shape:* ``()``

    Raises:
        ValueError: Columns of unequal size, or a temperature of 0 or less.

    Source:
        Hu et al. 2023, section 3.1, equation 2 (the printed second numerator misses an index); Chen et al. 2020.

    Example:
        >>> semantic_contrastive(torch.eye(2), torch.eye(2), temperature=1.0)
        tensor(0.5514)
    """
    _check_temperature(temperature)
    batch = batch_of_pairs(source, target)
    rows = batch.rows(source.device)
    # This process's sentences against those of all processes, sources first, then targets.
    itself = torch.cat([rows, rows + batch.total])
    translation = torch.cat([rows + batch.total, rows])
    candidates = torch.cat([batch.gather(source), batch.gather(target)])
    logits = similarity_matrix(torch.cat([source, target]), candidates) / temperature
    logits = logits.scatter(1, itself[:, None], -torch.inf)
    return batch.mean(F.cross_entropy(logits, translation, reduction="sum"), 2 * batch.total)


def _check_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0: got {temperature}; 0.05 is usual.")


class SemanticContrastiveLoss(CrossLingualLoss):
    """Pulls translations together and apart from all other sentences of the batch, of either language (semaCL).

    Args:
        model: The ``SentenceTransformer`` to train.
        temperature: Unitless, above 0.

    References:
        - Hu et al. 2023, Language Agnostic Multilingual Information Retrieval with Contrastive Learning, section 3.1

    Requirements:
        1. Parallel pairs, best of several language pairs in one batch.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

    Relations:
        - :class:`TranslationRankingLoss` ranks among the other language only; this loss also pushes apart sentences of
          one language, and has neither margin nor duplicate mask.
        - :class:`LanguageContrastiveLoss` needs translations of only some languages.

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

    max_columns = 2
    citation = bibtex("hu2023language")

    def __init__(self, model: nn.Module, *, temperature: float = 0.05) -> None:
        super().__init__(model)
        _check_temperature(temperature)
        self.temperature = temperature

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = (column["sentence_embedding"] for column in batch[:2])
        return semantic_contrastive(source, target, temperature=self.temperature)
