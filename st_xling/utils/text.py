r"""Text files, plain or packed: a line ends at ``\n``, ``\r\n`` or ``\r\r\n`` and nowhere else.

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

from st_xling.utils.file_endings import COMPRESSIONS

#: First columns of a tab-separated file of scored pairs, and the header line by which readers recognize one.
SCORED_COLUMNS = ("score", "source_id", "target_id", "source", "target")

THRESHOLD = "threshold"
"""Column, key or property of mined pairs: the lowest score that was kept, nan or null if all were."""

LONGEST_LINE_BYTES = 1 << 24
"""A longer line is no sentence; the file is probably not text."""

LARGEST_DOCUMENT_BYTES = 1 << 27
"""A larger document is not read: it would have to be in memory as a whole, and many times its size."""

PACKED = tuple(COMPRESSIONS)
"""Endings of the compressions that are read; what a file is packed with is recognized by its first bytes."""

UTF8_MARK = b"\xef\xbb\xbf"
# A sentence may begin with a tag, such as <b>: these begin files of corpora.
_XML = re.compile(
    rb"\s*<(?:!--|(?:\?xml|!doctype|html|tmx|srcset|refset|tstset|mteval|cesalign|doc|chapter|url|talkid|tei(?:corpus|\.2)?"
    rb"|xliff|corpus|text|seg|s(?=\s+id=))[\s>])",
    re.IGNORECASE,
)
# Characters that are letters or symbols by their category, and show nothing: fillers and variation selectors.
_FILLERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")  # categories of control and format characters, spaces and line breaks
_HEAD_BYTES = 1 << 20  # of which the number of lines is estimated
_BUFFER_BYTES = 1 << 16
_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_TO_ESCAPE = str.maketrans(_ESCAPES)
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


class ParallelTextError(ValueError):
    """Text that cannot be read; the message lists the first 20 faults and their number.

    Attributes:
        faults: All faults, in the order of the file; empty where the file as a whole cannot be read.
    """

    def __init__(self, message: str, faults: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


@contextmanager
def open_bytes(path: str | Path, *, any_encoding: bool = False) -> Iterator[io.BufferedReader]:
    """Open the bytes of a file, unpacked if it is packed with gzip, xz, bzip2 or Zstandard.

    A file in a zip archive goes by the archive's path and its name there: ``de-en.txt.zip/TED2020.de-en.de``. Of a
    plain file, ``stream.raw`` is an ``io.FileIO``.

    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ValueError: If it is a folder, a pipe or a device.
        ParallelTextError: For a packed file that is broken or cut off (also while it is read), a name that promises a
            compression that is not there, a NumPy array, an archive, or UTF-16, unless of ``any_encoding``.
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
    """Return the kind of archive that a file begins as; empty for other files."""
    if head[257:262] == b"ustar":
        return "tar"
    return "zip" if head.startswith(b"PK\x03\x04") else ""


@contextmanager
def _open_unpacked(path: Path) -> Iterator[tuple[IO[bytes], io.BufferedReader]]:
    """Yield a file as it is, or the member of an archive, and its unpacked bytes; faults of these name the file."""
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
            if getattr(error, "errno", None) is not None:  # the disk's fault, not that of the bytes
                raise
            raise ParallelTextError(
                f"{path}: expected a whole packed file, got after {file.tell():,} bytes: {error}; fetch it again"
            ) from error


def read_bytes(path: str | Path, *, most: int = LARGEST_DOCUMENT_BYTES) -> bytes:
    """Read all bytes of a file, unpacked.

    Raises:
        ParallelTextError: As :func:`open_bytes`, and for more bytes than ``most``.
    """
    with open_bytes(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ParallelTextError(
            f"{path}: expected a document of at most {most:,} bytes, which is read as a whole, got more; divide it, or "
            "write its rows as JSON lines (.jsonl)"
        )
    return content


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """Yield every line without its end, as :func:`line_text` returns it.

    Args:
        path: A text file, plain or packed.
    Raises:
        ParallelTextError: As :func:`open_bytes` and :func:`check_head`, and for a line of more than 16 MiB.
    """
    with open_bytes(path) as stream:
        check_head(path, stream.peek())
        read_line = partial(stream.readline, LONGEST_LINE_BYTES + 1)
        for number, line in enumerate(iter(read_line, b""), 1):
            if len(line) > LONGEST_LINE_BYTES:
                raise line_too_long(path, number)
            yield line_text(line)


def line_too_long(path: str | Path, number: int) -> ParallelTextError:
    """Return the error for a line that is no sentence."""
    return ParallelTextError(
        f"{path}:{number}: expected a sentence a line, got a line of more than {LONGEST_LINE_BYTES:,} bytes; is this "
        "text?"
    )


def line_text(line: bytes) -> bytes:
    """Return a line without its end, and without a byte order mark before it, as where files were joined."""
    return line.removesuffix(b"\n").rstrip(b"\r").removeprefix(UTF8_MARK)


def check_head(path: str | Path, head: bytes) -> None:
    r"""Raise ``ParallelTextError`` if a file begins as XML, or its lines end only in ``\r``."""
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
    """Return the text of a line of :func:`raw_lines`, and ``""``; for bytes that are not UTF-8 ``None``, and the fault.

    Example:
        >>> decode_line(b"caf\\xe9")
        (None, 'byte 0xe9 at byte 4')
    """
    try:
        return line.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return None, f"byte 0x{line[error.start]:02x} at byte {error.start + 1}"


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character: only white space, format characters and fillers.

    Example:
        >>> is_blank(" \u200b\u00ad\u2060"), is_blank("-")
        (True, False)
    """
    stripped = text.strip()
    if not stripped:
        return True
    # Nearly all texts begin with a letter or number, so that only the others are looked at letter by letter.
    if stripped[0].isalnum() and stripped[0] not in _FILLERS:
        return False
    return all(unicodedata.category(letter) in _INVISIBLE or letter in _FILLERS for letter in text)


def is_scored_header(cells: Sequence[str]) -> bool:
    """Return whether the cells of a first line are the header of a file of scored pairs, whose cells are escaped."""
    return tuple(cells[: len(SCORED_COLUMNS)]) == SCORED_COLUMNS


def escape_cell(text: str) -> str:
    r"""Write a backslash, tab, line feed or carriage return as ``\\``, ``\t``, ``\n`` or ``\r``.

    Example:
        >>> print(escape_cell("one\ttwo"))
        one\ttwo
    """
    # Nearly no text has any of them, and a search is ten times faster than a translation.
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
    """Estimate the lines of a file by its first megabyte; exact if it is no longer than that."""
    path = Path(path)
    with _open_unpacked(path) as (file, stream):
        head = stream.read(_HEAD_BYTES)
        bytes_read = file.tell()  # of the packed file
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
    """Return the last suffix, with the one before it where the last is that of a packed file; in lower case.

    Example:
        >>> file_ending("corpus.v2.TSV.gz"), file_ending("corpus.de")
        ('.tsv.gz', '.de')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    is_packed = bool(suffixes) and suffixes[-1] in PACKED
    count = 2 if is_packed else 1
    return "".join(suffixes[-count:])


def unpacked_name(path: str | Path) -> str:
    """Return the name of a file without the ending of its compression."""
    path = Path(path)
    return path.stem if path.suffix.lower() in PACKED else path.name


def unpacked_ending(path: str | Path) -> str:
    """Return the ending of a file without that of its compression, in lower case.

    Example:
        >>> unpacked_ending("corpus.v2.TSV.gz"), unpacked_ending("corpus")
        ('.tsv', '')
    """
    return file_ending(unpacked_name(path))


def home_path(path: str | Path) -> Path:
    """Return a path with ``~`` as the home folder; ``~x`` is a name if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def plain_or_packed(path: Path) -> Path:
    """Return ``path`` itself, or where there is no such file, the packed one next to it, such as ``path.gz``."""
    if path.is_file():
        return path
    for ending in PACKED:
        packed = path.with_name(path.name + ending)
        if packed.is_file():
            return packed
    return path


def describe_missing(path: str | Path) -> str:
    """Return a message that ``path`` is missing, with the nearest name in its folder."""
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
        ParallelTextError: If it is no archive, or one whose names lead out of it.
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
    """Raise ``ParallelTextError`` for an entry that would lead out of its archive, or cannot be read.

    A name such as ``/home/me/notes.de`` or ``../notes.de``, joined to the path of the archive, is a file of this
    machine, which would be read in place of the entry, and which ``push`` would publish.
    """
    # Only the tools of Windows divide folders by a backslash; a name that is absolute for either system is refused.
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
    if entry.flag_bits & 0x1:
        raise ParallelTextError(f"{archive}: expected files without a password, got {entry.filename!r}; unpack it")


def _find_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """Return the archive's entry of a path that leads into it, also where it is stored as ``./NAME``."""
    inner = PurePosixPath(path.relative_to(str(archive.filename)))
    for entry in archive.infolist():
        if PurePosixPath(entry.filename) == inner:
            _check_entry(entry, str(archive.filename))
            return entry
    raise FileNotFoundError(f"{archive.filename} has no file {inner}.")


def _find_archive(path: Path) -> Path | None:
    """Return the zip archive that a path leads into; ``None`` for a path that leads into none."""
    for folder in path.parents:
        if folder.suffix.lower() == ".zip" and folder.is_file():
            return folder
    return None


def _unpack(path: Path, file: io.BufferedReader) -> Any:
    """Return a stream that unpacks a file by what its first bytes show; the file itself if it is not packed."""
    head = file.peek(10)[:10]
    for compression in COMPRESSIONS.values():
        if compression.first_bytes.match(head):
            return compression.open(file, "rb")
    if path.suffix in PACKED and head:
        raise ParallelTextError(
            f"{path}: expected {path.suffix[1:]}, got a file that begins with {head[:2]!r}; drop the {path.suffix}"
        )
    return file
