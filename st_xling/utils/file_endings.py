"""Endings of the files that are read and written, in one table: their formats, and how they are compressed.

Nothing is imported here but the standard library, so that commands can check names before anything slow is loaded.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class FileFormat(NamedTuple):
    """Format of the files with an ending.

    Attributes:
        name: Name of the format, as ``--format`` spells those that pairs are written in.
        rows: What one row of the file is: ``"cells"`` in the order of its columns, an object with ``"keys"``, a
            translation ``"unit"`` of several languages, a ``"line"`` of text, a ``"paragraph"`` of a document, or a
            ``"cue"`` of subtitles; ``None`` for files that have no rows, and for those of other programs.
        converter: Command that makes a file that is read out of one that is not; empty if there is none.
    """

    name: str
    rows: Literal["cells", "keys", "unit", "line", "paragraph", "cue"] | None = None
    converter: str = ""


FILE_FORMATS = {
    ".tsv": FileFormat("tsv", "cells"),
    ".csv": FileFormat("csv", "cells"),
    ".jsonl": FileFormat("jsonl", "keys"),
    ".ndjson": FileFormat("jsonl", "keys"),
    ".json": FileFormat("json", "keys"),
    ".parquet": FileFormat("parquet", "keys"),
    ".tmx": FileFormat("tmx", "unit"),
    ".xlf": FileFormat("xliff", "unit"),
    ".xliff": FileFormat("xliff", "unit"),
    ".sdlxliff": FileFormat("xliff", "unit"),
    ".mxliff": FileFormat("xliff", "unit"),
    ".mqxliff": FileFormat("xliff", "unit"),
    ".po": FileFormat("po", "unit"),
    ".txt": FileFormat("text", "line"),
    ".zip": FileFormat("zip"),
    ".yaml": FileFormat("yaml"),
    ".yml": FileFormat("yaml"),
    ".xlsx": FileFormat("xlsx"),
    ".xml": FileFormat("xml"),
    ".epub": FileFormat("epub", "paragraph"),
    ".docx": FileFormat("docx", "paragraph"),
    ".odt": FileFormat("odt", "paragraph"),
    ".html": FileFormat("html", "paragraph"),
    ".htm": FileFormat("html", "paragraph"),
    ".xhtml": FileFormat("html", "paragraph"),
    ".srt": FileFormat("srt", "cue"),
    ".vtt": FileFormat("vtt", "cue"),
    ".ass": FileFormat("ass", converter="pysubs2 --to srt FILE (of pysubs2)"),
    ".ssa": FileFormat("ssa", converter="pysubs2 --to srt FILE (of pysubs2)"),
    ".pdf": FileFormat("pdf", converter="pdftotext FILE (of poppler), which loses headings and footnotes"),
    ".doc": FileFormat("doc", converter="soffice --headless --convert-to docx FILE (of LibreOffice)"),
    ".rtf": FileFormat("rtf", converter="soffice --headless --convert-to docx FILE (of LibreOffice)"),
    ".mobi": FileFormat("mobi", converter="ebook-convert FILE book.epub (of Calibre)"),
    ".azw3": FileFormat("azw3", converter="ebook-convert FILE book.epub (of Calibre)"),
}
"""Ending of a file, without that of its compression, in lower case → its format."""


def endings_of(*names: str) -> tuple[str, ...]:
    """Return the endings of some formats, in the order of the table.

    Example:
        >>> endings_of("json", "jsonl")
        ('.jsonl', '.ndjson', '.json')
    """
    return tuple(ending for ending, file_format in FILE_FORMATS.items() if file_format.name in names)


def endings_of_rows(*kinds: str) -> tuple[str, ...]:
    """Return the endings of the formats with some kinds of rows, in the order of the table.

    Example:
        >>> endings_of_rows("cells")
        ('.tsv', '.csv')
    """
    return tuple(ending for ending, file_format in FILE_FORMATS.items() if file_format.rows in kinds)


JSON_ENDINGS = endings_of("jsonl", "json")
JSON_LINES_ENDINGS = endings_of("jsonl")
YAML_ENDINGS = endings_of("yaml")

KEYED_ENDINGS = endings_of_rows("keys")
PARALLEL_ENDINGS = endings_of_rows("cells", "keys", "unit")
"""Endings of the formats of parallel text."""

DOCUMENT_ENDINGS = endings_of_rows("paragraph", "cue")
"""Endings of the documents and subtitles whose text is read, in one language."""

TEXT_ENDINGS = endings_of_rows("cells", "keys", "unit", "line", "paragraph", "cue")
"""Endings of names that can only be files of text: not folders, beginnings of file names or ids of the Hub."""


class Compression(NamedTuple):
    """How files of an ending are compressed.

    Attributes:
        first_bytes: What such a file begins with, whatever its name is.
        open: Takes a binary stream and ``"rb"`` or ``"wb"``, and returns a stream of the uncompressed bytes.
    """

    first_bytes: re.Pattern[bytes]
    open: Callable[[Any, Literal["rb", "wb"]], Any]


def _open_zstandard(stream: Any, mode: Literal["rb", "wb"]) -> Any:
    import pyarrow  # the standard library has Zstandard from Python 3.14 on

    if mode == "rb":
        return pyarrow.CompressedInputStream(stream, "zstd")
    return pyarrow.CompressedOutputStream(stream, "zstd")


# fsspec has such a table as well, but chooses by the name of a file, and its Zstandard, which needs another library,
# returns a file that was cut off as if it were complete.
COMPRESSIONS = {
    ".gz": Compression(re.compile(rb"\x1f\x8b"), gzip.open),
    ".xz": Compression(re.compile(rb"\xfd7zXZ\x00"), lzma.open),
    ".bz2": Compression(re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.open),
    ".zst": Compression(re.compile(rb"\x28\xb5\x2f\xfd"), _open_zstandard),
}
"""Ending of a compressed file, in lower case → how it is compressed."""
