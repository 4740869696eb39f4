"""What of a text is mined: each distinct sentence once, blank lines not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload, runtime_checkable

import numpy as np

from st_xling.mining.text.folding import fold_duplicates
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import atomic_writer


@runtime_checkable
class PlacedText(Protocol):
    """A text that knows the lines of its rows."""

    def place(self, row: int) -> str: ...


class DistinctText(Sequence[str]):
    """The distinct sentences of a text, in the order of their first rows; the text itself stays where it is.

    Args:
        text: Its sentences by row, readable several times.
        name: What to call it in an error.
        blank_rows: Rows without a sentence, all of them.
    Raises:
        ValueError: If there is no sentence in it but blank ones.

    Attributes:
        text: As given.
        rows: First row of each distinct sentence, int64. *Shape:* ``(distinct,)``
        place_of: Which distinct sentence each row of the text is, -1 for a blank one, int64. *Shape:* ``(text rows,)``
    """

    def __init__(self, text: Sequence[str], name: str, blank_rows: Sequence[int] = ()) -> None:
        self.text = text
        self._folding = fold_duplicates(text)
        first = self._folding.representatives
        blank = self._folding.fold_of[list(blank_rows[:1])]  # one fold has them all
        self._folds = np.delete(np.arange(len(first)), blank)
        if not len(self._folds):
            raise ValueError(f"{name} must hold a sentence that is not blank: got {len(text)} blank ones.")
        self.rows = first[self._folds]
        places = np.full(len(first), -1, dtype=np.int64)
        places[self._folds] = np.arange(len(self._folds))
        self.place_of = places[self._folding.fold_of]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self.text[row] for row in self.rows[place].tolist()]
        return self.text[int(self.rows[place])]

    def members(self, place: int) -> list[int]:
        """All rows of the text with this sentence, ascending."""
        return self._folding.members(int(self._folds[place])).tolist()

    def place(self, place: int) -> str:
        """Where a distinct sentence stands in its text, as ``file:line``."""
        row = int(self.rows[place])
        return self.text.place(row) if isinstance(self.text, PlacedText) else f"row {row}"

    @property
    def blank_rows(self) -> int:
        return int((self.place_of < 0).sum())

    def write(self, path: Path) -> None:
        """Write the sentences for an encoder, unless they are there: then they are the same."""
        if not path.exists():
            write_sentences(self._in_turn(), path)

    def select(self, embeddings: Embeddings) -> Embeddings:
        """Of embeddings of the whole text, those of the distinct sentences."""
        return embeddings if len(self.rows) == embeddings.shape[0] else SelectedRows(embeddings, self.rows)

    def _in_turn(self) -> Iterator[str]:
        wanted = np.zeros(len(self.place_of), dtype=bool)
        wanted[self.rows] = True
        return (sentence for sentence, is_first in zip(self.text, wanted) if is_first)


def write_sentences(sentences: Iterable[str], path: Path) -> None:
    """A file of ``{"text": …}`` lines, whatever is in the sentences."""
    with atomic_writer(path) as stream:
        for sentence in sentences:
            stream.write(json.dumps({"text": sentence}, ensure_ascii=False).encode("utf-8") + b"\n")


class SelectedRows:
    """Some rows of embeddings, read when they are asked for.

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
