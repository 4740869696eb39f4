"""A pair of sentences as one sequence, for objectives that read both at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from st_xling.models.backbone import Backbone, cls_mask

Positions = Literal["restarting", "running"]


@dataclass(frozen=True)
class JoinedPairs:
    """``[CLS] x [SEP] y [SEP]``, row by row; padding may stand between the sides and is masked.

    Attributes:
        input_ids: *Shape:* ``(batch, tokens)``
        attention_mask: True for tokens. *Shape:* ``(batch, tokens)``
        position_ids: As the encoder counts them. *Shape:* ``(batch, tokens)``
        segment_ids: 0 for the source, 1 for the target; all 0 without segments. *Shape:* ``(batch, tokens)``
        source: True for the source's words, special tokens left out. *Shape:* ``(batch, tokens)``
        target: The same for the target.
        source_length: Columns of the source side; the target's begin there.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    segment_ids: Tensor
    source: Tensor
    target: Tensor
    source_length: int


def join_pairs(
    parts: Backbone, source: dict[str, Tensor], target: dict[str, Tensor], *, positions: Positions, segments: bool
) -> JoinedPairs:
    """Put the target, without its CLS, behind the source.

    Args:
        parts: The encoder that will read the result.
        source: Column with ``input_ids`` and ``attention_mask``. *Shape:* ``(batch, tokens)``
        target: The same for the other side.
        positions: ``"restarting"`` counts the target's from the beginning again, as XLM does; ``"running"`` goes on
            after the source's, as BERT does.
        segments: Give the target segment 1, as BERT does, where the encoder has two.

    Raises:
        ValueError: Positions run on and the pair is longer than the encoder's.
    """
    first_mask = source["attention_mask"].bool()
    second_mask = target["attention_mask"].bool() & ~cls_mask(target["input_ids"], parts.tokenizer)
    kept = second_mask.any(dim=0)
    second_ids, second_mask = target["input_ids"][:, kept], second_mask[:, kept]
    attention_mask = torch.cat([first_mask, second_mask], dim=1)
    if positions == "restarting":
        own = parts.position_ids(target["attention_mask"])[:, kept]
        position_ids = torch.cat([parts.position_ids(first_mask), own], dim=1)
    else:
        position_ids = parts.position_ids(attention_mask)
        reach = parts.embeddings.position_embeddings.num_embeddings  # type: ignore[union-attr]
        longest = int(position_ids.max()) + 1
        if longest > reach:  # type: ignore[operator]
            raise ValueError(
                f"a pair must fit the encoder's {reach} positions: the longest needs {longest}; shorten "
                "model.max_length, or use positions='restarting'."
            )
    input_ids = torch.cat([source["input_ids"], second_ids], dim=1)
    words = attention_mask & ~_special(input_ids, parts)
    side = torch.zeros_like(words)
    side[:, first_mask.shape[1] :] = True
    table = getattr(parts.embeddings, "token_type_embeddings", None)
    segment_ids = side.long() if segments and table is not None and table.num_embeddings > 1 else side.long() * 0
    cut = first_mask.shape[1]
    return JoinedPairs(input_ids, attention_mask, position_ids, segment_ids, words & ~side, words & side, cut)


def check_positions(positions: str) -> None:
    """Raise ``ValueError`` for positions that :func:`join_pairs` does not know."""
    if positions not in get_args(Positions):
        raise ValueError(f"positions must be one of {get_args(Positions)}: got {positions!r}.")


def _special(input_ids: Tensor, parts: Backbone) -> Tensor:
    special = torch.tensor(sorted(parts.tokenizer.all_special_ids), device=input_ids.device)
    unknown = parts.tokenizer.unk_token_id
    return torch.isin(input_ids, special[special != (-1 if unknown is None else unknown)])
