"""Read text to mine: one sentence a line, as it is, with an id, or as JSON; and write lines of TSV.

=========  ================================================  ====================
format     a line                                            id of its sentence
=========  ================================================  ====================
``lines``  the sentence; tabs in it are text                 its row, counted from 1
``bucc``   ``id TAB sentence``; later tabs are text          the line's own
``jsonl``  ``{"id": …, "text": …}``; the id is optional        the line's own, or its row
=========  ================================================  ====================

Documents (EPUB, DOCX, ODT, HTML) are read as their sentences, with their numbers as ids; subtitles (SRT, VTT) with
their times as ids.

Row ``i``, counted from 0, is the sentence of row ``i`` of the embeddings.
Text stays on the disk: by row it is read through :class:`IndexedLines`, which holds 8 bytes a line.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from st_xling.data.check import FaultLog, is_unicode
from st_xling.data.documents import Document, is_document, read_document
from st_xling.data.formats import is_id_header
from st_xling.data.line_ids import NEARLY_ALL, LineIds
from st_xling.utils.file_endings import endings_of_rows
from st_xling.utils.identify import main_language
from st_xling.utils.json_text import parse_json
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import TextFormat, check_choice
from st_xling.utils.terminal import progress_bar
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
    unpacked_ending,
)

Parsed = TypeVar("Parsed", covariant=True)

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20
_ENOUGH_FAULTS = 1000
_IDENTIFIED_PARAGRAPHS = 200


class _LineFault(ValueError):
    """A line that is no sentence: kind and detail."""


def _parse_line(raw: bytes, format: TextFormat) -> tuple[str | None, str]:
    """Return id and sentence of a line; the id is ``None`` where the format or the line has none."""
    line, bad_bytes = decode_line(raw)
    if line is None:
        raise _LineFault("invalid UTF-8", bad_bytes)
    if format == "lines":
        return None, line
    if format == "bucc":
        name, tab, sentence = line.partition("\t")
        if not tab:
            raise _LineFault("no tab", "expected id TAB sentence")
        if not name.strip():
            raise _LineFault("empty id", "expected id TAB sentence")
        return name, sentence
    try:
        value = json_object(line)
    except ValueError as error:
        raise _LineFault("bad JSON", str(error)) from None
    json_id = value.get("id")
    text = value.get("text")
    if not isinstance(text, str):
        raise _LineFault("bad JSON", 'expected an object with a string "text"')
    if json_id == "" or not (json_id is None or is_id(json_id)):
        raise _LineFault("bad JSON", '"id" must be a string or a whole number')
    if not is_unicode(f"{json_id}{text}"):
        raise _LineFault("invalid UTF-8", "half of a surrogate pair")
    return None if json_id is None else str(json_id), text


def json_object(line: str) -> dict[str, Any]:
    """Parse the object of a line of JSON; raises ``ValueError`` for anything else."""
    try:
        value = parse_json(line)
    except (ValueError, RecursionError) as error:
        if not line.strip():
            raise ValueError("expected JSON, got an empty line") from None
        raise ValueError(f"expected JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value


def is_id(value: Any) -> bool:
    """Return whether a JSON value may be an id: a string or a whole number."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


class IndexedLines(Sequence[Parsed]):
    """Lines of a file, by row: 8 bytes a line are in memory, the text is read from the disk.

    Subclasses define :meth:`parse`. Reading front to back is several times faster than by row, and needs no index.

    Args:
        path: The file. To read by row, a packed one is unpacked to a temporary file.
    """

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, (str, Path)):
            raise ValueError(
                f"expected a text file, got a {type(path).__name__}. Sentences in memory are mined by "
                "st_xling.mining.mine(source_sentences, target_sentences, model=model)."
            )
        self.path = str(path)
        self._lines_file = self.path

    def parse(self, raw: bytes, path: str, number: int) -> Any:
        """Parse line ``number`` of a file, counted from 1."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._indexed[1]) - 1

    def __getitem__(self, row: Any) -> Any:
        """Return a row, or a slice of rows as a list.

        Raises:
            IndexError: Beyond the last row.
            ValueError: For a faulty line.
        """
        selected = range(len(self))[row]
        if isinstance(selected, range):
            return [self[index] for index in selected]
        return self.parse(*self.line(selected))

    def __iter__(self) -> Iterator[Parsed]:
        for number, raw in enumerate(raw_lines(self._lines_file), 1):
            yield self.parse(raw, self.path, number)

    def line(self, row: int) -> tuple[bytes, str, int]:
        """Return the line of a row as it is, the file, and the number of the line, counted from 1."""
        stream, starts = self._indexed
        start, stop = starts[row : row + 2].tolist()
        raw = os.pread(stream.fileno(), stop - start, start)
        return line_text(raw), self.path, row + 1

    def place(self, row: int) -> str:
        """Return file and line of a row, as ``file:line``."""
        return f"{self.path}:{row + 1}"

    def close(self) -> None:
        if "_indexed" in self.__dict__:
            self._indexed[0].close()

    @cached_property
    def _indexed(self) -> tuple[IO[bytes], np.ndarray]:
        """Unpacked bytes of the file, the beginning of each line, and the end of the last. *Shape:* ``(lines + 1,)``"""
        with open_bytes(self._lines_file) as packed:
            if isinstance(packed.raw, io.FileIO):
                stream: IO[bytes] = Path(self._lines_file).open("rb")  # noqa: SIM115
            else:
                stream = tempfile.TemporaryFile()  # noqa: SIM115
                shutil.copyfileobj(packed, stream, _CHUNK_BYTES)
                stream.seek(0)
        # It grows in place: a list of arrays would be there twice when they are joined, and leave holes in memory.
        starts = array("q", [0])
        offset = 0
        while chunk := stream.read(_CHUNK_BYTES):
            line_ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n"))
            starts.frombytes((line_ends + offset + 1).tobytes())
            offset += len(chunk)
        if starts[-1] != offset:  # a last line without an end is a line like any other
            starts.append(offset)
        return stream, np.frombuffer(starts, dtype=np.int64)


@dataclass(frozen=True)
class TextSummary:
    """Size, hash and blank lines of a text.

    Attributes:
        files: Names of the files, without folders.
        rows: Number of sentences.
        sha256: Hash of the sentences; ids and compression do not enter.
        blank_rows: Rows whose sentence is empty or white space, counted from 0.
    """

    files: Sequence[str]
    rows: int
    sha256: str = ""
    blank_rows: Sequence[int] = ()


def hash_sentence(digest: Any, sentence: str) -> None:
    """Update a digest with a sentence: its length in bytes, 8 bytes little-endian, then its UTF-8."""
    data = sentence.encode("utf-8")
    digest.update(len(data).to_bytes(8, "little") + data)


def summarize(sentences: Iterable[str]) -> TextSummary:
    """Count sentences, and compute their SHA-256, each as by :func:`hash_sentence`."""
    digest = hashlib.sha256()
    rows = 0
    for sentence in sentences:
        hash_sentence(digest, sentence)
        rows += 1
    return TextSummary((), rows, digest.hexdigest())


class _SentenceFaults(FaultLog):
    advice: Mapping[str, str] = {
        "invalid UTF-8": "Convert the file: iconv -f <encoding> -t utf-8; iconv -c -t utf-8 drops what is not UTF-8.",
        "no tab": "For one sentence a line without ids, pass format='lines' / --text-format lines.",
    }


class TextWithIds(ParallelTextError):
    """Lines begin with ids, which would be embedded as text.

    Args:
        fact: What was found, without advice.
    """

    def __init__(self, fact: str) -> None:
        super().__init__(
            f"{fact}; pass --text-format bucc (format='bucc') to read id TAB sentence, or --text-format lines if the "
            "ids are text."
        )
        self.fact = fact


class MiningText(IndexedLines[str]):
    """Sentences by row, read from their file; 8 bytes a line are in memory.

    Args:
        path: UTF-8 text, plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``; or a document or subtitles, see
            :data:`~st_xling.data.documents.DOCUMENTS`, whose sentences are written to a temporary file.
        format: ``"lines"``, ``"bucc"`` or ``"jsonl"``; by default lines, and lines that begin with ids are an error.
            A document has none.
        language: Language by whose rules a document is divided into sentences; by default it is identified.

    Example:
        >>> text = MiningText("news.de.gz")                                              # doctest: +SKIP
        >>> text[41], text.id(41), text.place(41)                                        # doctest: +SKIP
        ('Guten Morgen.', '42', 'news.de.gz:42')
    """

    def __init__(self, path: str | Path, *, format: TextFormat | None = None, language: str | None = None) -> None:
        self.format: TextFormat = format or "lines"
        self._may_have_ids = format is not None
        check_choice("format", self.format, TextFormat)
        super().__init__(path)
        if format is None and unpacked_ending(path) in endings_of_rows("unit"):
            kind = unpacked_ending(path)[1:].upper()
            raise ParallelTextError(
                f"{path}: expected a text, got {kind}, which has pairs: nothing to align or mine. Score them: "
                f"st-xling score {path}"
            )
        if is_document(path):
            if format is not None:
                raise ValueError(f"{path}: a document has no format of lines: got {format!r}; leave it out.")
            self._write_sentences(read_document(path), language)

    def _write_sentences(self, document: Document, language: str | None) -> None:
        """Write the sentences of a document to a file that is there as long as this object."""
        self._may_have_ids = True
        if document.times:
            self.format = "bucc"
            lines = ["\t".join(cue) for cue in zip(document.times, document.texts)]
        else:
            lines = document_sentences(document.texts, language)
        self._temporary_file = tempfile.NamedTemporaryFile(prefix="st-xling-")  # noqa: SIM115
        self._temporary_file.writelines(f"{line}\n".encode() for line in lines)
        self._temporary_file.flush()
        self._lines_file = self._temporary_file.name

    def parse(self, raw: bytes, path: str, number: int) -> str:
        try:
            return _parse_line(raw, self.format)[1]
        except _LineFault as fault:
            kind, detail = fault.args
            raise ValueError(f"{path}:{number}: {kind} ({detail}); fix the file.") from None

    def id(self, row: int) -> str:
        """Return the id of a row's sentence."""
        if self.format == "lines":
            return str(row + 1)
        raw, _, _ = self.line(row)
        name, _ = _parse_line(raw, self.format)
        return str(row + 1) if name is None else name

    def validate(self, *, progress: bool = False) -> TextSummary:
        """Read the text once, to find all its faults before anything is computed; ids are in memory.

        Raises:
            ParallelTextError: For faulty lines, together: not UTF-8, without id, an id twice; or without any lines.
            FileNotFoundError: For a missing file.
        """
        faults = _SentenceFaults(can_skip=False, what="sentences")
        digest = hashlib.sha256()
        blank_rows = array("q")
        ids: set[str] = set()
        line_ids = LineIds()
        rows = rows_with_tab = 0
        lines = progress_bar(raw_lines(self._lines_file), desc="reading", unit="lines", show=progress)
        for number, raw in enumerate(lines, 1):
            if len(faults.faults) >= _ENOUGH_FAULTS:
                faults.or_more = True
                break
            rows += 1
            try:
                name, sentence = _parse_line(raw, self.format)
            except _LineFault as fault:
                faults.add(self.path, number, *fault.args)
                continue
            if number == 1:
                self._check_first_line(name, sentence)
            if self.format == "lines":
                line_ids.add(sentence)
                rows_with_tab += "\t" in sentence
            else:
                unique_name = name or str(rows)
                if unique_name in ids:
                    faults.add(self.path, number, "duplicate id", unique_name)
                ids.add(unique_name)
            if is_blank(sentence):
                blank_rows.append(rows - 1)
            hash_sentence(digest, sentence)
        faults.finalize()
        if not rows:
            raise ParallelTextError(f"expected at least one sentence, got none in {self.path}; check the file.")
        if not self._may_have_ids:
            self._check_ids(line_ids, rows, rows_with_tab)
        return TextSummary([Path(self.path).name], rows, digest.hexdigest(), blank_rows.tolist())

    def _check_first_line(self, name: str | None, sentence: str) -> None:
        """Raise ``ParallelTextError`` for a header, or the first line of a file of another format."""
        if self.format == "bucc" and is_id_header([str(name), *sentence.split("\t")]):
            raise ParallelTextError(
                f"{self.path}: expected id TAB sentence, got the header {name}, {sentence}; take it away: "
                f"tail -n +2 {self.path}"
            )
        if self.format != "lines":
            return
        if is_scored_header(sentence.split("\t")):
            raise ParallelTextError(
                f"{self.path}: expected a sentence a line, got a file of scored pairs ({', '.join(SCORED_COLUMNS)}); "
                "take the sentences of one side: tail -n +2 | cut -f4"
            )
        if sentence.startswith("{") and sentence.endswith("}"):
            try:
                json_object(sentence)
            except ValueError:
                return
            raise ParallelTextError(
                f"{self.path}: expected a sentence a line, got JSON; pass --text-format jsonl (format='jsonl')"
            )

    def _check_ids(self, line_ids: LineIds, rows: int, rows_with_tab: int) -> None:
        """Raise :class:`TextWithIds` if nearly all lines begin with ids, and warn if all have a tab."""
        example = line_ids.example
        if rows_with_tab >= NEARLY_ALL * rows and example is not None:
            raise TextWithIds(
                f"{self.path}: {line_ids.with_ids:,} of {line_ids.lines:,} lines begin with an id and a tab, such as "
                f"{example!r}"
            )
        if rows_with_tab == rows:
            logger.warning(
                "%s: every line has a tab, and is read as one sentence. Pass --text-format bucc (format='bucc') for id "
                "TAB sentence; of a table take the column of the sentences (cut -f)",
                self.path,
            )


def document_sentences(paragraphs: Sequence[str], language: str | None) -> list[str]:
    """Return the sentences of a document, without marks between its paragraphs.

    Args:
        paragraphs: Its paragraphs, each in one line.
        language: Language by whose rules they are divided; by default it is identified.
    """
    from st_xling.mining import split_sentences

    rules = language or main_language(paragraphs[:_IDENTIFIED_PARAGRAPHS])
    sentences = split_sentences("\n\n".join(paragraphs), None if rules == UNKNOWN else rules)
    return list(filter(None, sentences))


def tsv_line(cells: Iterable[object]) -> str:
    """Join escaped cells to one line, without its line end."""
    return "\t".join(escape_cell(str(cell)) for cell in cells)


def tsv_cells(line: str) -> list[str]:
    """Invert :func:`tsv_line`."""
    return [unescape_cell(cell) for cell in line.split("\t")]
