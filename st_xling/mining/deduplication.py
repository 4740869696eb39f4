"""What of a text is mined: each distinct sentence once, blank lines not at all."""

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


def folding_key(text: str) -> str:
    """What equal sentences have in common: the text in NFC, white space stripped and each run of it one space.

    Nothing that a reader would see as a difference goes: case, width and punctuation stay.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


@dataclass(frozen=True, eq=False)
class Folding:
    """Which rows are the same sentence.

    Attributes:
        representatives: First row of each distinct sentence, ascending, int64. *Shape:* ``(folds,)``
        fold_of: The distinct sentence of each row: a place in ``representatives``, int64. *Shape:* ``(rows,)``
    """

    representatives: np.ndarray
    fold_of: np.ndarray

    def __len__(self) -> int:
        return len(self.representatives)

    def members(self, fold: int) -> np.ndarray:
        """All rows of a distinct sentence, ascending, its representative first. int64. *Shape:* ``(members,)``"""
        rows, starts = self._by_fold
        return rows[starts[fold] : starts[fold + 1]]

    @cached_property
    def _by_fold(self) -> tuple[np.ndarray, np.ndarray]:
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.fold_of, minlength=len(self)), out=starts[1:])
        # A stable sort: members stay in the order of their rows.
        return np.argsort(self.fold_of, kind="stable"), starts


def fold_duplicates(texts: Iterable[str]) -> Folding:
    """Find the sentences that have the same :func:`folding_key`, by 128 bits of its BLAKE2b hash.

    The chance that any two of a billion distinct sentences share a hash is below :math:`10^{-20}`. Texts are read once,
    front to back; some 60 bytes a row are held while it runs, and 16 in the result (8 more once
    :meth:`Folding.members` is called).

    Returns:
        Distinct sentences in the order of their first rows.
    Example:
        >>> fold_duplicates(["Ja.", "Nein.", " Ja. "]).fold_of.tolist()
        [0, 1, 0]
    """
    hashes = array("Q")
    for text in texts:
        hashes.frombytes(hashlib.blake2b(folding_key(text).encode("utf-8", "surrogatepass"), digest_size=16).digest())
    high, low = np.frombuffer(hashes, dtype=np.uint64).reshape(-1, 2).T
    # A stable sort: equal hashes lie side by side, the first row of each group before the others.
    order = np.lexsort((low, high))
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    first = np.empty(len(order), dtype=np.int64)
    first[order] = order[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    is_first = first == np.arange(len(first))
    return Folding(np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[first])


class DistinctText(Sequence[str]):
    """The distinct sentences of a text, in the order of their first rows; the text itself stays where it is.

    Args:
        text: Its sentences by row, readable several times.
        name: What to call it in an error.
        blank_rows: Rows without a sentence, all of them.
    Raises:
        ValueError: If there is no sentence in it but blank ones.

    Attributes:
        text: As passed.
        rows: First row of each distinct sentence, int64. *Shape:* ``(distinct,)``
        place_of: Which distinct sentence each row of the text is, -1 for a blank one, int64. *Shape:* ``(text rows,)``
    """

    def __init__(self, text: Sequence[str], name: str, blank_rows: Sequence[int] = ()) -> None:
        self.text = text
        self._remembered: dict[int, str] = {}
        self._remembered_chars = 0
        first: list[str] = []
        self._folding = fold_duplicates(self._noted(text, first))
        blank = self._folding.fold_of[list(blank_rows[:1])]  # all blank sentences are the same
        self._folds = np.delete(np.arange(len(self._folding)), blank)
        if not len(self._folds):
            raise ValueError(f"{name} must hold a sentence that is not blank: got {len(text)} blank ones.")
        self.rows = self._folding.representatives[self._folds]
        places = np.full(len(self._folding), -1, dtype=np.int64)
        places[self._folds] = np.arange(len(self._folds))
        self.place_of = places[self._folding.fold_of]
        noted = self.rows[: np.searchsorted(self.rows, len(first))].tolist()
        self._remembered = {place: first[row] for place, row in enumerate(noted)}

    def _noted(self, text: Iterable[str], first: list[str]) -> Iterator[str]:
        """All sentences; the first of them are noted, so that a small text need not be read again."""
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
        """All rows of the text with this sentence, ascending."""
        return self._folding.members(int(self._folds[place])).tolist()

    def place(self, place: int) -> str:
        """Where a distinct sentence stands in its text, as ``file:line`` where the text knows that."""
        row = int(self.rows[place])
        return self.text.place(row) if hasattr(self.text, "place") else f"row {row}"

    @property
    def blank_rows(self) -> int:
        return int((self.place_of < 0).sum())

    def write(self, path: Path) -> None:
        """Write the sentences for an encoder, unless they are there: then they are the same."""
        if not path.exists():
            is_first = np.zeros(len(self.place_of), dtype=bool)
            is_first[self.rows] = True
            write_sentences((sentence for sentence, wanted in zip(self.text, is_first) if wanted), path)

    def select(self, embeddings: Embeddings) -> Embeddings:
        """Of embeddings of the whole text, those of the distinct sentences."""
        return embeddings if len(self.rows) == embeddings.shape[0] else SelectedRows(embeddings, self.rows)


def write_sentences(sentences: Iterable[str], path: Path) -> None:
    """A file of ``{"text": …}`` lines, whatever is in the sentences."""
    with atomic_writer(path) as stream:
        for sentence in sentences:
            stream.write(json.dumps({"text": sentence}, ensure_ascii=False).encode("utf-8") + b"\n")


class SelectedRows:
    """Some rows of embeddings, read when they are indexed.

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
    """One of the two texts that are mined, by row and by distinct sentence.

    Attributes:
        name: ``"source"`` or ``"target"``.
        text: Its sentences by row.
        summary: What it holds.
    """

    name: str
    text: MiningText
    summary: TextSummary

    @classmethod
    def open(
        cls, name: str, files: Files, *, format: str = "lines", errors: str = "strict", progress: bool = False
    ) -> TextSide:
        """Read a text once, to find all its faults and where its lines begin.

        Args:
            name: ``"source"`` or ``"target"``.
            files: As for :class:`~st_xling.mining.MiningText`.
            format: As for :class:`~st_xling.mining.MiningText`.
            errors: As for :class:`~st_xling.mining.MiningText`.
            progress: Show a bar on stderr.
        Raises:
            ParallelTextError: For faulty lines, together; for a text without lines.
        """
        summary = validate_text(files, format=format, errors=errors, blank="keep", progress=progress)
        return cls(name, MiningText(files, format=format, errors=errors), summary)

    @cached_property
    def distinct(self) -> DistinctText:
        """The sentences that are mined."""
        return DistinctText(self.text, ", ".join(self.text.files), self.summary.blank_rows)

    @property
    def signature(self) -> str:
        return f"{self.name}:{','.join(self.summary.files)}@{self.summary.sha256[:8]}"

    def ids(self, place: int) -> list[str]:
        """Ids of all rows with a distinct sentence."""
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
