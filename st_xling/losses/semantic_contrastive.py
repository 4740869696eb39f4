"""Semantic contrastive loss: a sentence and its translation against every other sentence of the batch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.losses.across_processes import SharedBatch
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
        Hu et al. 2023, section 3.1, equation 2 (the printed second numerator misses an index); Chen et al. 2020.

    Example:
        >>> semantic_contrastive(torch.eye(2), torch.eye(2), temperature=1.0)
        tensor(0.5514)
    """
    check_temperature(temperature)
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned translations: got {source.shape[0]} and {target.shape[0]} rows."
        )
    return _mean(source, target, temperature, SharedBatch((len(source),)))


def _mean(source: Tensor, target: Tensor, temperature: float, shared: SharedBatch) -> Tensor:
    """Own sentences against those of the shared batch, whose sources stand first, then its targets."""
    rows = shared.rows(source.device)
    itself, translation = torch.cat([rows, rows + shared.total]), torch.cat([rows + shared.total, rows])
    everyone = torch.cat([shared.everyone(source), shared.everyone(target)])
    logits = similarity_matrix(torch.cat([source, target]), everyone) / temperature
    logits = logits.scatter(1, itself[:, None], -torch.inf)
    return shared.mean(F.cross_entropy(logits, translation, reduction="sum"), 2 * shared.total)


def check_temperature(temperature: float) -> None:
    """Raise ``ValueError`` unless the temperature is above 0."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0: got {temperature}; 0.05 is usual.")


class SemanticContrastiveLoss(CrossLingualLoss):
    """Pulls translations together and apart from all other sentences of the batch, of either language (semaCL).

    Args:
        model: The ``SentenceTransformer`` to train.
        temperature: Unitless, above 0.
        gather_across_devices: With several processes, contrast with the batches of all, with gradients.

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
        >>> loss = InBatchRankingLoss(model).on(0, 1) + 0.01 * SemanticContrastiveLoss(model).on(2, 3)  # doctest: +SKIP
    """

    def __init__(self, model: nn.Module, *, temperature: float = 0.05, gather_across_devices: bool = True) -> None:
        super().__init__(model)
        check_temperature(temperature)
        self.temperature, self.gather_across_devices = temperature, gather_across_devices

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = batch[0]["sentence_embedding"], batch[1]["sentence_embedding"]
        return _mean(source, target, self.temperature, SharedBatch.of(source, gather=self.gather_across_devices))

    def get_config_dict(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "gather_across_devices": self.gather_across_devices}

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
