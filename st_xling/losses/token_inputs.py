"""Inputs of token-level objectives: a pair as one sequence, and text with hidden tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from st_xling.models.backbones import Backbone, cls_mask, right_align, sep_mask
from st_xling.utils.options import check_choice

Positions = Literal["restarting", "running"]


@dataclass(frozen=True)
class TokenInputs:
    """Inputs of an encoder: sentences, or pairs as one sequence.

    Attributes:
        input_ids: *Shape:* ``(batch, tokens)``
        attention_mask: True for tokens. *Shape:* ``(batch, tokens)``
        position_ids: As the encoder counts them. *Shape:* ``(batch, tokens)``
        words: True for words, without special tokens. *Shape:* ``(batch, tokens)``
        segment_ids: Of pairs: 0 for the source, 1 for the target; all 0 without segments. *Shape:* ``(batch, tokens)``
        source_length: Of pairs: columns of the source; the target's begin there.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    words: Tensor
    segment_ids: Tensor | None = None
    source_length: int = 0


def join_pairs(
    parts: Backbone, source: dict[str, Tensor], target: dict[str, Tensor], *, positions: Positions, segments: bool
) -> TokenInputs:
    """Put the target, without its CLS, behind the source: ``[CLS] x [SEP] y [SEP]``, row by row.

    Padding is between the sentences where positions are absolute (BERT), else before them, and is masked.

    Args:
        parts: The encoder that will read the result.
        source: Column with ``input_ids`` and ``attention_mask``. *Shape:* ``(batch, tokens)``
        target: The same for the target.
        positions: ``"restarting"`` counts the target's from the beginning again, as XLM does; ``"running"`` continues
            after the source's, as BERT does.
        segments: Give the target segment 1, as BERT does, where the encoder has two.

    Raises:
        ValueError: Positions run on and the pair is longer than the encoder's.
    """
    first_ids = source["input_ids"]
    first_mask = source["attention_mask"].bool()
    if not parts.bert_shaped:
        first_mask, first_ids = right_align(first_mask, first_ids)
    second_mask = target["attention_mask"].bool() & ~cls_mask(target["input_ids"], parts.tokenizer)
    used = second_mask.any(dim=0)
    second_ids = target["input_ids"][:, used]
    second_mask = second_mask[:, used]
    attention_mask = torch.cat([first_mask, second_mask], dim=1)
    if positions == "restarting":
        second_positions = parts.position_ids(target["attention_mask"])[:, used]
        position_ids = torch.cat([parts.position_ids(first_mask), second_positions], dim=1)
    else:
        position_ids = parts.position_ids(attention_mask)
        table = parts.position_table
        longest = int(position_ids.max()) + 1
        if table is not None and longest > table.num_embeddings:
            raise ValueError(
                f"a pair must fit the encoder's {table.num_embeddings} positions: the longest needs {longest}; shorten "
                "model.max_length, or use positions='restarting'."
            )
    input_ids = torch.cat([first_ids, second_ids], dim=1)
    # The unknown token is a special one to tokenizers, but a word of the text.
    special = sorted({*parts.tokenizer.all_special_ids} - {parts.tokenizer.unk_token_id})
    words = attention_mask & ~torch.isin(input_ids, torch.tensor(special, device=input_ids.device))
    segment_ids = torch.zeros_like(input_ids)
    source_length = first_mask.shape[1]
    segment_table = getattr(parts.embeddings, "token_type_embeddings", None)
    if segments and segment_table is not None and segment_table.num_embeddings > 1:
        segment_ids[:, source_length:] = 1
    return TokenInputs(input_ids, attention_mask, position_ids, words, segment_ids, source_length)


def sentences(parts: Backbone, column: dict[str, Tensor]) -> TokenInputs:
    """A column's sentences one by one, without columns that contain only padding."""
    used = column["attention_mask"].bool().any(dim=0)
    ids = column["input_ids"][:, used]
    mask = column["attention_mask"][:, used].bool()
    ends = cls_mask(ids, parts.tokenizer) | sep_mask(ids, parts.tokenizer)
    return TokenInputs(ids, mask, parts.position_ids(mask), mask & ~ends)


def encode_hidden(parts: Backbone, inputs: TokenInputs, *, mask_id: int, probability: float) -> tuple[Tensor, Tensor]:
    """Hide a share of the words, see :func:`mask_tokens`, and encode the rest.

    Returns:
        States, and True where a word was hidden. *Shape:* ``(batch, tokens, hidden)``, ``(batch, tokens)``
    """
    vocabulary = min(len(parts.tokenizer), parts.word_embeddings.num_embeddings)  # ids that the encoder has
    corrupted, hidden = mask_tokens(
        inputs.input_ids, inputs.words, mask_id=mask_id, vocabulary=vocabulary, probability=probability
    )
    states = parts.encode(
        input_ids=corrupted,
        attention_mask=inputs.attention_mask.long(),
        position_ids=inputs.position_ids,
        token_type_ids=inputs.segment_ids,
    )
    return states, hidden


def usable_positions(parts: Backbone, positions: Positions) -> Positions:
    """``positions``, or ``"running"`` where the encoder only knows the distances between columns."""
    check_choice("positions", positions, Positions)
    # DeBERTa-v3 has neither, and reads no positions of tokens.
    reads_positions = parts.position_table is not None or hasattr(parts.model, "rotary_emb")
    return positions if reads_positions else "running"


def mask_tokens(
    input_ids: Tensor, maskable: Tensor, *, mask_id: int, vocabulary: int, probability: float = 0.15
) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens: 80 % behind the mask token, 10 % behind a random one, 10 % behind themselves.

    Args:
        input_ids: *Shape:* ``(batch, tokens)``
        maskable: True for the tokens that may be hidden. *Shape:* ``(batch, tokens)``
        mask_id: Id of the mask token.
        vocabulary: Random tokens are drawn from ``0 … vocabulary - 1``.
        probability: Share of the maskable tokens to hide.

    Returns:
        The corrupted ids, and True where a token was hidden. *Shape:* ``(batch, tokens)`` both. Draws come from torch's
        global generator.

    Source:
        Devlin et al. 2019, section 3.1; Hu et al. 2021 (AMBER), equation 2.
    """
    # Three draws of the whole shape each, whatever is hidden: the same seed hides the same tokens.
    hidden = maskable & (torch.rand(input_ids.shape, device=input_ids.device) < probability)
    kind = torch.rand(input_ids.shape, device=input_ids.device)
    random_ids = torch.randint(vocabulary, input_ids.shape, device=input_ids.device)
    corrupted = torch.where(hidden & (kind < 0.8), torch.full_like(input_ids, mask_id), input_ids)
    corrupted = torch.where(hidden & (kind >= 0.8) & (kind < 0.9), random_ids, corrupted)
    return corrupted, hidden
