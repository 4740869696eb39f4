"""Find the distinct sentences of a text, which are mined once; blank lines are ignored."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.text import Files, MiningText, TextSummary, read_rows, validate_text
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import atomic_writer
from st_xling.utils.options import Errors, TextFormat
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


@dataclass(frozen=True, eq=False)
class Deduplication:
    """Groups of rows with the same sentence: 8 bytes for each row, and 8 for each distinct sentence.

    Attributes:
        rows: Number of rows.
        order: Rows that are not blank, by distinct sentence, then ascending, int64. *Shape:* ``(rows not blank,)``
        starts: Place of each distinct sentence's first row in ``order``, and the end, int64. *Shape:* ``(folds + 1,)``
    """

    rows: int
    order: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def representatives(self) -> np.ndarray:
        """First row of each distinct sentence, ascending, int64. *Shape:* ``(folds,)``"""
        return self.order[self.starts[:-1]]

    @property
    def fold_of(self) -> np.ndarray:
        """Distinct sentence of each row, -1 for a blank one, int64. *Shape:* ``(rows,)``"""
        folds = np.full(self.rows, -1, dtype=np.int64)
        folds[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return folds

    def members(self, fold: int) -> list[int]:
        """Return all rows of a distinct sentence, ascending."""
        return self.order[self.starts[fold] : self.starts[fold + 1]].tolist()


def deduplicate(texts: Iterable[str]) -> Deduplication:
    """Find the sentences that have the same :func:`folding_key`, by 64 bits of its BLAKE2b hash; skip blank ones.

    The chance that any two of ten million distinct sentences share a hash is below :math:`10^{-5}`. Texts are read
    once, front to back; about 48 bytes a row are in memory meanwhile.

    Returns:
        Distinct sentences in the order of their first rows.
    Example:
        >>> deduplicate(["Ja.", "", "Nein.", " Ja. "]).fold_of.tolist()
        [0, -1, 1, 0]
    """
    hashed = array("Q")
    for text in texts:
        key = folding_key(text).encode("utf-8", "surrogatepass")
        hashed.frombytes(hashlib.blake2b(key, digest_size=8).digest() if key else bytes(8))
    hashes = np.frombuffer(hashed, dtype=np.uint64)
    rows = np.flatnonzero(hashes)
    _, firsts, folds = np.unique(hashes[rows], return_index=True, return_inverse=True)
    folds = np.argsort(np.argsort(firsts))[folds]  # numbered by their first rows
    starts = np.concatenate([[0], np.cumsum(np.bincount(folds, minlength=len(firsts)))])
    return Deduplication(len(hashes), rows[np.argsort(folds, kind="stable")], starts.astype(np.int64))


class UniqueSentences(Sequence[str]):
    """Distinct sentences of a text, in the order of their first rows; they are read from the text when needed.

    Args:
        text: Sentences by row, readable several times.
        name: Name of the text in an error.
    Raises:
        ValueError: If all sentences are blank.

    Attributes:
        text: As passed.
        rows: First row of each distinct sentence, int64. *Shape:* ``(distinct,)``
    """

    def __init__(self, text: Sequence[str], name: str) -> None:
        self.text = text
        self._folding = deduplicate(text)
        self.rows = self._folding.representatives
        if not len(self.rows):
            raise ValueError(f"{name} must hold a sentence that is not blank: got {len(text)} blank ones.")
        # One that is looked at is so again soon, in another candidate.
        self._sentence = lru_cache(_REMEMBERED)(lambda place: text[int(self.rows[place])])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        return self._sentence(place)

    @property
    def blank_rows(self) -> int:
        """Number of rows without a sentence."""
        return self._folding.rows - len(self._folding.order)

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
        cls, name: str, files: Files, *, format: TextFormat = "lines", errors: Errors = "strict", progress: bool = False
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
        return UniqueSentences(self.text, ", ".join(self.text.files))

    @property
    def signature(self) -> str:
        return f"{self.name}:{','.join(self.summary.files)}@{self.summary.sha256[:8]}"

    def ids(self, place: int) -> list[str]:
        """Return the ids of all rows with a distinct sentence."""
        return [self.text.id(row) for row in self.distinct.members(place)]

    def check_ids(self) -> None:
        """Raise if ids cannot be joined by commas."""
        if self.text.format == "lines":
            return
        for row in read_rows(self.text.files, format=self.text.format, errors=self.text.errors):
            if row.id is not None and "," in row.id:
                raise ValueError(
                    f"{row.path}:{row.line}: expected ids without commas, which join ids in TSV, got {row.id!r}; write "
                    "JSON lines instead (--format jsonl)."
                )
