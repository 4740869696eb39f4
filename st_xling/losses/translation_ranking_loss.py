"""Translation ranking: pick the true translation among the batch's."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from st_xling.losses.base import Batch, CrossLingualLoss, bibtex, warn_once
from st_xling.losses.gather import GatheredBatch, Similarity, batch_of_pairs, similarity_matrix
from st_xling.models.backbones import normalizes, unwrap
from st_xling.models.heads import trained_dtype
from st_xling.utils.options import check_choice


def translation_ranking(
    source: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    scale: float = 20.0,
    similarity: Similarity = "cosine",
    bidirectional: bool = True,
    source_ids: Tensor | None = None,
    target_ids: Tensor | None = None,
    negatives: Tensor | None = None,
    negative_ids: Tensor | None = None,
) -> Tensor:
    r"""Softmax over in-batch translations, true pairs lowered by ``margin``.

    .. math:: L = -\frac{1}{2B} \sum_i \log p(t_i \mid s_i) + \log p(s_i \mid t_i),
        \quad z_{ij} = \mathrm{scale}\,(\cos(s_i, t_j) - \mathrm{margin}\,[i = j])

    With ``bidirectional=False`` it is the first half only, over ``B``.

    Args:
        source: Source-language embeddings. *Shape:* ``(batch, dim)``
        target: Their translations, row-aligned. *Shape:* ``(batch, dim)``
        margin: Additive margin of the true pair, subtracted from its similarity before scaling; 0 or more.
        scale: Inverse temperature, unitless, above 0.
        similarity: ``"cosine"`` or ``"dot"`` (with ``dot``, a scale of 1 is usual).
        bidirectional: Rank sources given a target too, and average.
        source_ids: Equal numbers mark equal source texts. *Shape:* ``(batch,)``
        target_ids: Equal numbers mark equal target texts. *Shape:* ``(batch,)``
            Row ``j`` is no negative of row ``i`` where they share a source or a target text.
        negatives: Hard negatives of the sources, of all processes. *Shape:* ``(negatives, dim)``
        negative_ids: Equal numbers mark equal texts of them and the targets. *Shape:* ``(negatives,)``

    Returns:
        Mean loss in nats. *Shape:* ``()``

    Raises:
        ValueError: Columns of unequal size, an unknown similarity, a negative margin, a scale of 0 or less.

    Source:
        Yang et al. 2019, section 3 (additive margin, both directions); Feng et al. 2022, equation 2;
        Li et al. 2023 (DAP), equation 5.

    Example:
        >>> translation_ranking(torch.eye(2), torch.eye(2), scale=1.0)
        tensor(0.3133)
    """
    _check_ranking_options(margin, scale, similarity)
    batch = batch_of_pairs(source, target)
    true = batch.rows(source.device)
    # Both ways, row j is a false negative of row i where the pairs share a text.
    false = torch.zeros(len(source), batch.total, dtype=torch.bool, device=source.device)
    for ids in (source_ids, target_ids):
        if ids is not None:
            false |= ids[:, None] == batch.gather(ids)[None, :]
    false = false.scatter(1, true[:, None], False)

    def logits(queries: Tensor, candidates: Tensor) -> Tensor:
        similarities = similarity_matrix(queries, candidates, similarity)
        if margin:
            similarities = similarities - torch.zeros_like(similarities).scatter(1, true[:, None], margin)
        return (scale * similarities).masked_fill(false, -torch.inf)

    block = logits(source, batch.gather(target))
    ranked = block
    if negatives is not None:
        hard = scale * similarity_matrix(source, negatives, similarity)
        if target_ids is not None and negative_ids is not None:
            hard = hard.masked_fill(target_ids[:, None] == negative_ids[None, :], -torch.inf)
        ranked = torch.cat([block, hard], dim=1)
    forward = batch.mean(F.cross_entropy(ranked, true, reduction="sum"))
    if not bidirectional:
        return forward
    # In one process, the way back is the transpose; otherwise these are other rows' columns.
    reverse = block.T if batch.alone else logits(target, batch.gather(source))
    backward = batch.mean(F.cross_entropy(reverse, true, reduction="sum"))
    return (forward + backward) / 2


def _check_ranking_options(margin: float, scale: float, similarity: str) -> None:
    if not scale > 0:
        raise ValueError(f"scale must be above 0: got {scale}; 20 is a temperature of 0.05.")
    if not margin >= 0:
        raise ValueError(f"margin must be 0 or more: got {margin}; LaBSE uses 0.3.")
    check_choice("similarity", similarity, Similarity)


class TranslationRankingLoss(CrossLingualLoss):
    """In-batch ranking of translations (TR), with an additive margin and duplicates kept out of the negatives.

    Args:
        model: The ``SentenceTransformer`` to train.
        margin: Additive margin, LaBSE-style, in units of the similarity.
        scale: Inverse temperature (20 is a temperature of 0.05).
        similarity: ``"cosine"`` or ``"dot"``, which for normalized embeddings also needs a scale of about 20.
        bidirectional: Rank in both directions (LaBSE); ``False`` ranks targets given sources (DAP, equation 5).
        projection: While training, pass embeddings through a dense layer and tanh that belong to the loss and stay out
            of the saved model (the authors' code for DAP, as SimCSE's).
        mask_duplicates: Leave rows out of the negatives that share their source or target text with the true pair.
        hard_negatives: Read columns behind the pair as hard negatives of the sources, for all rows of the batch.

    References:
        - Li et al. 2023, Dual-Alignment Pre-training for Cross-lingual Sentence Embedding, equation 5
        - Yang et al. 2019, Improving Multilingual Sentence Embedding using Bidirectional Dual Encoder with Additive
          Margin Softmax

    Requirements:
        1. Parallel pairs; the larger the batch, the better.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

        With ``hard_negatives`` also (source, target, negative_1, ...).

    Relations:
        - :class:`RepresentationTranslationLoss` adds token-level alignment; their sum is DAP.
        - ST's ``MultipleNegativesRankingLoss`` is this loss without margin and duplicate mask; choose it for
          queries with hard negatives.

    Example:
        >>> from st_xling.losses import TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model, margin=0.3)
        >>> loss([model.preprocess(texts) for texts in (sources, targets)]).backward()
    """

    citation = bibtex("yang2019additive")

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.0,
        scale: float = 20.0,
        similarity: Similarity = "cosine",
        bidirectional: bool = True,
        projection: bool = False,
        mask_duplicates: bool = True,
        hard_negatives: bool = False,
    ) -> None:
        super().__init__(model)
        _check_ranking_options(margin, scale, similarity)
        # The softmax of dot products within [-1, 1] stays near uniform, whatever the encoder learns.
        if similarity == "dot" and scale < 5 and normalizes(model):
            warn_once(
                f"the model normalizes its embeddings: dot products times {scale:g} hardly tell translations from "
                "other sentences. Use similarity cosine and scale 20."
            )
        self.margin = margin
        self.scale = scale
        self.similarity = similarity
        self.bidirectional = bidirectional
        self.mask_duplicates = mask_duplicates
        self.hard_negatives = hard_negatives
        self.max_columns = None if hard_negatives else 2
        self.projection = _new_projection(model) if projection else None

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        if not self.hard_negatives:
            batch = batch[:2]
        embeddings = [column["sentence_embedding"] for column in batch]
        if self.projection is not None:
            embeddings = [self._project(self.projection, column) for column in embeddings]
        ids = [text_ids(column) if self.mask_duplicates else None for column in batch]
        gathered = GatheredBatch.of(embeddings[0])
        if gathered.total == 1:
            warn_once("a batch of one pair has no negatives to rank against: its ranking loss is 0.")
        negatives = [gathered.gather(column) for column in embeddings[2:]]
        negative_ids = [gathered.gather(column) for column in ids[2:] if column is not None]
        all_negatives = torch.cat(negatives) if negatives else None
        all_negative_ids = torch.cat(negative_ids) if negative_ids else None
        return translation_ranking(
            embeddings[0],
            embeddings[1],
            margin=self.margin,
            scale=self.scale,
            similarity=self.similarity,
            bidirectional=self.bidirectional,
            source_ids=ids[0],
            target_ids=ids[1],
            negatives=all_negatives,
            negative_ids=all_negative_ids,
        )

    @staticmethod
    def _project(projection: nn.Module, embeddings: Tensor) -> Tensor:
        weight = next(projection.parameters())
        if embeddings.shape[1] != weight.shape[1]:
            raise ValueError(
                f"the projection takes embeddings of {weight.shape[1]} dimensions: got {embeddings.shape[1]}; leave "
                "projection out where a loss is computed on parts of the embeddings, as by MatryoshkaLoss."
            )
        return projection(embeddings.to(weight.dtype))

    def get_config_dict(self) -> dict[str, Any]:
        return {**super().get_config_dict(), "projection": self.projection is not None}


def _new_projection(model: Any) -> nn.Module:
    """Build a dense layer and tanh on the sentence embedding, drawn as BERT draws its layers."""
    size = unwrap(model).get_embedding_dimension()  # type: ignore[operator]
    dense = nn.Linear(size, size)
    nn.init.normal_(dense.weight, std=0.02)
    nn.init.zeros_(dense.bias)
    weights = next(model.parameters())
    return nn.Sequential(dense, nn.Tanh()).to(weights.device, trained_dtype(weights))


def text_ids(column: dict[str, Tensor]) -> Tensor | None:
    """Number each row's tokens, equally for equal texts. *Shape:* ``(batch,)``, int64; ``None`` without tokens.

    A 64-bit polynomial hash: unlike row numbers it can be compared across processes. Should two texts ever collide,
    one negative is missed.
    """
    tokens = column.get("input_ids")
    if tokens is None or "text_ids" in column:
        return column.get("text_ids")
    tokens = tokens.long() + 1
    starts = column.get("offsets", column.get("cu_seq_lens_q"))
    if starts is not None:  # one row behind the other: a bag of tokens, or a batch without padding
        count = len(column["sentence_embedding"])
        rows = tokens.flatten().tensor_split(starts[1:count].cpu())
        tokens = pad_sequence(list(rows), batch_first=True)
    elif "attention_mask" in column:
        tokens = tokens * column["attention_mask"].long()
    value = torch.zeros(len(tokens), dtype=torch.long, device=tokens.device)
    for position in tokens.unbind(dim=1):
        value = torch.where(position == 0, value, value * 6364136223846793005 + position)
    return value
