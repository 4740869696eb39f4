"""Siamese contrastive loss: translations at distance 0, chosen negatives at least a margin away."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.losses import ContrastiveLoss, SiameseDistanceMetric
from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex
from st_xling.losses.gather import GatheredBatch, batch_of_pairs, similarity_matrix
from st_xling.utils.options import check_choice

SiameseDistance = Literal["euclidean", "cosine", "manhattan"]
Negatives = Literal["random", "worst", "average", "hardest", "none"]

METRICS = {
    "euclidean": SiameseDistanceMetric.EUCLIDEAN,
    "cosine": SiameseDistanceMetric.COSINE_DISTANCE,
    "manhattan": SiameseDistanceMetric.MANHATTAN,
}

#: Number that ``torch.nn.functional.pairwise_distance``, ST's metric, adds to each difference.
PAIRWISE_EPS = 1e-6


def siamese_contrastive(
    source: Tensor,
    target: Tensor,
    *,
    margin: float = 1.0,
    distance: SiameseDistance = "euclidean",
    negatives: Negatives = "worst",
) -> Tensor:
    r"""Hadsell's contrastive loss over translation pairs, with negatives drawn from the batch.

    .. math:: L = \frac{1}{2N} \sum_i \tfrac{1}{2} D(s_i, t_i)^2 + \tfrac{1}{2} \max(0, m - D(s_i, t_{n(i)}))^2

    ``n(i)`` is another row's target: a ``random`` one, the ``worst`` (least similar), the ``hardest`` (most similar);
    ``average`` takes the mean of the second term over all others. With ``none`` the loss is the mean of only the first
    terms, over ``N``; so it is for a batch of one, which has no negatives. Euclidean and Manhattan distances are
    torch's, as sentence-transformers' ``ContrastiveLoss`` has them: 1e-6 is added to each difference, which keeps the
    gradients of equal vectors finite and moves the loss by a few parts in a million.

    Args:
        source: Source-language embeddings. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned. *Shape:* ``(batch, dim)``
        margin: Distance ``m`` that negatives should have, in units of the distance; above 0.
        distance: ``"euclidean"``, ``"cosine"`` (one minus the cosine) or ``"manhattan"``.
        negatives: How negatives are chosen. Random draws come from torch's global generator.

    Returns:
        Mean loss over positives and negatives, in squared units of the distance (not nats). *Shape:* ``()``

    Raises:
        ValueError: Columns of unequal size, an unknown option, or a margin of 0 or less.

    Source:
        Huang et al. 2023 (mBERT-SF), section 3.2, equation 2; table 7 compares distances, table 13 negatives, table 9
        has ``none``. The paper labels parallel pairs 0; here and in sentence-transformers they are 1.

    Example:
        >>> siamese_contrastive(torch.zeros(2, 3), torch.zeros(2, 3))
        tensor(0.2500)
    """
    check_options(margin, distance, negatives)
    batch = batch_of_pairs(source, target)
    metric = METRICS[distance]
    positive = metric(source, target).square() / 2
    if batch.total == 1 or negatives == "none":
        return batch.mean(positive.sum())
    candidates = batch.gather(target)
    rows = batch.rows(source.device)
    if negatives == "average":
        distances = _distance_matrix(source, candidates, distance)
        true_pairs = rows[:, None] == torch.arange(batch.total, device=source.device)
        pushed = F.relu(margin - distances).square().masked_fill(true_pairs, 0)
        negative = pushed.sum(dim=1) / (batch.total - 1) / 2
        return batch.mean(torch.cat([positive, negative]).sum(), 2 * batch.total)
    if negatives == "random":  # 1, 2, … rows further on, so never the row's translation
        steps = torch.randint(1, batch.total, (len(source),), device=source.device)
        other = (rows + steps) % batch.total
    else:
        # Chosen without gradients: only the chosen distance needs one, so no matrix of them is kept.
        with torch.no_grad():
            distances = _distance_matrix(source, candidates, distance)
            never = torch.inf if negatives == "hardest" else -torch.inf
            distances = distances.scatter(1, rows[:, None], never)
            other = distances.argmin(dim=1) if negatives == "hardest" else distances.argmax(dim=1)
    negative = F.relu(margin - metric(source, candidates[other])).square() / 2
    return batch.mean(torch.cat([positive, negative]).sum(), 2 * batch.total)


def _distance_matrix(source: Tensor, targets: Tensor, distance: SiameseDistance) -> Tensor:
    """Measure every row's distance to every target, as ST's metrics do. *Shape:* ``(rows, targets)``"""
    if distance == "cosine":
        return 1 - similarity_matrix(source, targets)
    exact = torch.promote_types(source.dtype, torch.float32)
    norm = 2.0 if distance == "euclidean" else 1.0
    return torch.cdist(
        source.to(exact) + PAIRWISE_EPS,
        targets.to(exact),
        p=norm,
        # Not by products of matrices, which cannot tell near neighbors apart.
        compute_mode="donot_use_mm_for_euclid_dist",
    )


def check_options(margin: float, distance: str, negatives: str) -> None:
    """Raise ``ValueError`` for an option that :func:`siamese_contrastive` does not know."""
    if not margin > 0:
        raise ValueError(f"margin must be above 0: got {margin}; the paper's is 1.0.")
    check_choice("distance", distance, SiameseDistance)
    check_choice("negatives", negatives, Negatives)


class SiameseContrastiveLoss(CrossLingualLoss):
    """Contrastive loss of a siamese encoder (SF): with labels as ST's, without them on parallel pairs.

    With a label column (1 = parallel, 0 = not; ST's convention) it is ST's ``ContrastiveLoss``. Without
    one, every row is parallel and negatives are chosen in the batch.

    Args:
        model: The ``SentenceTransformer`` to train.
        margin: Distance that negatives should have.
        distance: ``"euclidean"``, ``"cosine"`` or ``"manhattan"``.
        negatives: ``"worst"`` (the paper's best), ``"random"``, ``"average"``, ``"hardest"`` or
            ``"none"`` (parallel pairs only, the paper's table 9); unused with labels.

    References:
        - Huang et al. 2023, Cross-lingual Sentence Embedding for Low-resource Chinese-Vietnamese Based on Contrastive
          Learning, equation 2

    Requirements:
        1. Parallel pairs; or pairs with labels 1 and 0. ``fit`` drops a label column that is all zeros.

    Inputs:
        +------------------+---------------------------+
        | Texts            | Labels                    |
        +==================+===========================+
        | (source, target) | none: all parallel        |
        +------------------+---------------------------+
        | (source, target) | 1 parallel, 0 not         |
        +------------------+---------------------------+

    Relations:
        - :class:`TranslationRankingLoss` uses all negatives of the batch at once and learns faster; this loss suits a
          frozen encoder under a small adapter.

    Example:
        >>> from st_xling.losses import SiameseContrastiveLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = SiameseContrastiveLoss(model, negatives="worst")
        >>> loss([model.preprocess(texts) for texts in (sources, targets)]).backward()
    """

    max_columns = 2
    citation = bibtex("huang2023crosslingual")

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 1.0,
        distance: SiameseDistance = "euclidean",
        negatives: Negatives = "worst",
    ) -> None:
        super().__init__(model)
        check_options(margin, distance, negatives)
        self.margin = margin
        self.distance = distance
        self.negatives = negatives
        # In a list, so that it is no child module: only its arithmetic is used.
        self._labeled = [ContrastiveLoss(model, METRICS[distance], margin)]  # type: ignore[arg-type]

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = (column["sentence_embedding"] for column in batch[:2])
        if labels is not None:
            mean = self._labeled[0].compute_loss_from_embeddings([source, target], labels)
            return GatheredBatch.of(source).mean(len(source) * mean)
        return siamese_contrastive(source, target, margin=self.margin, distance=self.distance, negatives=self.negatives)
