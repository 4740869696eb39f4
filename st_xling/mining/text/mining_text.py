"""Text to be mined: one sentence a line, as it is, with an id, or as JSON.

=========  ================================================  ====================
format     a line                                            id of its sentence
=========  ================================================  ====================
``lines``  the sentence; tabs in it are text                 its row, counted from 1
``bucc``   ``id TAB sentence``; later tabs are text          the line's own
``jsonl``  ``{"id": …, "text": …}``; the id may be left out   the line's own, or its row
=========  ================================================  ====================

Several files are read as if they were one. Row ``i``, counted from 0, is the sentence of row ``i`` of the embeddings.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, overload

from st_xling.mining.text.lines import LineIndex
from st_xling.utils.text import raw_lines

#: Names that ``format`` may take.
FORMATS = ("lines", "bucc", "jsonl")

#: What to do with bytes that are not UTF-8: refuse them, or put U+FFFD in their place.
ERRORS = ("strict", "replace")

Files = str | Path | Sequence[str | Path]

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    """A line's sentence, or what is wrong with the line.

    Attributes:
        path: The file, as the caller named it.
        line: Counted from 1.
        id: ``None`` where the format or the line has none.
        sentence: The sentence.
        fault: What is wrong, if anything; ``id`` and ``sentence`` then say nothing.
        replaced: Whether U+FFFD stands for bytes that were not UTF-8.
    """

    path: str
    line: int
    id: str | None = None
    sentence: str = ""
    fault: tuple[str, str] | None = None
    replaced: bool = False


def file_list(files: Files) -> list[str]:
    """One file or several, as names."""
    given = [files] if isinstance(files, (str, Path)) else list(files)
    if not given:
        raise ValueError("expected at least one text file: got none.")
    return [str(path) for path in given]


def check_options(format: str, errors: str) -> None:
    for name, value, allowed in (("format", format, FORMATS), ("errors", errors, ERRORS)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}: got {value!r}.")


def read_rows(files: Files, *, format: str = "lines", errors: str = "strict") -> Iterator[Row]:
    """Every line in turn, in constant memory; faulty ones too, so that a caller can gather them.

    Args:
        files: UTF-8 text, plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.
        format: ``"lines"``, ``"bucc"`` or ``"jsonl"``.
        errors: ``"strict"`` or ``"replace"``.
    Raises:
        FileNotFoundError: For a missing file.
        ParallelTextError: For a file that cannot be read on, as :func:`~st_xling.utils.text.raw_lines`.
    """
    check_options(format, errors)
    for path in file_list(files):
        for number, raw in enumerate(raw_lines(path), 1):
            yield parse_line(raw, path, number, format=format, errors=errors)


def parse_line(raw: bytes, path: str, number: int, *, format: str, errors: str) -> Row:
    """One line's row."""
    replaced = False
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if errors == "strict":
            detail = f"byte 0x{raw[error.start]:02x} at byte {error.start + 1}"
            return Row(path, number, fault=("invalid UTF-8", detail))
        line, replaced = raw.decode("utf-8", "replace"), True
    if format == "lines":
        return Row(path, number, None, line, None, replaced)
    if format == "jsonl":
        return _parse_json(line, path, number, replaced, errors)
    identifier, tab, sentence = line.partition("\t")
    if not tab:
        return Row(path, number, fault=("no tab", "expected id TAB sentence"))
    if not identifier.strip():
        return Row(path, number, fault=("empty id", "expected id TAB sentence"))
    return Row(path, number, identifier, sentence, None, replaced)


def _parse_json(line: str, path: str, number: int, replaced: bool, errors: str) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Row(path, number, fault=("bad JSON", "an empty line" if not line.strip() else str(error)))
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return Row(path, number, fault=("bad JSON", 'expected an object with a string "text"'))
    identifier, sentence = value.get("id"), value["text"]
    if isinstance(identifier, bool) or not isinstance(identifier, (str, int, type(None))) or identifier == "":
        return Row(path, number, fault=("bad JSON", '"id" must be a string or a whole number'))
    name = None if identifier is None else str(identifier)
    if _HALF_PAIR.search(f"{name or ''}{sentence}"):  # JSON may spell what UTF-8 cannot hold
        if errors == "strict":
            return Row(path, number, fault=("invalid UTF-8", "half of a surrogate pair"))
        name = None if name is None else _HALF_PAIR.sub("\ufffd", name)
        sentence, replaced = _HALF_PAIR.sub("\ufffd", sentence), True
    return Row(path, number, name, sentence, None, replaced)


class MiningText(Sequence[str]):
    """The sentences by row, without their text in memory (8 bytes a line are).

    Args:
        files: As :func:`read_rows`.
        format: As :func:`read_rows`.
        errors: As :func:`read_rows`.
    Example:
        >>> text = MiningText("news.de.gz")                                              # doctest: +SKIP
        >>> text[41], text.id(41), text.place(41)                                        # doctest: +SKIP
        ('Guten Morgen.', '42', 'news.de.gz:42')
    """

    def __init__(self, files: Files, *, format: str = "lines", errors: str = "strict") -> None:
        check_options(format, errors)
        self.files, self.format, self.errors = file_list(files), format, errors
        self._indices = [LineIndex(path) for path in self.files]
        self._ends = list(accumulate(map(len, self._indices)))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        """The sentence of a row, or those of several.

        Raises:
            IndexError: Beyond the last row.
            ValueError: For a faulty line.
        """
        if isinstance(row, slice):
            return [self.row(number).sentence for number in range(*row.indices(len(self)))]
        return self.row(row).sentence

    def __iter__(self) -> Iterator[str]:
        """All sentences in turn, read front to back: several times faster than by row."""
        for row in read_rows(self.files, format=self.format, errors=self.errors):
            yield _without_fault(row).sentence

    def id(self, row: int) -> str:
        """The id of a row's sentence."""
        found = None if self.format == "lines" else self.row(row).id  # plain lines have none to read
        return str(row % len(self) + 1) if found is None else found

    def place(self, row: int) -> str:
        """File and line of a row, as ``file:line``."""
        file, line = self._locate(row)
        return f"{self.files[file]}:{line + 1}"

    def row(self, row: int) -> Row:
        """Sentence and id together."""
        file, line = self._locate(row)
        return _without_fault(
            parse_line(self._indices[file][line], self.files[file], line + 1, format=self.format, errors=self.errors)
        )

    def close(self) -> None:
        for index in self._indices:
            index.close()

    def _locate(self, row: int) -> tuple[int, int]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a text of {len(self)} rows")
        row %= len(self)
        file = bisect_right(self._ends, row)
        return file, row - (self._ends[file - 1] if file else 0)


def _without_fault(row: Row) -> Row:
    if row.fault is not None:
        raise ValueError(f"{row.path}:{row.line}: {row.fault[0]} ({row.fault[1]}); mend the file.")
    return row
