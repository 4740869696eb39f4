r"""Read text files, plain or compressed: a line ends at ``\n``, ``\r\n`` or ``\r\r\n`` and nowhere else.

Other characters that Unicode calls line breaks (U+2028, U+0085, ``\v``, a lone ``\r``) are text, as in every aligned
corpus that counts lines with ``wc -l``.

A tab-separated file that st-xling writes begins with the names of :data:`SCORED_COLUMNS`, and its cells are escaped by
:func:`escape_cell`; other files are read as they are.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import lzma
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from st_xling.utils.file_endings import COMPRESSIONS, DOCUMENT_ENDINGS

#: First columns of a tab-separated file of scored pairs, and the header line by which readers recognize one.
SCORED_COLUMNS = ("score", "source_id", "target_id", "source", "target")

#: Columns, keys or properties of pairs of documents: the name of the document, and the number of the pair in it.
DOCUMENT_COLUMNS = ("document", "position")

#: Column, key or property of mined pairs: the lowest score that was kept, nan or null if all pairs were kept.
THRESHOLD = "threshold"

#: Maximum length of a line. If one is longer, the file is probably not text.
LONGEST_LINE_BYTES = 1 << 24

#: Maximum size of a document that is read into memory as a whole, where it takes several times this size.
LARGEST_DOCUMENT_BYTES = 1 << 27

#: Endings of compressed files. How a file is really compressed is recognized by its first bytes.
PACKED = tuple(COMPRESSIONS)

UTF8_MARK = b"\xef\xbb\xbf"
# Tags at the beginning of XML and SGML corpora. Other tags, such as <b>, may begin a sentence.
_XML = re.compile(
    rb"\s*<(?:!--|(?:\?xml|!doctype|html|tmx|srcset|refset|tstset|mteval|cesalign|doc|chapter|url|talkid|tei(?:corpus|\.2)?"
    rb"|xliff|corpus|text|seg|s(?=\s+id=))[\s>])",
    re.IGNORECASE,
)
# Characters whose Unicode category is a letter, mark or symbol, but which are invisible: fillers, variation selectors.
_FILLERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")  # Unicode categories: control, format, space, line and paragraph separator
_HEAD_BYTES = 1 << 20  # by which the number of lines is estimated
_BUFFER_BYTES = 1 << 16
_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_TO_ESCAPE = str.maketrans(_ESCAPES)
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


class ParallelTextError(ValueError):
    """Text that cannot be read. The message gives the number of faults and lists the first 20.

    Attributes:
        faults: All faults, in the order of the file; empty if the file as a whole cannot be read.
    """

    def __init__(self, message: str, faults: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


@contextmanager
def open_bytes(path: str | Path, *, any_encoding: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file to read its bytes, decompressed if it is compressed with gzip, xz, bzip2 or Zstandard.

    A file in a zip archive is named by the path of the archive and its name there, such as
    ``de-en.txt.zip/TED2020.de-en.de``. If the file is plain, ``stream.raw`` is an ``io.FileIO``.

    Args:
        path: The file.
        any_encoding: Whether to accept UTF-16.

    Raises:
        FileNotFoundError: If there is no such file; the message gives the most similar name.
        ValueError: If the path is a folder, a pipe or a device.
        ParallelTextError: If a compressed file is broken or cut off (which may show only while it is read), is not
            compressed as its ending says, or is a NumPy array, an archive or UTF-16.
    """
    with _open_unpacked(Path(path)) as (_, stream):
        if stream.peek(6).startswith(b"\x93NUMPY"):
            raise ParallelTextError(
                f"{path}: expected text, got a NumPy array; embeddings are passed as such, see --source-embeddings"
            )
        if kind := _archive_kind(stream.peek(512)[:512]):
            raise ParallelTextError(f"{path}: expected text, got a {kind} archive; unpack it, and name a file in it")
        if stream.peek(2).startswith((b"\xff\xfe", b"\xfe\xff")) and not any_encoding:
            raise ParallelTextError(
                f"{path}: expected UTF-8, got invalid UTF-8: the file begins with the byte order mark of UTF-16; "
                "convert it: iconv -f utf-16 -t utf-8"
            )
        yield stream


def _archive_kind(head: bytes) -> str:
    """Return the kind of archive that begins with some bytes; empty if they begin none."""
    if head[257:262] == b"ustar":
        return "tar"
    return "zip" if head.startswith(b"PK\x03\x04") else ""


@contextmanager
def _open_unpacked(path: Path) -> Iterator[tuple[IO[bytes], io.BufferedReader]]:
    """Yield a file (or member of an archive) as it is, and decompressed; name it in errors of decompression."""
    with contextlib.ExitStack() as stack:
        file: IO[bytes]
        unpacked: Any
        if archive_path := _find_archive(path):
            archive = stack.enter_context(zipfile.ZipFile(archive_path))
            file = stack.enter_context(archive.open(_find_member(archive, path)))
            unpacked = file
        elif path.is_dir():
            raise ValueError(f"expected a file of text: {path} is a folder; name a file in it.")
        elif path.exists() and not path.is_file():
            raise ValueError(
                f"expected a file, which is read more than once: {path} is a pipe or a device; write its content to a "
                "file first, and name that."
            )
        elif not path.is_file():
            raise FileNotFoundError(describe_missing(path))
        else:
            plain = stack.enter_context(path.open("rb"))
            file = plain
            unpacked = _unpack(path, plain)

        stream = unpacked
        if not isinstance(stream, io.BufferedReader):
            stream = io.BufferedReader(unpacked, _BUFFER_BYTES)
        try:
            yield file, stream
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            if getattr(error, "errno", None) is not None:  # an error of the system, not of the content
                raise
            raise ParallelTextError(
                f"{path}: expected a whole packed file, got after {file.tell():,} bytes: {error}; fetch it again"
            ) from error


def read_bytes(path: str | Path, *, most: int = LARGEST_DOCUMENT_BYTES, any_encoding: bool = False) -> bytes:
    """Read all bytes of a file, decompressed.

    Args:
        path: The file.
        most: Maximum number of bytes.
        any_encoding: Whether to accept UTF-16.

    Raises:
        ParallelTextError: If there are more than ``most`` bytes, or as in :func:`open_bytes`.
    """
    with open_bytes(path, any_encoding=any_encoding) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ParallelTextError(
            f"{path}: expected a document of at most {most:,} bytes, which is read as a whole, got more; divide it, or "
            "write its rows as JSON lines (.jsonl)"
        )
    return content


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the bytes of every line without its end, see :func:`line_text`.

    Args:
        path: A text file, plain or compressed.

    Raises:
        ParallelTextError: If a line has more than 16 MiB, or as in :func:`open_bytes` and :func:`check_head`.
    """
    with open_bytes(path) as stream:
        check_head(path, stream.peek())
        read_line = partial(stream.readline, LONGEST_LINE_BYTES + 1)
        for number, line in enumerate(iter(read_line, b""), 1):
            if len(line) > LONGEST_LINE_BYTES:
                raise line_too_long(path, number)
            yield line_text(line)


def line_too_long(path: str | Path, number: int) -> ParallelTextError:
    """Return the error for a line of more than :data:`LONGEST_LINE_BYTES`."""
    return ParallelTextError(
        f"{path}:{number}: expected a sentence a line, got a line of more than {LONGEST_LINE_BYTES:,} bytes; is this "
        "text?"
    )


def line_text(line: bytes) -> bytes:
    """Return a line without its end, and without a byte order mark, which any line may have if files were joined."""
    return line.removesuffix(b"\n").rstrip(b"\r").removeprefix(UTF8_MARK)


def check_head(path: str | Path, head: bytes) -> None:
    r"""Raise ``ParallelTextError`` if the beginning of a file looks like XML, or its lines end in a lone ``\r``."""
    has_line_feed = b"\n" in head.rstrip(b"\n")
    if not has_line_feed and head.count(b"\r") > 1:
        raise ParallelTextError(
            f"{path}: expected lines that end in LF, got lines that end in CR alone; convert it: tr '\\r' '\\n'"
        )
    if _XML.match(head.removeprefix(UTF8_MARK)):
        raise ParallelTextError(
            f"{path}: expected a sentence a line; this looks like XML. Name a TMX file .tmx; of SGM take the text of "
            "the segments first: sed -n 's/^<seg[^>]*>\\(.*\\)<.seg>$/\\1/p'"
        )


def decode_line(line: bytes) -> tuple[str | None, str]:
    """Decode a line of :func:`raw_lines`; return its text and ``""``, or ``None`` and the fault if it is not UTF-8.

    Example:
        >>> decode_line(b"caf\\xe9")
        (None, 'byte 0xe9 at byte 4')
    """
    try:
        return line.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return None, f"byte 0x{line[error.start]:02x} at byte {error.start + 1}"


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character, only white space, control and format characters, and fillers.

    Example:
        >>> is_blank(" \u200b\u00ad\u2060"), is_blank("-")
        (True, False)
    """
    stripped = text.strip()
    if not stripped:
        return True
    # For speed: nearly all texts begin with a letter or number, and need no further look.
    if stripped[0].isalnum() and stripped[0] not in _FILLERS:
        return False
    return all(unicodedata.category(letter) in _INVISIBLE or letter in _FILLERS for letter in text)


def is_scored_header(cells: Sequence[str]) -> bool:
    """Return whether cells are the header of a file of scored pairs, in which all cells are escaped."""
    return tuple(cells[: len(SCORED_COLUMNS)]) == SCORED_COLUMNS


def escape_cell(text: str) -> str:
    r"""Escape each backslash, tab, line feed and carriage return as ``\\``, ``\t``, ``\n`` and ``\r``.

    Example:
        >>> print(escape_cell("one\ttwo"))
        one\ttwo
    """
    # Nearly no text has any of these, and a search is ten times as fast as a translation.
    return text.translate(_TO_ESCAPE) if re.search(r"[\\\t\n\r]", text) else text


def unescape_cell(cell: str) -> str:
    r"""Invert :func:`escape_cell`.

    Raises:
        ValueError: For a backslash that begins none of the four escapes.
    """

    def plain(match: re.Match[str]) -> str:
        if match[0] not in _UNESCAPES:
            raise ValueError(
                rf"expected a backslash to begin one of \\ \t \n \r, got {match[0]!r} at character "
                f"{match.start() + 1}; this cell was not written by st-xling. Remove the "
                "header line to read the file as it is."
            )
        return _UNESCAPES[match[0]]

    return re.sub(r"(?s)\\.?", plain, cell) if "\\" in cell else cell


def estimate_lines(path: str | Path) -> int:
    """Estimate the number of lines of a file by its first MiB; exact for shorter files."""
    path = Path(path)
    with _open_unpacked(path) as (file, stream):
        head = stream.read(_HEAD_BYTES)
        bytes_read = file.tell()  # before decompression, as is the size below
    lines = head.count(b"\n")
    if not head.endswith(b"\n"):
        lines += 1
    if len(head) < _HEAD_BYTES:
        return lines

    if archive_path := _find_archive(path):
        with zipfile.ZipFile(archive_path) as archive:
            size = _find_member(archive, path).file_size
    else:
        size = path.stat().st_size
    return max(1, lines * size // max(1, bytes_read))


def file_ending(path: str | Path) -> str:
    """Return the last suffix of a file in lower case; with the one before it if the last is that of a compression.

    Example:
        >>> file_ending("corpus.v2.TSV.gz"), file_ending("corpus.de")
        ('.tsv.gz', '.de')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    is_compressed = bool(suffixes) and suffixes[-1] in PACKED
    n_suffixes = 2 if is_compressed else 1
    return "".join(suffixes[-n_suffixes:])


def unpacked_name(path: str | Path) -> str:
    """Return the name of a file without the ending of its compression."""
    path = Path(path)
    return path.stem if path.suffix.lower() in PACKED else path.name


def text_name(path: str | Path) -> str:
    """Return the name of a file without the ending of its compression, and without that of a text or document.

    Example:
        >>> text_name("book.de.epub"), text_name("report.de.txt.gz"), text_name("corpus.de")
        ('book.de', 'report.de', 'corpus.de')
    """
    name = unpacked_name(path)
    ending = Path(name).suffix
    return name.removesuffix(ending) if ending.lower() in (".txt", *DOCUMENT_ENDINGS) else name


def unpacked_ending(path: str | Path) -> str:
    """Return the ending of a file without that of its compression, in lower case.

    Example:
        >>> unpacked_ending("corpus.v2.TSV.gz"), unpacked_ending("corpus")
        ('.tsv', '')
    """
    return file_ending(unpacked_name(path))


def home_path(path: str | Path) -> Path:
    """Expand ``~`` and ``~user`` to the home folder; the path is unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def plain_or_packed(path: Path) -> Path:
    """Return ``path``, or the compressed file next to it, such as ``path.gz``, if only that exists."""
    if path.is_file():
        return path
    for ending in PACKED:
        packed = path.with_name(path.name + ending)
        if packed.is_file():
            return packed
    return path


def describe_missing(path: str | Path) -> str:
    """Return the message that a file is missing, with the most similar name in its folder."""
    path = Path(path)
    folder = path.parent
    if not folder.is_dir():
        return f"expected a file {path}, but there is no folder {folder}; check the path"
    names = sorted(entry.name for entry in folder.iterdir())
    nearest = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    hint = f"the nearest name there is {nearest[0]}" if nearest else f"the folder holds {len(names)} other entries"
    return f"expected a file {path}, but {folder} has none of that name; {hint}"


def archive_names(path: str | Path) -> list[str]:
    """Return the names of the files in a zip archive.

    Raises:
        ParallelTextError: If it is not an archive, or an entry leads out of it, is a link or has a password.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ParallelTextError(f"{path}: expected a zip archive, got: {error}; fetch it again") from error
    for entry in entries:
        _check_entry(entry, path)
    return [entry.filename for entry in entries if not entry.is_dir()]


def _check_entry(entry: zipfile.ZipInfo, archive: str | Path) -> None:
    """Raise ``ParallelTextError`` for an entry that leads out of its archive, is a link, or has a password.

    The path of an archive, joined with a name such as ``/home/me/notes.de`` or ``../notes.de``, is another file of the
    user, which would be read instead of the entry, and which ``push`` would publish.
    """
    # Names that are absolute, or lead up, are refused both as names of POSIX and of Windows, with its backslashes.
    posix = PurePosixPath(entry.filename)
    windows = PureWindowsPath(entry.filename)
    is_absolute = posix.is_absolute() or bool(windows.anchor)
    if is_absolute or ".." in {*posix.parts, *windows.parts}:
        raise ParallelTextError(
            f"{archive}: expected names of files inside the archive, got {entry.filename!r}, which leads out of it; do "
            "not unpack this archive, fetch it again from where you trust it"
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise ParallelTextError(
            f"{archive}: expected files, got the link {entry.filename!r}; replace it by the file that it stands for"
        )
    if entry.flag_bits & 0x1:  # encrypted
        raise ParallelTextError(f"{archive}: expected files without a password, got {entry.filename!r}; unpack it")


def _find_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """Return the entry of an archive that a path leads to, even if it is stored as ``./NAME``."""
    inner = PurePosixPath(path.relative_to(str(archive.filename)))
    for entry in archive.infolist():
        if PurePosixPath(entry.filename) == inner:
            _check_entry(entry, str(archive.filename))
            return entry
    raise FileNotFoundError(f"{archive.filename} has no file {inner}.")


def _find_archive(path: Path) -> Path | None:
    """Return the zip archive that a path leads into, if any."""
    for folder in path.parents:
        if folder.suffix.lower() == ".zip" and folder.is_file():
            return folder
    return None


def _unpack(path: Path, file: io.BufferedReader) -> Any:
    """Return a stream that decompresses a file, as its first bytes show; the file itself if it is not compressed."""
    head = file.peek(10)[:10]
    for compression in COMPRESSIONS.values():
        if compression.first_bytes.match(head):
            return compression.open(file, "rb")
    if path.suffix in PACKED and head:
        raise ParallelTextError(
            f"{path}: expected {path.suffix[1:]}, got a file that begins with {head[:2]!r}; drop the {path.suffix}"
        )
    return file
