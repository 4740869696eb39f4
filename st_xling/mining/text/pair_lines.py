"""A file of sentence pairs, a pair a line, read by row without its text in memory."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from st_xling.data.faults import FaultLog, ParallelTextError
from st_xling.mining.text.lines import LineIndex
from st_xling.mining.text.survey import hash_sentence
from st_xling.utils.text import raw_lines


@dataclass(frozen=True, eq=False)
class PairLines:
    """Tab-separated lines of which two cells are a pair; cells are text as it is, the others are anything.

    Attributes:
        path: The file, plain or compressed.
        sides: Both columns, by row.
        sha256: Hash of the pairs.
    """

    path: Path
    sides: tuple[PairColumn, PairColumn]
    sha256: str

    @classmethod
    def open(cls, path: str | Path, *, columns: tuple[int, int] = (0, 1)) -> PairLines:
        """Read the file once, to find all its faults.

        Args:
            path: The file.
            columns: Where source and target are, counted from 0.
        Raises:
            ParallelTextError: For lines that are not UTF-8 or have too few cells, together; for a file without lines.
        """
        if len(columns) != 2 or columns[0] == columns[1] or min(columns) < 0:
            raise ValueError(f"columns must be two different positions counted from 0: got {columns}; as in (0, 1).")
        faults, digest = FaultLog(can_skip=False), hashlib.sha256()
        blank_rows = array("q"), array("q")
        count = 0
        for number, raw in enumerate(raw_lines(path), 1):
            count = number
            try:
                cells = raw.decode("utf-8").split("\t")
            except UnicodeDecodeError as error:
                faults.add(path, number, "invalid UTF-8", f"byte 0x{raw[error.start]:02x} at byte {error.start + 1}")
                continue
            if len(cells) <= max(columns):
                faults.add(
                    path, number, "wrong column count", f"expected at least {max(columns) + 1}, got {len(cells)}"
                )
                continue
            for side, column in enumerate(columns):
                hash_sentence(digest, cells[column])
                if not cells[column].strip():
                    blank_rows[side].append(number - 1)
        faults.settle()
        if not count:
            raise ParallelTextError(f"expected at least one pair, got none in {path}; check the file.")
        index = LineIndex(path)
        source, target = (PairColumn(Path(path), index, *side) for side in zip(columns, blank_rows))
        return cls(Path(path), (source, target), digest.hexdigest())

    def __len__(self) -> int:
        return len(self.sides[0])

    def lines(self) -> Iterator[bytes]:
        """All lines in turn, without their ends."""
        return raw_lines(self.path)

    def close(self) -> None:
        self.sides[0].file_lines.close()


@dataclass(frozen=True, eq=False)
class PairColumn(Sequence[str]):
    """One side's sentences.

    Attributes:
        path: The file.
        file_lines: Its lines.
        column: Where the side is.
        blank_rows: Rows without a sentence.
    """

    path: Path
    file_lines: LineIndex
    column: int
    blank_rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.file_lines)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} pairs")
        return self._cell(self.file_lines[row % len(self)])

    def __iter__(self) -> Iterator[str]:
        return map(self._cell, raw_lines(self.path))

    def place(self, row: int) -> str:
        """File and line of a row."""
        return f"{self.path}:{row + 1}"

    def _cell(self, raw: bytes) -> str:
        return raw.decode("utf-8").split("\t")[self.column]
