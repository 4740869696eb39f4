"""Representation translation learning: rebuild the translation's words from the other side's token states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from st_xling.losses.base import Batch, SumAndCount, TokenLevelLoss, bibtex
from st_xling.losses.rows_by_length import row_groups
from st_xling.losses.vocabulary_softmax import head_cross_entropy
from st_xling.models.backbones import Backbone, backbone, cls_mask, right_align
from st_xling.models.heads import HeadStart, RepresentationTranslationHead
from st_xling.utils.languages import canonical_code
from st_xling.utils.options import check_choice

Direction = Literal["target", "source", "both"]
T = TypeVar("T", int, str)


class RepresentationTranslationLoss(TokenLevelLoss):
    r"""Rebuild one side of a pair from the other side's contextual token states (RTL).

    .. math:: L = \frac{1}{S} \sum_{i=1}^{S} CE(g(f_*(x), y)_i, y_i)

    ``g`` is :class:`RepresentationTranslationHead`, fed one sentence's states and MASK embeddings at the rebuilt
    side's positions. CLS of both sides is neither seen nor scored, nor is padding; the mean runs over the scored
    tokens of the batch. The encoder learns through the other sentence's states.

    Args:
        model: The ``SentenceTransformer`` to train, with a bidirectional encoder and a mask token.
        layers: Depth ``K`` of the head, copied from the encoder's last layers.
        direction: Side that is rebuilt: ``"target"`` (non-English → English, the paper's best), ``"source"``, or
            ``"both"``: the batch's rows rebuild the target and the source in turn, and the two means are averaged.
        mask_ratio: Share ρ of the rebuilt tokens that are masked and scored; the others show the encoder's own
            states. 1.0 is best.
        languages: Names of the data's languages; the head knows the rebuilt one by a learned embedding. Without names,
            ``"both"`` tells only source and target apart.
        target_vocabulary: Token ids that the softmax ranges over (the authors' code: the English ones). Other tokens
            are not scored.
        tied: Score with the encoder's word embeddings instead of a copy owned by the head: less memory for parameters,
            but a slower step, since the gradient passes through the whole table.
        head: ``"auto"`` starts the vocabulary head as a copy of the checkpoint's masked-LM head where it has one;
            ``"new"`` from random weights.

    Raises:
        ValueError: Options out of range, a decoder or no transformer, or a tokenizer without a mask token.

    References:
        - Li et al. 2023, Dual-Alignment Pre-training for Cross-lingual Sentence Embedding, section 3.3.2, equations
          4 and 6; direction: table 5; mask ratio: figure 3; K: figure 4.

    Requirements:
        1. Parallel pairs, (non-English, English) for the default direction.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

    Relations:
        - Meant to go with :class:`TranslationRankingLoss`: their sum is DAP. By itself it aligns tokens and
          leaves the sentence embedding untrained.

    Example:
        >>> from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=2)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    max_columns = 2
    citation = bibtex("li2023dap")

    @classmethod
    def resolve_options(
        cls, options: Mapping[str, Any], *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """``target_vocabulary: auto`` is the tokens of the rebuilt columns. Left unset (or ``auto``), ``languages`` are
        those of the data where the rebuilt columns have several; ``languages: []`` names none.
        """
        resolved = dict(options)
        direction = resolved.get("direction", "target")
        if resolved.get("target_vocabulary") == "auto":
            resolved["target_vocabulary"] = sorted(_rebuilt_items(direction, token_ids))

        requested = resolved.get("languages")
        if isinstance(requested, list):
            resolved["languages"] = requested or None
            return resolved
        resolved["languages"] = None
        if languages:
            rebuilt = {canonical_code(name) for name in _rebuilt_items(direction, languages)}
            if requested == "auto" or len(rebuilt) > 1:
                # Every language of the data has an id, also those that are never rebuilt: both columns name theirs.
                # Spellings of one language (en, eng) share it.
                all_names = sorted(_rebuilt_items("both", languages), reverse=True)
                names = {canonical_code(name): name for name in all_names}
                resolved["languages"] = sorted(names.values())
        return resolved

    def __init__(
        self,
        model: nn.Module,
        *,
        layers: int = 2,
        direction: Direction = "target",
        mask_ratio: float = 1.0,
        languages: Sequence[str] | None = None,
        target_vocabulary: Sequence[int] | Tensor | None = None,
        tied: bool = False,
        head: HeadStart = "auto",
    ) -> None:
        super().__init__(model)
        check_choice("direction", direction, Direction)
        if not 0 < mask_ratio <= 1:
            raise ValueError(f"mask_ratio must lie in (0, 1]: got {mask_ratio}; 1.0 masks the whole rebuilt side.")
        if isinstance(languages, str) or (languages is not None and len(set(languages)) != len(languages)):
            raise ValueError(f"languages must be a list of distinct names: got {languages!r}.")
        parts = backbone(model)
        mask_id = parts.mask_id("representation translation")
        self.layers = layers
        self.direction = direction
        self.mask_ratio = mask_ratio
        self.languages = None if languages is None else list(languages)
        self.tied = tied
        self.head_start = head
        if self.languages:
            embedded = len(self.languages)
        else:  # without names, the two sides have one embedding each
            embedded = 2 if direction == "both" else 1
        self.head = RepresentationTranslationHead(
            parts,
            layers=layers,
            languages=embedded,
            target_vocabulary=target_vocabulary,
            tied=tied,
            head=head,
            mask_id=mask_id,
        )

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[SumAndCount]:
        source, target = batch[:2]
        if "token_embeddings" not in source or "attention_mask" not in source:
            raise ValueError(
                "representation translation needs padded token embeddings: this model's columns have none; start from "
                "a transformer, with unpad_inputs=False."
            )
        parts = backbone(self.model)
        # Of "both" row by row in turn, so that mini-batches of an even size cut the batch into the same two halves.
        to_target = to_source = slice(None)
        if self.direction == "both":
            to_target = slice(0, None, 2)
            to_source = slice(1, None, 2)
        sums = []
        if self.direction != "source":
            context = _select_rows(source, to_target)
            rebuilt = _select_rows(target, to_target)
            sums.append(self._rebuild_in_groups(parts, context, rebuilt, side=1))
        if self.direction != "target":
            context = _select_rows(target, to_source)
            rebuilt = _select_rows(source, to_source)
            sums.append(self._rebuild_in_groups(parts, context, rebuilt, side=0))
        return sums

    def _rebuild_in_groups(
        self, parts: Backbone, context: dict[str, Tensor], rebuilt: dict[str, Tensor], side: int
    ) -> SumAndCount:
        """Rebuild rows of like length together, so that the head computes little on padding."""
        lengths = context["attention_mask"].sum(dim=1) + rebuilt["attention_mask"].sum(dim=1)
        groups = row_groups(lengths, rebuilt["token_embeddings"].shape[-1])
        if len(groups) <= 1:  # none for the half of a batch of one row, which is empty
            return self._rebuild(parts, context, rebuilt, side)
        totals = []
        counts = []
        for rows in groups:
            total, count = self._rebuild(parts, _select_rows(context, rows), _select_rows(rebuilt, rows), side)
            totals.append(total)
            counts.append(count)
        return torch.stack(totals).sum(), torch.stack(counts).sum()

    def _rebuild(
        self, parts: Backbone, context: dict[str, Tensor], rebuilt: dict[str, Tensor], side: int
    ) -> SumAndCount:
        """Return the sum of the cross-entropies of the rebuilt tokens, and their number."""
        # The side that is read: its token states, without CLS and columns of padding.
        context_mask = context["attention_mask"].bool() & ~cls_mask(context["input_ids"], parts.tokenizer)
        seen = context_mask.any(dim=0)
        states = context["token_embeddings"][:, seen]
        context_mask = context_mask[:, seen]
        context_positions = parts.position_ids(context["attention_mask"])[:, seen]
        if not parts.bert_shaped:
            context_mask, states, context_positions = right_align(context_mask, states, context_positions)

        # The side that is rebuilt: MASK at its positions, or the encoder's states where they are shown.
        mask = rebuilt["attention_mask"].bool() & ~cls_mask(rebuilt["input_ids"], parts.tokenizer)
        used = mask.any(dim=0)  # neither CLS nor columns of padding cost the head anything
        positions = parts.position_ids(rebuilt["attention_mask"])[:, used]
        ids = rebuilt["input_ids"][:, used]
        mask = mask[:, used]
        # The encoder embeds in its type, the head reads in another: float32 over an encoder in bfloat16.
        masks = self.head.mask_embedding.to(parts.word_embeddings.weight.dtype).expand(*ids.shape, -1)
        queries = parts.embed(inputs_embeds=masks, position_ids=positions).to(self.head.dtype)
        scored = mask
        if self.mask_ratio < 1:
            scored = mask & (torch.rand(mask.shape, device=mask.device) < self.mask_ratio)
            queries = torch.where(scored[..., None], queries, rebuilt["token_embeddings"][:, used].to(queries.dtype))
        if self.head.language_embeddings is not None:
            queries = queries + self.head.language_embeddings(self._language(rebuilt, side))[:, None]

        hidden = self.head(
            torch.cat([states.to(queries.dtype), queries], dim=1),
            torch.cat([context_mask, mask], dim=1),
            states.shape[1],
            backbone=parts,
            position_ids=torch.cat([context_positions, positions], dim=1),
        )
        return head_cross_entropy(self.head.vocabulary_head, parts.word_embeddings, hidden[scored], ids[scored])

    def _language(self, rebuilt: dict[str, Tensor], side: int) -> Tensor:
        """Number of each row's language, or of the rebuilt side. *Shape:* ``(batch,)``"""
        if self.languages is None:
            return torch.full_like(rebuilt["input_ids"][:, 0], side)
        if "language" not in rebuilt:
            raise ValueError(
                "representation translation has language names, but the data set names none: add the columns "
                "source_language and target_language and train with CrossLingualTrainer, or leave out languages=."
            )
        return rebuilt["language"]

    def get_config_dict(self) -> dict[str, Any]:
        vocabulary = self.head.vocabulary_head.vocabulary_index
        scored = None if vocabulary is None else f"{len(vocabulary)} tokens"
        return {**super().get_config_dict(), "target_vocabulary": scored, "head": self.head_start}


def _select_rows(column: dict[str, Tensor], rows: slice | Tensor) -> dict[str, Tensor]:
    return {key: value[rows] for key, value in column.items() if isinstance(value, Tensor)}


def _rebuilt_items(direction: str, columns: Sequence[Iterable[T]]) -> set[T]:
    """Return the items (token ids, languages) of the columns that a direction rebuilds."""
    source = set(columns[0])
    target = set(columns[1])
    if direction == "source":
        return source
    if direction == "target":
        return target
    return source | target
