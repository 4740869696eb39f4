"""Tagged words → what a token classifier reads: the first sub-word of a word carries its tag."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

if TYPE_CHECKING:
    from datasets import Dataset

NO_LABEL = -100
"""What the host's loss passes over."""


@dataclass(frozen=True)
class TaggingRows:
    """Sentences as token ids.

    Attributes:
        pieces: Sentence, first word and number of words of each row: a sentence that is too long is read in pieces, as
            XTREME does, so that every word is judged.
        input_ids: Tokens of each piece, special tokens included.
        places: Where in ``input_ids`` each word's first sub-word stands.
        split: Sentences in more than one piece.
    """

    pieces: list[tuple[int, int, int]]
    input_ids: list[list[int]]
    places: list[list[int]]
    split: int

    def dataset(self, tags: Sequence[Sequence[str]], label_ids: dict[str, int]) -> Dataset:
        """Rows for the host's trainer; all but first sub-words are labelled :data:`NO_LABEL`."""
        from datasets import Dataset

        labels = []
        for (sentence, start, _), ids, places in zip(self.pieces, self.input_ids, self.places):
            row = [NO_LABEL] * len(ids)
            for offset, place in enumerate(places):
                row[place] = label_ids[tags[sentence][start + offset]]
            labels.append(row)
        masks = [[1] * len(ids) for ids in self.input_ids]
        return Dataset.from_dict({"input_ids": self.input_ids, "attention_mask": masks, "labels": labels})


def tagging_rows(tokenizer: Any, sentences: Sequence[Sequence[str]], *, name: str = "tokens") -> TaggingRows:
    """Tokenise sentences word by word.

    Args:
        tokenizer: A fast one; its ``model_max_length`` bounds a piece. A word that it reads as nothing becomes its
            unknown token; one that is longer than a piece is cut.
        sentences: Words of each.
        name: Of the progress bar.
    """
    limit = int(tokenizer.model_max_length)
    room = limit - tokenizer.num_special_tokens_to_add(pair=False)
    rows = TaggingRows([], [], [], 0)
    split = 0
    for number, words in enumerate(tqdm(sentences, desc=name, file=sys.stderr, leave=False)):
        sizes = _sizes(tokenizer, words)
        readable = [word if size else tokenizer.unk_token for word, size in zip(words, sizes)]
        pieces = list(_pieces([min(max(size, 1), room) for size in sizes], room))
        split += len(pieces) > 1
        for start, end in pieces:
            encoded = tokenizer(readable[start:end], is_split_into_words=True, truncation=True, max_length=limit)
            owners = encoded.word_ids()
            rows.pieces.append((number, start, end - start))
            rows.input_ids.append(encoded["input_ids"])
            rows.places.append([owners.index(word) for word in range(end - start)])
    return TaggingRows(rows.pieces, rows.input_ids, rows.places, split)


def _sizes(tokenizer: Any, words: Sequence[str]) -> list[int]:
    """Sub-words of each word."""
    encoded = tokenizer(
        list(words), is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False
    )
    sizes = [0] * len(words)
    for owner in encoded.word_ids():
        sizes[owner] += 1
    return sizes


def _pieces(sizes: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """First word and end of each piece, as few and as long as fit."""
    start = taken = 0
    for place, size in enumerate(sizes):
        if taken + size > room:
            yield start, place
            start, taken = place, 0
        taken += size
    if sizes:
        yield start, len(sizes)
