"""Duplicate sentences folded into one, which is embedded and mined; the rest share its fate."""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: Texts of representatives held at a time while hashes are verified, in characters.
HELD_CHARS = 64 * 2**20


def folding_key(text: str) -> str:
    """What folded sentences have in common: the text in NFC, white space stripped and each run of it one space.

    Nothing that a reader would see as a difference goes: case, width and punctuation stay.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def hash_text(text: str) -> int:
    """64 bits of BLAKE2b of a text: the same on every machine and in every run."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class Folding:
    """Which rows are the same sentence.

    Attributes:
        representatives: First row of each distinct sentence, ascending, int64. *Shape:* ``(folds,)``
        fold_of: The fold of each row: a place in ``representatives``, int64. *Shape:* ``(rows,)``
    """

    representatives: np.ndarray
    fold_of: np.ndarray

    def __len__(self) -> int:
        return len(self.representatives)

    def members(self, fold: int) -> np.ndarray:
        """All rows of a fold, ascending; the first is its representative. int64. *Shape:* ``(members,)``"""
        rows, starts = self._by_fold
        return rows[starts[fold] : starts[fold + 1]]

    @cached_property
    def _by_fold(self) -> tuple[np.ndarray, np.ndarray]:
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.fold_of, minlength=len(self)), out=starts[1:])
        return np.argsort(self.fold_of, kind="stable"), starts


def fold_duplicates(
    texts: Iterable[str], *, hash_text: Callable[[str], int] = hash_text, held_chars: int = HELD_CHARS
) -> Folding:
    """Find the sentences that have the same :func:`folding_key`.

    Texts are read front to back: once for 64-bit hashes, and if any hash repeats, again to compare the texts behind it,
    so that a collision never joins two sentences. Only representatives that have duplicates are held, ``held_chars`` of
    them at a time; more of them take more readings. Beyond that, 17 bytes a row while it runs, and 16 in the result
    (8 more once :meth:`Folding.members` is asked).

    Args:
        texts: Can be read several times, the same each time: a list, a text store; not a generator.
        hash_text: From a key to an int in [0, 2**64).
        held_chars: Characters of text held at a time, at least; one sentence is always held.
    Returns:
        Folds in the order of their first rows.
    Raises:
        ValueError: If ``texts`` can be read only once, or changes between readings.
    Example:
        >>> fold_duplicates(["Ja.", "Nein.", " Ja. "]).fold_of.tolist()
        [0, 1, 0]
    """
    if iter(texts) is texts:
        raise ValueError(
            "texts must be readable several times: got an iterator; pass a list, or an object whose __iter__ starts "
            "anew."
        )
    hashes = array("Q", (hash_text(folding_key(text)) for text in texts))
    first = _first_rows(np.frombuffer(hashes, dtype=np.uint64))
    del hashes
    _verify(texts, first, held_chars)
    is_first = first == np.arange(len(first))
    representatives = np.flatnonzero(is_first)
    return Folding(representatives, (np.cumsum(is_first) - 1)[first])


def _first_rows(hashes: np.ndarray) -> np.ndarray:
    """The first row with the same hash as each row. *Shape:* ``(rows,)``"""
    first = np.empty(len(hashes), dtype=np.int64)
    # Sorted in 256 parts, for the sort of all at once would take 12 bytes a row of its own.
    high = (hashes >> np.uint64(56)).astype(np.uint8)
    for part in range(256):
        rows = np.flatnonzero(high == part)
        if len(rows):
            _, at, inverse = np.unique(hashes[rows], return_index=True, return_inverse=True)
            first[rows] = rows[at][inverse]
    return first


def _verify(texts: Iterable[str], first: np.ndarray, held_chars: int) -> None:
    """Compare every row with the text of its first row; rows that only collide with it get one of their own."""
    repeats = np.flatnonzero(first != np.arange(len(first)))
    shared = np.zeros(len(first), dtype=bool)  # rows that others point at
    shared[first[repeats]] = True
    last_shared = int(first[repeats].max(initial=-1))
    collided: dict[str, int] = {}
    begin = 0
    while begin <= last_shared:
        held: dict[int, str] = {}
        room, end = held_chars, len(first)
        for row, text in enumerate(_same_again(texts, len(first))):
            if shared[row]:
                if begin <= row < end and (room > 0 or not held):
                    held[row] = folding_key(text)
                    room -= len(held[row])
                elif begin <= row:
                    end = min(end, row)
            elif (known := held.get(int(first[row]))) is not None and known != (key := folding_key(text)):
                # Rows come in order, so the first of equal texts is met first.
                first[row] = collided.setdefault(key, row)
        begin = end


def _same_again(texts: Iterable[str], expected: int) -> Iterator[str]:
    row = -1
    for row, text in enumerate(texts):
        if row == expected:
            break
        yield text
    if row + 1 != expected:
        raise ValueError(f"texts must be the same at each reading: got {expected} rows, then another number of them.")
