"""Find the distinct sentences of a text, which are mined once; blank lines are ignored."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.text import Files, MiningText, TextSummary, read_rows, validate_text
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import atomic_writer

# Characters of sentences that are in memory: one that is looked at is so again soon, in another candidate.
_REMEMBERED_CHARS = 1 << 20

_ROWS_AT_ONCE = 1 << 16


def folding_key(text: str) -> str:
    """Return the text in NFC, white space stripped and each run of it one space: equal sentences have equal keys.

    Differences that a reader sees are kept: case, width and punctuation.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


@dataclass(frozen=True, eq=False)
class Deduplication:
    """Groups of rows with the same sentence: 8 bytes for each distinct one, and 16 for each row that repeats one.

    Attributes:
        rows: Number of rows.
        representatives: First row of each distinct sentence, ascending, int64. *Shape:* ``(folds,)``
        repeats: The other rows, by distinct sentence, then ascending, int64. *Shape:* ``(repeats,)``
        repeated: Distinct sentence of each of these, as an index into ``representatives``. *Shape:* ``(repeats,)``
    """

    rows: int
    representatives: np.ndarray
    repeats: np.ndarray
    repeated: np.ndarray

    def __len__(self) -> int:
        return len(self.representatives)

    @property
    def fold_of(self) -> np.ndarray:
        """Distinct sentence of each row, -1 for an ignored one, int64. *Shape:* ``(rows,)``"""
        folds = np.full(self.rows, -1, dtype=np.int64)
        folds[self.representatives] = np.arange(len(self))
        folds[self.repeats] = self.repeated
        return folds

    def members(self, fold: int) -> list[int]:
        """Return all rows of a distinct sentence, ascending."""
        start, stop = self.repeated.searchsorted(fold), self.repeated.searchsorted(fold, side="right")
        return [self.representatives.item(fold), *self.repeats[start:stop].tolist()]

    def without(self, row: int) -> Deduplication:
        """Remove the distinct sentence whose first row this is."""
        fold = np.searchsorted(self.representatives, row)
        others = self.repeated != fold
        repeated = self.repeated[others]
        return Deduplication(
            self.rows, np.delete(self.representatives, fold), self.repeats[others], repeated - (repeated > fold)
        )


def deduplicate(texts: Iterable[str]) -> Deduplication:
    """Find the sentences that have the same :func:`folding_key`, by 128 bits of its BLAKE2b hash.

    The chance that any two of a billion distinct sentences share a hash is below :math:`10^{-20}`. Texts are read once,
    front to back; about 40 bytes a row are in memory meanwhile.

    Returns:
        Distinct sentences in the order of their first rows.
    Example:
        >>> deduplicate(["Ja.", "Nein.", " Ja. "]).fold_of.tolist()
        [0, 1, 0]
    """
    hashes = array("Q")
    for text in texts:
        hashes.frombytes(hashlib.blake2b(folding_key(text).encode("utf-8", "surrogatepass"), digest_size=16).digest())
    high, low = np.frombuffer(hashes, dtype=np.uint64).reshape(-1, 2).T
    # A stable sort: equal hashes lie side by side, the first row of each group before the others.
    order = np.lexsort((low, high))
    is_repeat = np.zeros(len(order), dtype=bool)
    for start in range(1, len(order), _ROWS_AT_ONCE):
        one, other = (of[order[start - 1 : start + _ROWS_AT_ONCE]] for of in (high, low))
        is_repeat[start : start + _ROWS_AT_ONCE] = (one[1:] == one[:-1]) & (other[1:] == other[:-1])
    del high, low, hashes
    repeats = order[is_repeat]
    starts = np.flatnonzero(~is_repeat)
    firsts = order[starts[np.searchsorted(starts, np.flatnonzero(is_repeat)) - 1]]
    is_first = np.ones(len(order), dtype=bool)
    is_first[repeats] = False
    representatives = np.flatnonzero(is_first)
    by_fold = np.lexsort((repeats, firsts))
    return Deduplication(
        len(order), representatives, repeats[by_fold], np.searchsorted(representatives, firsts[by_fold])
    )


class UniqueSentences(Sequence[str]):
    """Distinct sentences of a text, in the order of their first rows; they are read from the text when needed.

    Args:
        text: Sentences by row, readable several times.
        name: Name of the text in an error.
        blank_rows: All rows without a sentence, ascending.
    Raises:
        ValueError: If all sentences are blank.

    Attributes:
        text: As passed.
        rows: First row of each distinct sentence, int64. *Shape:* ``(distinct,)``
        blank_rows: Number of rows without a sentence.
    """

    def __init__(self, text: Sequence[str], name: str, blank_rows: Sequence[int] = ()) -> None:
        self.text = text
        self._remembered: dict[int, str] = {}
        self._remembered_chars = 0
        first: list[str] = []
        self._folding = deduplicate(self._noted(text, first))
        if len(blank_rows):  # all blank sentences are the same
            self._folding = self._folding.without(blank_rows[0])
        self.blank_rows = len(blank_rows)
        self.rows = self._folding.representatives
        if not len(self.rows):
            raise ValueError(f"{name} must hold a sentence that is not blank: got {len(text)} blank ones.")
        noted = self.rows[: np.searchsorted(self.rows, len(first))].tolist()
        self._remembered = {place: first[row] for place, row in enumerate(noted)}

    def _noted(self, text: Iterable[str], first: list[str]) -> Iterator[str]:
        """Yield all sentences, and keep the first of them, so that a small text is not read again."""
        for sentence in text:
            if self._remembered_chars <= _REMEMBERED_CHARS:
                self._remembered_chars += len(sentence)
                first.append(sentence)
            yield sentence

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        sentence = self._remembered.get(place)
        if sentence is None:
            sentence = self.text[int(self.rows[place])]
            self._remembered_chars += len(sentence)
            if self._remembered_chars > _REMEMBERED_CHARS:
                self._remembered.clear()
                self._remembered_chars = len(sentence)
            self._remembered[place] = sentence
        return sentence

    def members(self, place: int) -> list[int]:
        """Return all rows of the text with this sentence, ascending."""
        return self._folding.members(place)

    def place(self, place: int) -> str:
        """Return the place of a distinct sentence in its text, as ``file:line`` if the text knows it."""
        row = int(self.rows[place])
        return self.text.place(row) if hasattr(self.text, "place") else f"row {row}"

    @property
    def place_of(self) -> np.ndarray:
        """Distinct sentence of each row of the text, -1 for a blank one, int64. *Shape:* ``(text rows,)``"""
        return self._folding.fold_of

    def write(self, path: Path) -> None:
        """Write the sentences for an encoder, unless the file exists: it then has the same."""
        if not path.exists():
            is_first = np.zeros(len(self.text), dtype=bool)
            is_first[self.rows] = True
            write_sentences((sentence for sentence, wanted in zip(self.text, is_first) if wanted), path)

    def select(self, embeddings: Embeddings) -> Embeddings:
        """Select the embeddings of the distinct sentences from those of the whole text."""
        return embeddings if len(self.rows) == embeddings.shape[0] else SelectedRows(embeddings, self.rows)


def write_sentences(sentences: Iterable[str], path: Path) -> None:
    """Write a file of ``{"text": …}`` lines."""
    with atomic_writer(path) as stream:
        for sentence in sentences:
            stream.write(json.dumps({"text": sentence}, ensure_ascii=False).encode("utf-8") + b"\n")


class SelectedRows:
    """Selected rows of embeddings, read when they are indexed.

    Args:
        embeddings: *Shape:* ``(n, dim)``
        rows: int64. *Shape:* ``(m,)``
    """

    ndim = 2

    def __init__(self, embeddings: Embeddings, rows: np.ndarray) -> None:
        self._embeddings, self._rows = embeddings, rows
        self.shape: tuple[int, ...] = (len(rows), int(embeddings.shape[1]))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return np.asarray(self._embeddings[self._rows[rows]])


@dataclass(frozen=True, eq=False)
class TextSide:
    """One of the two texts to mine, by row and by distinct sentence.

    Attributes:
        name: ``"source"`` or ``"target"``.
        text: Sentences by row.
        summary: Rows, hash and blank lines.
    """

    name: str
    text: MiningText
    summary: TextSummary

    @classmethod
    def open(
        cls, name: str, files: Files, *, format: str = "lines", errors: str = "strict", progress: bool = False
    ) -> TextSide:
        """Read a text once, to find all faults and the beginnings of its lines.

        Args:
            name: ``"source"`` or ``"target"``.
            files: As for :class:`~st_xling.mining.MiningText`.
            format: As for :class:`~st_xling.mining.MiningText`.
            errors: As for :class:`~st_xling.mining.MiningText`.
            progress: Show a progress bar on stderr.
        Raises:
            ParallelTextError: For faulty lines, all together; for a text without lines.
        """
        summary = validate_text(files, format=format, errors=errors, blank="keep", progress=progress)
        return cls(name, MiningText(files, format=format, errors=errors), summary)

    @cached_property
    def distinct(self) -> UniqueSentences:
        """Distinct sentences, which are mined."""
        return UniqueSentences(self.text, ", ".join(self.text.files), self.summary.blank_rows)

    @property
    def signature(self) -> str:
        return f"{self.name}:{','.join(self.summary.files)}@{self.summary.sha256[:8]}"

    def ids(self, place: int) -> list[str]:
        """Return the ids of all rows with a distinct sentence."""
        return [self.text.id(row) for row in self.distinct.members(place)]

    def check_ids(self) -> None:
        """Raise if ids cannot be joined by commas."""
        if self.summary.format == "lines":
            return
        for row in read_rows(self.text.files, format=self.summary.format, errors=self.summary.errors):
            if row.id is not None and "," in row.id:
                raise ValueError(
                    f"{row.path}:{row.line}: expected ids without commas, which join ids in TSV, got {row.id!r}; write "
                    "JSON lines instead (--format jsonl)."
                )
