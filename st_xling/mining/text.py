"""Read text to mine: one sentence a line, as it is, with an id, or as JSON; and write lines of TSV.

=========  ================================================  ====================
format     a line                                            id of its sentence
=========  ================================================  ====================
``lines``  the sentence; tabs in it are text                 its row, counted from 1
``bucc``   ``id TAB sentence``; later tabs are text          the line's own
``jsonl``  ``{"id": …, "text": …}``; the id is optional        the line's own, or its row
=========  ================================================  ====================

Several files are read as if they were one. Row ``i``, counted from 0, is the sentence of row ``i`` of the embeddings.
Text stays on the disk: by row it is read through :class:`IndexedLines`, which holds 8 bytes a line.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import shutil
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from st_xling.data.check import FaultLog
from st_xling.utils.console import progress_bar
from st_xling.utils.options import BlankLines, Errors, TextFormat, check_choice
from st_xling.utils.text import (
    SCORED_COLUMNS,
    ParallelTextError,
    decode_line,
    escape_cell,
    is_blank,
    is_scored_header,
    line_text,
    open_bytes,
    raw_lines,
    unescape_cell,
)

Files = str | Path | Sequence[str | Path]
Parsed = TypeVar("Parsed", covariant=True)

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20
_ENOUGH_FAULTS = 1000
_SURROGATE = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    """Sentence of a line, or the fault of the line.

    Attributes:
        path: The file, as the caller named it.
        line: Counted from 1.
        id: ``None`` where the format or the line has none.
        sentence: The sentence.
        fault: Kind and detail of the fault, if any; ``id`` and ``sentence`` are then empty.
    """

    path: str
    line: int
    id: str | None = None
    sentence: str = ""
    fault: tuple[str, str] | None = None


def file_list(files: Files) -> list[str]:
    """Return one file or several as a list of names."""
    names = [files] if isinstance(files, (str, Path)) else list(files)
    if not names:
        raise ValueError("expected at least one text file: got none.")
    if not isinstance(files, (str, Path)) and not any(Path(path).exists() for path in names[:2]):
        raise FileNotFoundError(
            f"expected text files, but there is no file {str(names[0])[:80]!r}. Sentences in memory are mined by "
            "st_xling.mining.mine(source_sentences, target_sentences, model=model)."
        )
    return [str(path) for path in names]


def read_rows(files: Files, *, format: TextFormat = "lines", errors: Errors = "strict") -> Iterator[Row]:
    """Read every line in turn, in constant memory; faulty ones too, so that a caller can gather them.

    Args:
        files: UTF-8 text, plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.
        format: ``"lines"``, ``"bucc"`` or ``"jsonl"``.
        errors: ``"strict"`` or ``"replace"``.
    Raises:
        FileNotFoundError: For a missing file.
        ParallelTextError: For a file that cannot be read on.
    """
    check_choice("format", format, TextFormat)
    check_choice("errors", errors, Errors)
    for path in file_list(files):
        for number, raw in enumerate(raw_lines(path), 1):
            yield _parse_line(raw, path, number, format, errors)


def _parse_line(raw: bytes, path: str, number: int, format: str, errors: str) -> Row:
    def fault(kind: str, detail: str) -> Row:
        return Row(path, number, fault=(kind, detail))

    line, bad_bytes = decode_line(raw, errors=errors)
    if line is None:
        return fault("invalid UTF-8", bad_bytes)
    if format == "lines":
        return Row(path, number, None, line)
    if format == "bucc":
        name, tab, sentence = line.partition("\t")
        if not tab:
            return fault("no tab", "expected id TAB sentence")
        return Row(path, number, name, sentence) if name.strip() else fault("empty id", "expected id TAB sentence")
    try:
        value = json_object(line)
    except ValueError as error:
        return fault("bad JSON", str(error))
    own, text = value.get("id"), value.get("text")
    if not isinstance(text, str):
        return fault("bad JSON", 'expected an object with a string "text"')
    if own == "" or not (own is None or is_id(own)):
        return fault("bad JSON", '"id" must be a string or a whole number')
    own = None if own is None else str(own)
    if _SURROGATE.search(f"{own}{text}"):  # JSON may spell what UTF-8 cannot hold
        if errors == "strict":
            return fault("invalid UTF-8", "half of a surrogate pair")
        own, text = own and _SURROGATE.sub("\ufffd", own), _SURROGATE.sub("\ufffd", text)
    return Row(path, number, own, text)


def json_object(line: str) -> dict[str, Any]:
    """Parse the object of a line of JSON; raises ``ValueError`` for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON: {error}" if line.strip() else "expected JSON, got an empty line") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value


def is_id(value: Any) -> bool:
    """Return whether a JSON value may be an id: a string or a whole number."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


class IndexedLines(Sequence[Parsed]):
    """Lines of files, by row: 8 bytes a line are in memory, the text is read from the disk.

    Subclasses define :meth:`parse`. Reading front to back is several times faster than by row.

    Args:
        files: One file or several, which count as one; a compressed one is unpacked to a temporary file.
    """

    def __init__(self, files: Files) -> None:
        self.files = file_list(files)
        self._streams = [_unpacked(path) for path in self.files]
        self._starts = [_line_starts(stream) for stream in self._streams]
        self._ends = list(accumulate(len(starts) - 1 for starts in self._starts))

    def parse(self, raw: bytes, path: str, number: int) -> Any:
        """Parse line ``number`` of a file, counted from 1."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, row: Any) -> Any:
        """Return a row, or a slice of rows as a list.

        Raises:
            IndexError: Beyond the last row.
            ValueError: For a faulty line.
        """
        rows = range(len(self))[row]
        return [self[number] for number in rows] if isinstance(rows, range) else self.parse(*self.line(rows))

    def __iter__(self) -> Iterator[Parsed]:
        for path in self.files:
            for number, raw in enumerate(raw_lines(path), 1):
                yield self.parse(raw, path, number)

    def line(self, row: int) -> tuple[bytes, str, int]:
        """Return the line of a row as it is, its file, and its number in the file, counted from 1."""
        file, line = self._locate(row)
        start, stop = self._starts[file][line : line + 2].tolist()
        raw = os.pread(self._streams[file].fileno(), stop - start, start)
        return line_text(raw), self.files[file], line + 1

    def place(self, row: int) -> str:
        """Return file and line of a row, as ``file:line``."""
        file, line = self._locate(row)
        return f"{self.files[file]}:{line + 1}"

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    def _locate(self, row: int) -> tuple[int, int]:
        file = bisect_right(self._ends, row)
        return file, row - (self._ends[file - 1] if file else 0)


def _unpacked(path: str) -> IO[bytes]:
    """Open a plain file itself, or a temporary one with the content of a packed file."""
    with open_bytes(path) as stream:
        if isinstance(stream.raw, io.FileIO):
            return Path(path).open("rb")
        file = tempfile.TemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(stream, file, _CHUNK_BYTES)
        return file


def _line_starts(file: IO[bytes]) -> np.ndarray:
    """Find the beginning of each line, and the end of the last one. *Shape:* ``(lines + 1,)``"""
    file.seek(0)
    # It grows in place: a list of arrays would be there twice when they are joined, and leave holes in memory.
    starts, place = array("q", [0]), 0
    while chunk := file.read(_CHUNK_BYTES):
        starts.frombytes((np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")) + place + 1).tobytes())
        place += len(chunk)
    if starts[-1] != place:  # a last line without an end is a line like any other
        starts.append(place)
    return np.frombuffer(starts, dtype=np.int64)


class MiningText(IndexedLines[str]):
    """Sentences by row, read from their files; 8 bytes a line are in memory.

    Args:
        files: As :func:`read_rows`.
        format: As :func:`read_rows`.
        errors: As :func:`read_rows`.
    Example:
        >>> text = MiningText("news.de.gz")                                              # doctest: +SKIP
        >>> text[41], text.id(41), text.place(41)                                        # doctest: +SKIP
        ('Guten Morgen.', '42', 'news.de.gz:42')
    """

    def __init__(self, files: Files, *, format: TextFormat = "lines", errors: Errors = "strict") -> None:
        check_choice("format", format, TextFormat)
        check_choice("errors", errors, Errors)
        self.format, self.errors = format, errors
        super().__init__(files)

    def parse(self, raw: bytes, path: str, number: int) -> str:
        return self._row(raw, path, number).sentence

    def id(self, row: int) -> str:
        """Return the id of a row's sentence."""
        own = None if self.format == "lines" else self._row(*self.line(row)).id  # plain lines have none to read
        return str(row + 1) if own is None else own

    def _row(self, raw: bytes, path: str, number: int) -> Row:
        row = _parse_line(raw, path, number, self.format, self.errors)
        if row.fault is not None:
            raise ValueError(f"{path}:{number}: {row.fault[0]} ({row.fault[1]}); fix the file.")
        return row


@dataclass(frozen=True)
class TextSummary:
    """Size, hash and blank lines of a text.

    Attributes:
        files: Names of the files, without folders.
        rows: Number of sentences.
        sha256: Hash of the sentences, as of :func:`hash_sentences`; ids and compression do not enter.
        blank_rows: Rows whose sentence is empty or white space, counted from 0.
    """

    files: Sequence[str]
    rows: int
    sha256: str
    blank_rows: Sequence[int] = ()


def hash_sentence(digest: Any, sentence: str) -> None:
    """Update a digest with a sentence: its length in bytes, 8 bytes little-endian, then its UTF-8."""
    data = sentence.encode("utf-8")
    digest.update(len(data).to_bytes(8, "little") + data)


def hash_sentences(sentences: Iterable[str]) -> str:
    """Compute the SHA-256 of sentences, each as by :func:`hash_sentence`."""
    digest = hashlib.sha256()
    for sentence in sentences:
        hash_sentence(digest, sentence)
    return digest.hexdigest()


class _SentenceFaults(FaultLog):
    advice: Mapping[str, str] = {
        "invalid UTF-8": "Convert the file (iconv -f <encoding> -t utf-8), or pass errors='replace', --errors replace.",
        "blank line": "Remove these lines, or pass blank='keep' / --blank-lines keep to embed them as empty.",
        "no tab": "For one sentence a line without ids, pass format='lines' / --text-format lines.",
    }


def validate_text(
    files: Files,
    *,
    format: TextFormat = "lines",
    errors: Errors = "strict",
    blank: BlankLines = "error",
    progress: bool = False,
) -> TextSummary:
    """Read the text once, to find all its faults before anything is computed; ids are in memory.

    An empty sentence has no meaning to embed. By default it is an error, because what an encoder makes of it is near
    every short sentence; with ``blank="keep"`` it keeps its row, so that rows and lines still agree, and its row number
    is noted for the miner to leave out.

    Args:
        files: As :func:`read_rows`.
        format: As :func:`read_rows`.
        errors: As :func:`read_rows`.
        blank: ``"error"`` or ``"keep"``.
        progress: Show a bar on stderr.
    Raises:
        ParallelTextError: For faulty lines, together: not UTF-8, without id, blank, an id twice; or without any lines.
        FileNotFoundError: For a missing file.
    """
    check_choice("blank", blank, BlankLines)
    faults = _SentenceFaults(can_skip=False, what="sentences")
    digest, blanks, ids = hashlib.sha256(), array("q"), set[str]()
    rows = with_tabs = 0
    stream = read_rows(files, format=format, errors=errors)
    for row in progress_bar(stream, desc="reading", unit="lines", show=progress):
        rows += 1
        with_tabs += "\t" in row.sentence
        if format == "lines" and row.line == 1:
            _check_first_line(row)
        fault, name = row.fault, row.id or str(rows)
        if fault is None and is_blank(row.sentence):
            blanks.append(rows - 1)
            fault = ("blank line", "") if blank == "error" else None
        if fault is None and format != "lines":
            fault = ("duplicate id", name) if name in ids else None
            ids.add(name)
        if fault is None:
            hash_sentence(digest, row.sentence)
            continue
        faults.add(row.path, row.line, *fault)
        if len(faults.faults) == _ENOUGH_FAULTS:
            faults.or_more = True
            break
    faults.finalize()
    names = file_list(files)
    if not rows:
        raise ParallelTextError(f"expected at least one sentence, got none in {', '.join(names)}; check the file.")
    if format == "lines" and with_tabs == rows:
        logger.warning(
            "%s: every line has a tab, and is read as one sentence. Pass --text-format bucc (format='bucc') for id TAB "
            "sentence; of a table take the column of the sentences (cut -f)",
            ", ".join(names),
        )
    return TextSummary([Path(name).name for name in names], rows, digest.hexdigest(), blanks.tolist())


def _check_first_line(row: Row) -> None:
    if is_scored_header(row.sentence.split("\t")):
        raise ParallelTextError(
            f"{row.path}: expected a sentence a line, got a file of scored pairs ({', '.join(SCORED_COLUMNS)}); take "
            "the sentences of one side: tail -n +2 | cut -f4"
        )
    if row.sentence.startswith("{") and row.sentence.endswith("}"):
        try:
            json_object(row.sentence)
        except ValueError:
            return
        raise ParallelTextError(
            f"{row.path}: expected a sentence a line, got JSON; pass --text-format jsonl (format='jsonl')"
        )


def tsv_line(cells: Iterable[object]) -> str:
    """Join escaped cells to one line, without its line end."""
    return "\t".join(escape_cell(str(cell)) for cell in cells)


def tsv_cells(line: str) -> list[str]:
    """Invert :func:`tsv_line`."""
    return [unescape_cell(cell) for cell in line.split("\t")]
