"""How often each token comes in text, of which a thousand lines are in memory at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.models.slim.vocabulary import Vocabulary

BATCH_TEXTS = 1000


@dataclass
class TokenCounts:
    """What a tokenizer makes of some text.

    Attributes:
        counts: Occurrences by id, special tokens not counted. *Shape:* ``(ids,)``
        texts: Texts looked at.
        before_unknown: WordPiece alone: pieces that it takes before it gives up a word as unknown. They are no part of
            the result, but without them it would take shorter ones, and might get through.
    """

    counts: np.ndarray
    texts: int = 0
    before_unknown: set[int] = field(default_factory=set)


def count_tokens(
    tokenizer: Any,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    *,
    prompts: Iterable[str] = (),
    progress: bool = False,
    total: int | None = None,
) -> TokenCounts:
    """Tokenise every text once, uncut.

    Args:
        tokenizer: A fast transformers tokenizer.
        vocabulary: Its own.
        texts: Sentences or passages; those without text are passed over.
        prompts: Put before every text, one after the other, beside the text alone: a word may begin with another piece
            where it does not begin the text.
        progress: Show a bar on stderr.
        total: How many texts there are, for the bar.
    """
    found = TokenCounts(np.zeros(len(vocabulary), dtype=np.int64))
    prompts, iterator = ["", *prompts], iter(texts)
    with tqdm(total=total, desc="counting tokens", unit=" texts", disable=not progress, leave=False) as bar:
        while batch := list(itertools.islice(iterator, BATCH_TEXTS)):
            bar.update(len(batch))
            spoken = [text for text in batch if text.strip()]
            found.texts += len(spoken)
            for prompt in prompts:
                _count(tokenizer, vocabulary, [prompt + text for text in spoken], found)
    return found


def token_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Ids of each text, uncut and without special tokens."""
    if not texts:
        return []
    return tokenizer(
        texts, add_special_tokens=False, truncation=False, padding=False, verbose=False, return_attention_mask=False
    )["input_ids"]


def _count(tokenizer: Any, vocabulary: Vocabulary, texts: list[str], found: TokenCounts) -> None:
    rows = token_ids(tokenizer, texts)
    flat = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64)
    found.counts += np.bincount(flat, minlength=len(found.counts))
    if vocabulary.kind == "WordPiece":
        for text, ids in zip(texts, rows):
            if vocabulary.unknown_id in ids:
                found.before_unknown.update(_pieces_before_unknown(tokenizer.backend_tokenizer, vocabulary, text))


def _pieces_before_unknown(backend: Any, vocabulary: Vocabulary, text: str) -> Iterator[int]:
    """Pieces of the words of ``text``, each up to the place where no piece fits."""
    text = backend.normalizer.normalize_str(text) if backend.normalizer else text
    words = backend.pre_tokenizer.pre_tokenize_str(text) if backend.pre_tokenizer else [(text, None)]
    prefix = vocabulary.model["continuing_subword_prefix"]
    for word, _ in words:
        start = 0
        while start < len(word) <= vocabulary.model["max_input_chars_per_word"]:
            ends = (
                end
                for end in range(len(word), start, -1)
                if (prefix if start else "") + word[start:end] in vocabulary.ids
            )
            end = next(ends, None)
            if end is None:
                break
            yield vocabulary.ids[(prefix if start else "") + word[start:end]]
            start = end
