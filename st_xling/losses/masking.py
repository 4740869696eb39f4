"""BERT's corruption of text: which tokens to hide, and behind what."""

from __future__ import annotations

import unicodedata
from typing import Any

import torch
from torch import Tensor


def mask_tokens(
    input_ids: Tensor,
    maskable: Tensor,
    *,
    mask_id: int,
    vocabulary: int,
    probability: float = 0.15,
    continues_word: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens: 80 % behind the mask token, 10 % behind a random one, 10 % behind themselves.

    Args:
        input_ids: *Shape:* ``(batch, tokens)``
        maskable: True for the tokens that may be hidden. *Shape:* ``(batch, tokens)``
        mask_id: Id of the mask token.
        vocabulary: Random tokens are drawn from ``0 … vocabulary - 1``.
        probability: Share of the maskable tokens to hide, or of the words with ``continues_word``.
        continues_word: True for ids that continue a word; whole words are then hidden together, each of their pieces
            replaced on its own. *Shape:* ``(vocabulary,)``

    Returns:
        The corrupted ids, and True where a token was hidden. *Shape:* ``(batch, tokens)`` both. Draws come from torch's
        global generator.

    Source:
        Devlin et al. 2019, section 3.1; Hu et al. 2021 (AMBER), equation 2.
    """
    draw = torch.rand(input_ids.shape, device=input_ids.device)
    if continues_word is not None:
        draw = draw.gather(1, _word_starts(input_ids, maskable, continues_word))
    hidden = maskable & (draw < probability)
    kind = torch.rand(input_ids.shape, device=input_ids.device)
    random_ids = torch.randint(vocabulary, input_ids.shape, device=input_ids.device)
    corrupted = torch.where(hidden & (kind < 0.8), torch.full_like(input_ids, mask_id), input_ids)
    corrupted = torch.where(hidden & (kind >= 0.8) & (kind < 0.9), random_ids, corrupted)
    return corrupted, hidden


def word_continuations(tokenizer: Any, vocabulary: int) -> Tensor:
    """Which ids continue a word: ``##x`` in WordPiece vocabularies, anything without ``▁`` where words begin with it.

    Args:
        tokenizer: A transformers tokenizer.
        vocabulary: Ids of the encoder, padding rows included.

    Returns:
        *Shape:* ``(vocabulary,)``, bool

    Raises:
        ValueError: The vocabulary marks neither beginnings nor continuations.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(range(min(len(tokenizer), vocabulary))))
    special = set(tokenizer.all_special_tokens)
    if any(token.startswith("##") for token in tokens):
        marks = [token.startswith("##") for token in tokens]
    elif any(token.startswith("▁") for token in tokens):
        marks = [not token.startswith("▁") and token not in special and _in_a_word(token) for token in tokens]
    else:
        raise ValueError(
            "whole-word masking needs a vocabulary that marks words by '##' or '▁': "
            f"{type(tokenizer).__name__} does neither; use whole_words=False."
        )
    return torch.tensor(marks + [False] * (vocabulary - len(marks)))


def _in_a_word(token: str) -> bool:
    """Letters, numbers and marks: vowel signs and accents of their own are part of a word, too."""
    return bool(token) and all(unicodedata.category(character)[0] in "LMN" for character in token)


def _word_starts(input_ids: Tensor, maskable: Tensor, continues_word: Tensor) -> Tensor:
    """Column of the first piece of each token's word. *Shape:* ``(batch, tokens)``"""
    place = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
    continues = continues_word.to(input_ids.device)[input_ids] & maskable
    continues = continues & maskable.roll(1, dims=1)  # what follows a special token begins a word
    continues[:, 0] = False
    return torch.where(continues, torch.zeros_like(place), place).cummax(dim=1).values
