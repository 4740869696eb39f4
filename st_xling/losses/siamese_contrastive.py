"""Siamese contrastive loss: translations at distance nought, chosen negatives at least a margin away."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.losses import ContrastiveLoss, SiameseDistanceMetric
from torch import Tensor, nn

from st_xling.losses.across_processes import SharedBatch
from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.losses.similarity import similarity_matrix

Distance = Literal["euclidean", "cosine", "manhattan"]
Negatives = Literal["random", "worst", "average", "hardest", "none"]

_HOST_METRICS = {
    "euclidean": SiameseDistanceMetric.EUCLIDEAN,
    "cosine": SiameseDistanceMetric.COSINE_DISTANCE,
    "manhattan": SiameseDistanceMetric.MANHATTAN,
}

PAIRWISE_EPS = 1e-6
"""What ``torch.nn.functional.pairwise_distance``, the host's metric, adds to each difference."""


def siamese_contrastive(
    source: Tensor,
    target: Tensor,
    *,
    margin: float = 1.0,
    distance: Distance = "euclidean",
    negatives: Negatives = "worst",
) -> Tensor:
    r"""Hadsell's contrastive loss over translation pairs, with negatives drawn from the batch.

    .. math:: L = \frac{1}{2N} \sum_i \tfrac{1}{2} D(s_i, t_i)^2 + \tfrac{1}{2} \max(0, m - D(s_i, t_{n(i)}))^2

    ``n(i)`` is another row's target: a ``random`` one, the ``worst`` (least similar), the ``hardest`` (most similar);
    ``average`` takes the mean of the second term over all others. With ``none``, as in a batch of one, the loss is the
    mean of the first term over the N positives.

    Args:
        source: Source-language embeddings. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned. *Shape:* ``(batch, dim)``
        margin: Distance ``m`` that negatives should have, in units of the distance; above 0.
        distance: ``"euclidean"``, ``"cosine"`` (one minus the cosine) or ``"manhattan"``.
        negatives: How negatives are chosen. Random draws come from torch's global generator.

    Returns:
        Mean loss over positives and negatives, in squared units of the distance (not nats). *Shape:* ``()``

    Raises:
        ValueError: Sides of unequal size, an unknown option, or a margin of 0 or less.

    Source:
        Huang et al. 2023 (mBERT-SF), section 3.3, equation 2; table 7 compares distances, table 13 negatives. The paper
        labels parallel pairs 0; here and in the host they are 1.

    Example:
        >>> siamese_contrastive(torch.zeros(2, 3), torch.zeros(2, 3))
        tensor(0.2500)
    """
    check_options(margin, distance, negatives)
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned translations: got {source.shape[0]} and {target.shape[0]} rows."
        )
    return _mean(source, target, margin, distance, negatives, SharedBatch((len(source),)))


def _mean(
    source: Tensor, target: Tensor, margin: float, distance: Distance, negatives: Negatives, shared: SharedBatch
) -> Tensor:
    """Own pairs, with negatives out of the shared batch."""
    metric = _HOST_METRICS[distance]
    positive = metric(source, target).square() / 2
    if shared.total == 1 or negatives == "none":
        return shared.mean(positive.sum(), shared.total)
    everyone, rows = shared.everyone(target), shared.rows(source.device)
    if negatives == "average":
        distances = _distances(source, everyone, distance)
        own = rows[:, None] == torch.arange(shared.total, device=source.device)
        pushed = F.relu(margin - distances).square().masked_fill(own, 0)
        negative = pushed.sum(dim=1) / (shared.total - 1) / 2
        return shared.mean(torch.cat([positive, negative]).sum(), 2 * shared.total)
    if negatives == "random":  # 1, 2, … targets on, so never the own translation
        other = (rows + torch.randint(1, shared.total, (len(source),), device=source.device)) % shared.total
    else:
        other = _extreme(source, everyone, rows, distance, nearest=negatives == "hardest")
    negative = F.relu(margin - metric(source, everyone[other])).square() / 2
    return shared.mean(torch.cat([positive, negative]).sum(), 2 * shared.total)


@torch.no_grad()
def _extreme(source: Tensor, targets: Tensor, own: Tensor, distance: Distance, *, nearest: bool) -> Tensor:
    """The farthest (or nearest) target of each row but its own translation; its distance alone needs a gradient.

    *Shape:* ``(rows,)``
    """
    distances = _distances(source, targets, distance)
    distances = distances.scatter(1, own[:, None], torch.inf if nearest else -torch.inf)
    return distances.argmin(dim=1) if nearest else distances.argmax(dim=1)


def _distances(source: Tensor, targets: Tensor, distance: Distance) -> Tensor:
    """Of every row to every target, as the host's metrics measure them. *Shape:* ``(rows, targets)``"""
    if distance == "cosine":
        return 1 - similarity_matrix(source, targets)
    exact = torch.promote_types(source.dtype, torch.float32)
    return torch.cdist(
        source.to(exact) + PAIRWISE_EPS,
        targets.to(exact),
        p=2.0 if distance == "euclidean" else 1.0,
        # Not by products of matrices, which cannot tell near neighbours apart.
        compute_mode="donot_use_mm_for_euclid_dist",
    )


def check_options(margin: float, distance: str, negatives: str) -> None:
    """Raise ``ValueError`` for an option that :func:`siamese_contrastive` does not know."""
    if not margin > 0:
        raise ValueError(f"margin must be above 0: got {margin}; the paper's is 1.0.")
    if distance not in get_args(Distance):
        raise ValueError(f"distance must be one of {get_args(Distance)}: got {distance!r}.")
    if negatives not in get_args(Negatives):
        raise ValueError(f"negatives must be one of {get_args(Negatives)}: got {negatives!r}.")


class SiameseContrastiveLoss(CrossLingualLoss):
    """Contrastive loss of a siamese encoder (SF): with labels as the host's, without them on parallel pairs.

    With a label column (1 = parallel, 0 = not; the host's convention) it is the host's ``ContrastiveLoss``. Without
    one, every row is parallel and negatives are chosen in the batch.

    Args:
        model: The ``SentenceTransformer`` to train.
        margin: Distance that negatives should have.
        distance: ``"euclidean"``, ``"cosine"`` or ``"manhattan"``.
        negatives: ``"worst"`` (the paper's best), ``"random"``, ``"average"``, ``"hardest"`` or ``"none"`` (table 9);
            unused with labels.
        gather_across_devices: With several processes, choose negatives in the batches of all, with gradients.

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
        >>> loss = SiameseContrastiveLoss(model, negatives="worst")  # doctest: +SKIP
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 1.0,
        distance: Distance = "euclidean",
        negatives: Negatives = "worst",
        gather_across_devices: bool = True,
    ) -> None:
        super().__init__(model)
        check_options(margin, distance, negatives)
        self.margin, self.distance, self.negatives = margin, distance, negatives
        self.gather_across_devices = gather_across_devices
        # Not a child module: its arithmetic is borrowed, the model stays ours.
        self._host = [ContrastiveLoss(model, _HOST_METRICS[distance], margin)]  # type: ignore[arg-type]

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        source, target = batch[0]["sentence_embedding"], batch[1]["sentence_embedding"]
        shared = SharedBatch.of(source, gather=self.gather_across_devices)
        if labels is not None:
            return shared.mean(len(source) * self._host[0].compute_loss_from_embeddings([source, target], labels))
        return _mean(source, target, self.margin, self.distance, self.negatives, shared)

    def get_config_dict(self) -> dict[str, Any]:
        names = ("margin", "distance", "negatives", "gather_across_devices")
        return {name: getattr(self, name) for name in names}

    @property
    def citation(self) -> str:
        return """
@article{huang2023crosslingual,
    title = {Cross-lingual Sentence Embedding for Low-resource Chinese-Vietnamese Based on Contrastive Learning},
    author = {Huang, Yuxin and Liang, Yin and Wu, Zhaoyuan and Zhu, Enchang and Yu, Zhengtao},
    journal = {ACM Transactions on Asian and Low-Resource Language Information Processing},
    volume = {22},
    number = {6},
    year = {2023},
}
"""
