"""Find the distinct sentences of a text, which are mined once; blank lines are ignored."""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np

from st_xling.utils.cosines import Embeddings
from st_xling.utils.text import is_blank

# Soft hyphens, joiners and marks of direction, with which a sentence looks the same. Not those that shape a word.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200e\u200f\u2060\ufeff"))
# Sentences that are kept in memory.
_REMEMBERED = 1 << 12


def folding_key(text: str) -> str:
    """Return the text in NFC, white space stripped and each run of it one space: equal sentences have equal keys.

    Differences that a reader sees are kept: case, width and punctuation. The key of a text without any visible
    character is empty.
    """
    if not text.isascii():
        text = "" if is_blank(text) else unicodedata.normalize("NFC", text.translate(_INVISIBLE))
    return " ".join(text.split())


class UniqueSentences(Sequence[str]):
    """Distinct sentences of a text, in the order of their first rows; blank ones are ignored.

    Sentences are equal if they have the same :func:`folding_key`, by 64 bits of its BLAKE2b hash: the chance that any
    two of ten million distinct ones share a hash is below :math:`10^{-5}`. The text is read once, front to back, with
    about 48 bytes a row in memory; then 8 are kept for each row and each distinct sentence, which is read from the text
    when it is needed.

    Args:
        text: Sentences by row, readable several times.
        name: Name of the text in an error.

    Raises:
        ValueError: If all sentences are blank.

    Attributes:
        text: As passed.
        rows: First row of each distinct sentence, ascending, int64. *Shape:* ``(distinct,)``
    Example:
        >>> sentences = UniqueSentences(["Ja.", "", "Nein.", " Ja. "], "the text")
        >>> list(sentences), sentences.members(0), sentences.place_of.tolist()
        (['Ja.', 'Nein.'], [0, 3], [0, -1, 1, 0])
    """

    def __init__(self, text: Sequence[str], name: str) -> None:
        self.text = text
        hashed = array("Q")
        for sentence in text:
            key = folding_key(sentence).encode("utf-8", "surrogatepass")
            # Zero stands for a blank sentence.
            digest = hashlib.blake2b(key, digest_size=8).digest() if key else bytes(8)
            hashed.frombytes(digest)
        hashes = np.frombuffer(hashed, dtype=np.uint64)
        rows = np.flatnonzero(hashes)
        if not len(rows):
            raise ValueError(f"{name} must hold a sentence that is not blank: got {len(text)} blank ones.")
        _, firsts, numbers = np.unique(hashes[rows], return_index=True, return_inverse=True)
        numbers = np.argsort(np.argsort(firsts))[numbers]  # distinct sentences, numbered by their first rows
        # Rows by distinct sentence, and where each of these begins among them.
        self._order = rows[np.argsort(numbers, kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
        self.rows = self._order[self._starts[:-1]]
        self._remember_sentences()

    def _remember_sentences(self) -> None:
        # One that is looked at is so again soon, in another candidate.
        self._sentence = lru_cache(_REMEMBERED)(lambda number: self.text[int(self.rows[number])])

    def subset(self, numbers: np.ndarray) -> UniqueSentences:
        """Return some of the distinct sentences, numbered anew in the same order; others count as blank.

        Args:
            numbers: Numbers of the sentences, ascending.
        """
        chosen = copy(self)
        sizes = np.diff(self._starts)[numbers]
        is_chosen = np.zeros(len(self), dtype=bool)
        is_chosen[numbers] = True
        chosen._order = self._order[np.repeat(is_chosen, np.diff(self._starts))]
        chosen._starts = np.concatenate([[0], np.cumsum(sizes)])
        chosen.rows = self.rows[numbers]
        chosen._remember_sentences()
        return chosen

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[index] for index in range(len(self))[number]]
        return self._sentence(number)

    def __iter__(self) -> Iterator[str]:
        is_first = np.zeros(len(self.text), dtype=bool)
        is_first[self.rows] = True
        return compress(self.text, is_first)

    @property
    def blank_rows(self) -> int:
        """Number of rows without a sentence."""
        return len(self.text) - len(self._order)

    def members(self, number: int) -> list[int]:
        """Return all rows of the text with this distinct sentence, ascending."""
        return self._order[self._starts[number] : self._starts[number + 1]].tolist()

    def place(self, number: int) -> str:
        """Return the place of a distinct sentence in its text, as ``file:line`` if the text knows it."""
        row = int(self.rows[number])
        return self.text.place(row) if hasattr(self.text, "place") else f"row {row}"

    @property
    def place_of(self) -> np.ndarray:
        """Distinct sentence of each row of the text, -1 for a blank one, int64. *Shape:* ``(text rows,)``"""
        numbers = np.full(len(self.text), -1, dtype=np.int64)
        numbers[self._order] = np.repeat(np.arange(len(self)), np.diff(self._starts))
        return numbers

    def select(self, embeddings: Embeddings) -> Embeddings:
        """Select the embeddings of the distinct sentences from those of the whole text."""
        return embeddings if len(self.rows) == embeddings.shape[0] else SelectedRows(embeddings, self.rows)


class SelectedRows:
    """Selected rows of embeddings, read when they are indexed.

    Args:
        embeddings: *Shape:* ``(n, dim)``
        rows: int64. *Shape:* ``(m,)``
    """

    ndim = 2

    def __init__(self, embeddings: Embeddings, rows: np.ndarray) -> None:
        self._embeddings = embeddings
        self._rows = rows
        self.shape: tuple[int, ...] = (len(rows), int(embeddings.shape[1]))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return np.asarray(self._embeddings[self._rows[rows]])
