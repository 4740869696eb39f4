"""Semantic contrastive loss: a sentence and its translation against every other sentence of the batch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.losses.similarity import similarity_matrix


def semantic_contrastive(source: Tensor, target: Tensor, *, temperature: float = 0.05) -> Tensor:
    r"""NT-Xent over the 2N sentences of N translation pairs.

    .. math:: L = -\frac{1}{2N} \sum_{(i,j)} \log \frac{e^{\cos(z_i, z_j)/\tau}}{\sum_{k \ne i} e^{\cos(z_i, z_k)/\tau}}
        + \log \frac{e^{\cos(z_j, z_i)/\tau}}{\sum_{k \ne j} e^{\cos(z_j, z_k)/\tau}}

    Args:
        source: Embeddings of one side. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned; a batch may mix languages on both sides. *Shape:* ``(batch, dim)``
        temperature: :math:`\tau`, unitless, above 0.

    Returns:
        Mean loss in nats. *Shape:* ``()``

    Raises:
        ValueError: Sides of unequal size, or a temperature of 0 or less.

    Source:
        Hu et al. 2023, section 3.2, equation 2 (the printed second numerator misses an index); Chen et al. 2020.

    Example:
        >>> semantic_contrastive(torch.eye(2), torch.eye(2), temperature=1.0)
        tensor(0.5514)
    """
    check_temperature(temperature)
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned translations: got {source.shape[0]} and {target.shape[0]} rows."
        )
    sentences = torch.cat([source, target])
    itself = torch.eye(len(sentences), dtype=torch.bool, device=sentences.device)
    logits = (similarity_matrix(sentences, sentences) / temperature).masked_fill(itself, -torch.inf)
    translation = torch.arange(len(sentences), device=sentences.device).roll(len(source))
    return F.cross_entropy(logits, translation)


def check_temperature(temperature: float) -> None:
    """Raise ``ValueError`` unless the temperature is above 0."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0: got {temperature}; 0.05 is usual.")


class SemanticContrastiveLoss(CrossLingualLoss):
    """Pulls translations together and apart from all other sentences of the batch, of either language (semaCL).

    Args:
        model: The ``SentenceTransformer`` to train.
        temperature: Unitless, above 0.

    References:
        - Hu et al. 2023, Language Agnostic Multilingual Information Retrieval with Contrastive Learning, section 3.2

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
        >>> loss = InBatchRankingLoss(model).on(0, 1) + 0.01 * SemanticContrastiveLoss(model).on(2, 3)  # doctest: +SKIP
    """

    def __init__(self, model: nn.Module, *, temperature: float = 0.05) -> None:
        super().__init__(model)
        check_temperature(temperature)
        self.temperature = temperature

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = batch[0]["sentence_embedding"], batch[1]["sentence_embedding"]
        return semantic_contrastive(source, target, temperature=self.temperature)

    def get_config_dict(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @property
    def citation(self) -> str:
        return MULTILINGUAL_IR


MULTILINGUAL_IR = """
@inproceedings{hu2023language,
    title = {Language Agnostic Multilingual Information Retrieval with Contrastive Learning},
    author = {Hu, Xiyang and Chen, Xinchi and Qi, Peng and Kong, Deguang and Liu, Kunlun and Wang, William Yang and
              Huang, Zhiheng},
    booktitle = {Findings of ACL},
    year = {2023},
}
"""
