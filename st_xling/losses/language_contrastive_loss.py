"""Language contrastive loss: every other sentence should be as near to a sentence as to its translation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex, warn_once
from st_xling.losses.gather import GatheredBatch, batch_of_pairs, similarity_matrix


def language_contrastive(source: Tensor, target: Tensor, others: Tensor | None = None) -> Tensor:
    r"""Penalize differences between the two sentences of a pair in their similarity to the rest of the batch.

    .. math:: L = \frac{1}{|P|\,|K|\,2} \sum_{(i,j) \in P} \sum_{k \ne i,j} -\log p_{ijk} - \log (1 - p_{ijk}),
        \quad p_{ijk} = \frac{e^{\cos(z_i, z_k)}}{e^{\cos(z_i, z_k)} + e^{\cos(z_j, z_k)}}

    The mean over pairs, over the other sentences and over the two logarithms: at least :math:`\ln 2`, reached when
    every ``k`` is as near to ``i`` as to ``j``.

    Args:
        source: Embeddings of one sentence of each pair. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned. *Shape:* ``(batch, dim)``
        others: Sentences without translations, such as text of languages that have no parallel data.
            Of all processes. *Shape:* ``(rows, dim)``

    Returns:
        Mean loss in nats; 0 if there is no sentence besides the pair itself. *Shape:* ``()``

    Raises:
        ValueError: Columns of unequal size.

    Source:
        Hu et al. 2023, section 3.2, equation 3 (a sum over the batch there, divided by N(N - 2)).

    Example:
        >>> language_contrastive(torch.eye(2), torch.eye(2))
        tensor(0.6931)
    """
    batch = batch_of_pairs(source, target)
    columns = [batch.gather(source), batch.gather(target)]
    if others is not None:
        columns.append(others)
    sentences = torch.cat(columns)
    difference = similarity_matrix(source, sentences) - similarity_matrix(target, sentences)
    rows = batch.rows(source.device)
    pair = torch.stack([rows, rows + batch.total], dim=1)
    other = torch.ones_like(difference, dtype=torch.bool).scatter(1, pair, False)
    # -log p - log(1 - p) of p = sigmoid(d) is softplus(-d) + softplus(d)
    total = (F.softplus(difference) + F.softplus(-difference))[other].sum()
    return batch.mean(total, max(1, 2 * batch.total * (len(sentences) - 2)))


class LanguageContrastiveLoss(CrossLingualLoss):
    """Takes the language out of the embeddings, also of languages that have no parallel data (langCL).

    Columns after the second hold sentences without translations: they are compared with the pairs, not ranked.

    Args:
        model: The ``SentenceTransformer`` to train.

    References:
        - Hu et al. 2023, Language Agnostic Multilingual Information Retrieval with Contrastive Learning, section 3.2

    Requirements:
        1. Parallel pairs of some languages, at least two a batch or with other sentences.
        2. Optionally text of other languages.

    Inputs:
        +-------------------------------+--------+
        | Texts                         | Labels |
        +===============================+========+
        | (source, target)              | none   |
        +-------------------------------+--------+
        | (source, target, other, ...)  | none   |
        +-------------------------------+--------+

    Relations:
        - :class:`SemanticContrastiveLoss` draws translations together, which this loss does only indirectly: use it
          next to another, with a small weight.

    Example:
        >>> from st_xling.losses import LanguageContrastiveLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + 0.001 * LanguageContrastiveLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    citation = bibtex("hu2023language")

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target, *others = (column["sentence_embedding"] for column in batch)
        gathered = GatheredBatch.of(source)
        untranslated = torch.cat([gathered.gather(column) for column in others]) if others else None
        if gathered.total == 1 and untranslated is None:
            warn_once("a batch of one pair has no other sentences: its language contrastive loss is 0.")
        return language_contrastive(source, target, untranslated)
