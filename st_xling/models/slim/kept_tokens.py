"""Which tokens stay: those of the text, and those without which the rest would not work.

A text whose tokens all stay is cut into the same tokens as before:

* **WordPiece** takes the longest piece that fits. What it took stays, and nothing longer was there. A word of which one
  place has no piece is unknown as a whole; hence every character of the text stays in both forms, ``c`` and ``##c``, so
  that a word that was never seen, of letters that were, has pieces.
* **BPE** applies the first merge that fits. Where a token stays, so do all merges that result in it, and their parts
  with theirs, down to characters: every step that led to it still does, and no merge comes before one of them that did
  not before.
* **Unigram** takes the best-scored pieces. Scores stay, so what won still stands, with fewer rivals; the piece of the
  lowest score stays since the price of an unknown character hangs on it.

For words that were never seen the single characters of the text stay, and those of ASCII.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from st_xling.models.slim.count_tokens import TokenCounts
from st_xling.models.slim.vocabulary import Vocabulary

REASONS = ("special", "asked for", "in the text", "characters", "parts of others")
"""Why a token stays, in the order in which they are asked."""


@dataclass(frozen=True)
class KeptTokens:
    """Tokens that stay.

    Attributes:
        ids: Their old ids, ascending.
        reasons: How many stay for which of :data:`REASONS`, each token counted once.
        rare: Tokens of the text that came too seldom to stay.
    """

    ids: list[int]
    reasons: dict[str, int]
    rare: int


def kept_tokens(
    vocabulary: Vocabulary,
    counted: TokenCounts,
    *,
    min_count: int = 1,
    special: Iterable[int] = (),
    asked: Iterable[int] = (),
) -> KeptTokens:
    """Choose the tokens that stay.

    Args:
        vocabulary: Of the tokenizer.
        counted: What it made of the text.
        min_count: Tokens that come less often go, unless another reason keeps them.
        special: Ids that stay, beside those that the tokenizer itself needs.
        asked: Ids that the user wants.

    Raises:
        ValueError: ``min_count`` below 1, text without any token.
    """
    if min_count < 1:
        raise ValueError(f"min_count must be 1 or more: got {min_count}; 1 keeps every token of the text.")
    seen = set(np.flatnonzero(counted.counts).tolist())
    if not seen:
        raise ValueError("text is needed: got none with a token in it; give text of every language to be kept.")
    often = set(np.flatnonzero(counted.counts >= min_count).tolist()) | counted.before_unknown
    groups = [vocabulary.structural_ids() | set(special), set(asked), often, _characters(vocabulary, seen)]
    groups.append(_parts(vocabulary, set().union(*groups)))
    kept: set[int] = set()
    reasons = {}
    for reason, group in zip(REASONS, groups):
        reasons[reason] = len(group - kept)
        kept |= group
    return KeptTokens(sorted(kept), reasons, len(seen - kept))


def _characters(vocabulary: Vocabulary, seen: Iterable[int]) -> set[int]:
    """Pieces of one character, for every character that the seen pieces spell, and for ASCII."""
    model = vocabulary.model
    prefix, suffix = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    alphabet = set(string.printable)
    for number in seen:
        piece = vocabulary.pieces.get(number, "")
        alphabet.update(piece.removeprefix(prefix).removesuffix(suffix))
    spelled = {f"{before}{letter}{after}" for letter in alphabet for before in {"", prefix} for after in {"", suffix}}
    return {vocabulary.ids[piece] for piece in spelled if piece in vocabulary.ids}


def _parts(vocabulary: Vocabulary, kept: Iterable[int]) -> set[int]:
    """Parts of all merges that result in a kept token, and their parts; none but for BPE."""
    made_of: dict[int, list[int]] = {}
    for left, right, result in merges(vocabulary):
        made_of.setdefault(result, []).extend((left, right))
    found: set[int] = set()
    waiting = list(kept)
    while waiting:
        for part in made_of.get(waiting.pop(), ()):
            if part not in found:
                found.add(part)
                waiting.append(part)
    return found


def merges(vocabulary: Vocabulary) -> list[tuple[int, int, int]]:
    """Ids of left part, right part and result of each merge of BPE, in order."""
    if vocabulary.kind != "BPE":
        return []
    prefix = vocabulary.model.get("continuing_subword_prefix") or ""
    ids = vocabulary.ids
    return [
        (ids[left], ids[right], ids[left + right.removeprefix(prefix)])
        for left, right in map(as_pair, vocabulary.model["merges"])
    ]


def as_pair(merge: str | list[str]) -> tuple[str, str]:
    """A merge as older files have it, parted by a blank, or as newer ones do."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right
