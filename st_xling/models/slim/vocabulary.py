"""A fast tokenizer's vocabulary, how often text uses each token, and which tokens stay.

Those of the text stay, and those without which the rest would not work. A text whose tokens all stay is cut into the
same tokens as before:

* **WordPiece** takes the longest piece that fits. What it took stays, and nothing longer was there. A word of which one
  place has no piece is unknown as a whole; hence every character of the text stays in both forms, ``c`` and ``##c``, so
  that a word that was never seen, of letters that were, has pieces.
* **BPE** applies the first merge that fits. Where a token stays, so do all merges that result in it, and their parts
  with theirs, down to characters: every step that led to it still does, and no merge comes before one of them that did
  not before.
* **Unigram** takes the best-scored pieces. Scores stay, so what won still wins, with fewer rivals; the piece of the
  lowest score stays since the price of an unknown character hangs on it.

For words that were never seen the single characters of the text stay, and those of ASCII.
"""

from __future__ import annotations

import itertools
import json
import re
import string
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from tokenizers import pre_tokenizers

from st_xling.utils.console import progress_bar

KINDS = ("WordPiece", "Unigram", "BPE")
"""Model types that can be pruned."""

BATCH_TEXTS = 1000
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


class Vocabulary:
    """A view on a tokenizer's ``tokenizer.json``; the tokenizer stays as it is.

    Args:
        tokenizer: A transformers tokenizer.

    Attributes:
        content: The JSON, parsed.
        kind: One of :data:`KINDS`.
        pieces: Id → piece of the model's own vocabulary.
        added: Id → token that was added to it; some stand in the model's vocabulary as well.
        ids: Piece or token → id.

    Raises:
        ValueError: A tokenizer written in Python, or of another type.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(
                f"a fast tokenizer (tokenizer.json) is needed: {type(tokenizer).__name__} is written in Python, and "
                "its vocabulary cannot be cut; convert it to a fast one first."
            )
        self.content: dict[str, Any] = json.loads(backend.to_str())
        self.model: dict[str, Any] = self.content["model"]
        self.kind = str(self.model.get("type"))
        if self.kind not in KINDS:
            raise ValueError(f"a tokenizer of type {', '.join(KINDS)} is needed: got {self.kind}.")
        listed = self.model["vocab"]
        ids = listed if isinstance(listed, dict) else {piece: number for number, (piece, _) in enumerate(listed)}
        self.pieces: dict[int, str] = {number: piece for piece, number in ids.items()}
        self.added: dict[int, str] = {token["id"]: token["content"] for token in self.content["added_tokens"]}
        self.ids: dict[str, int] = {piece: number for number, piece in (self.pieces | self.added).items()}

    def __len__(self) -> int:
        """One more than the highest id."""
        return max(self.pieces | self.added) + 1

    @property
    def unknown_id(self) -> int | None:
        """Id of the token for what no piece spells."""
        if self.kind == "Unigram":
            return self.model.get("unk_id")
        return self.ids.get(self.model.get("unk_token") or "")

    def structural_ids(self) -> set[int]:
        """Ids that the tokenizer needs whatever the text: added, unknown and padding token, those that the
        post-processor puts in, all bytes where it falls back on them, and Unigram's piece of the lowest score.
        """
        needed = set(self.added)
        if self.unknown_id is not None:
            needed.add(self.unknown_id)
        if self.content["padding"]:
            needed.add(self.content["padding"]["pad_id"])
        for each in processors(self.content["post_processor"]):
            needed.update(number for token in (each.get("special_tokens") or {}).values() for number in token["ids"])
            needed.update(each[place][1] for place in ("cls", "sep") if isinstance(each.get(place), list))
        if self.kind == "Unigram":  # an unknown character costs ten more than the lowest score of all
            listed = self.model["vocab"]
            needed.add(min(range(len(listed)), key=lambda number: (listed[number][1], number)))
        if self.model.get("byte_fallback"):
            needed.update(number for number, piece in self.pieces.items() if _BYTE.fullmatch(piece))
        steps = [*processors(self.content["pre_tokenizer"]), *processors(self.content["normalizer"])]
        if any(step["type"] == "ByteLevel" for step in steps):
            needed.update(self.ids[letter] for letter in pre_tokenizers.ByteLevel.alphabet() if letter in self.ids)
        return needed & (set(self.pieces) | set(self.added))

    def merges(self) -> list[tuple[int, int, int]]:
        """Ids of left part, right part and result of each merge of BPE, in order; none of other types."""
        if self.kind != "BPE":
            return []
        prefix, ids = self.model.get("continuing_subword_prefix") or "", self.ids
        return [(ids[left], ids[right], ids[left + right.removeprefix(prefix)]) for left, right in self.model["merges"]]


def processors(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A post-processor, normalizer or pre-tokenizer, and those inside it."""
    if part:
        yield part
        for key in ("processors", "normalizers", "pretokenizers"):
            for inner in part.get(key) or ():
                yield from processors(inner)


def count_tokens(
    tokenizer: Any,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    *,
    prompts: Iterable[str] = (),
    progress: bool = False,
) -> tuple[np.ndarray, set[int]]:
    """Count the tokens of texts, not truncated, without special tokens.

    Args:
        tokenizer: A fast transformers tokenizer.
        vocabulary: Its vocabulary.
        texts: Sentences or passages; blank ones are ignored.
        prompts: Put before every text in turn, besides the text alone: a word may begin with another piece where it
            does not begin the text.
        progress: Show a bar on stderr.
    Returns:
        Occurrences by id, *shape:* ``(ids,)``; and, of WordPiece, pieces that it takes before it gives up a word as
        unknown. They are not part of the result, but without them it would take shorter ones, and might succeed.
    """
    counts, beginnings = np.zeros(len(vocabulary), dtype=np.int64), ["", *prompts]
    before_unknown: set[int] = set()
    filled = filter(str.strip, progress_bar(texts, desc="counting tokens", unit="texts", show=progress))
    while batch := list(itertools.islice(filled, BATCH_TEXTS)):
        for beginning in beginnings:
            prompted = [beginning + text for text in batch]
            rows = token_ids(tokenizer, prompted)
            flat = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64)
            counts += np.bincount(flat, minlength=len(counts))
            if vocabulary.kind == "WordPiece":
                lost = [text for text, ids in zip(prompted, rows) if vocabulary.unknown_id in ids]
                for text in lost:
                    before_unknown.update(_pieces_before_unknown(tokenizer.backend_tokenizer, vocabulary, text))
    return counts, before_unknown


def token_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Ids of each text, uncut and without special tokens."""
    # Not by the tokenizer's own call, which makes ten times as many Python objects; it sets these two anew.
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return [each.ids for each in backend.encode_batch_fast(texts, add_special_tokens=False)]


def _pieces_before_unknown(backend: Any, vocabulary: Vocabulary, text: str) -> Iterator[int]:
    """Pieces of the words of ``text``, each up to the place where no piece fits."""
    text = backend.normalizer.normalize_str(text) if backend.normalizer else text
    words = backend.pre_tokenizer.pre_tokenize_str(text) if backend.pre_tokenizer else [(text, None)]
    prefix = vocabulary.model["continuing_subword_prefix"]
    for word, _ in words:
        start = 0
        while start < len(word) <= vocabulary.model["max_input_chars_per_word"]:
            before = prefix if start else ""
            # The longest piece that fits, as WordPiece takes it.
            ends = range(len(word), start, -1)
            end = next((end for end in ends if before + word[start:end] in vocabulary.ids), None)
            if end is None:
                break
            yield vocabulary.ids[before + word[start:end]]
            start = end


def kept_tokens(
    vocabulary: Vocabulary, counts: np.ndarray, *, min_count: int = 1, requested: Iterable[int] = ()
) -> list[int]:
    """Choose the tokens to keep, and return their ids, ascending.

    Args:
        vocabulary: Vocabulary of the tokenizer.
        counts: From :func:`count_tokens`. *Shape:* ``(ids,)``
        min_count: Drop tokens that occur less often, unless another reason keeps them.
        requested: Ids to keep in any case.
    Raises:
        ValueError: For ``min_count`` below 1, or text without any token.
    """
    if min_count < 1:
        raise ValueError(f"min_count must be 1 or more: got {min_count}; 1 keeps every token of the text.")
    seen = set(np.flatnonzero(counts).tolist())
    if not seen:
        raise ValueError("text is needed: got none with a token in it; give text of every language to be kept.")
    often = set(np.flatnonzero(counts >= min_count).tolist())
    kept = vocabulary.structural_ids() | set(requested) | often | _characters(vocabulary, seen)
    return sorted(kept | _parts(vocabulary, kept))


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
    for left, right, result in vocabulary.merges():
        made_of.setdefault(result, []).extend((left, right))
    parts: set[int] = set()
    waiting = list(kept)
    while waiting:
        for part in made_of.get(waiting.pop(), ()):
            if part not in parts:
                parts.add(part)
                waiting.append(part)
    return parts
