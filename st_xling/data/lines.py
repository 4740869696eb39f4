"""Text files to lines: UTF-8, plain or gzipped, split at ``\\n`` and nowhere else."""

from __future__ import annotations

import difflib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from st_xling.data.faults import FaultLog, ParallelTextError

GZIP_MAGIC = b"\x1f\x8b"

_UTF_16 = "the file begins with the byte order mark of UTF-16"


def read_lines(path: str | Path, faults: FaultLog) -> list[str | None]:
    r"""All lines of a text file, without their line ends.

    A line ends at ``\n`` or ``\r\n``. Other characters that Unicode calls line breaks (U+2028, U+0085, ``\v``, a lone
    ``\r``) are text, as in every aligned corpus that counts lines with ``wc -l``. A last line without a line end is a
    line like any other; one byte order mark at the start of the file is dropped. Gzip is told by its first bytes.

    Args:
        path: A UTF-8 text file, plain or gzipped.
        faults: Where lines that are not UTF-8 are noted.
    Returns:
        Line ``i`` of the file at index ``i - 1``; ``None`` where it was not UTF-8 (its fault is then noted).
    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: If the gzip stream is broken, since what follows the break is unknown.
    """
    data = read_bytes(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        faults.add_beyond_repair(path, "invalid UTF-8", _UTF_16)
        return []
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data:
        return []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_each(path, data, faults)
    return list(text.removesuffix("\n").replace("\r\n", "\n").removesuffix("\r" * data.endswith(b"\r\n")).split("\n"))


def iter_lines(path: str | Path, faults: FaultLog) -> Iterator[str | None]:
    """As ``read_lines``, one line after the other, for files larger than memory."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(describe_missing(path))
    with path.open("rb") as raw:
        gzipped = raw.peek(2).startswith(GZIP_MAGIC)
        if path.suffix == ".gz" and not gzipped and raw.peek(1):
            raise ParallelTextError(f"{path}: expected gzip, got a file that begins otherwise; drop the .gz")
        lines = gzip.GzipFile(fileobj=raw) if gzipped else raw
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                    faults.add_beyond_repair(path, "invalid UTF-8", _UTF_16)
                    return
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                text = text.removesuffix(b"\n").removesuffix(b"\r")
                try:
                    yield text.decode("utf-8")
                except UnicodeDecodeError as error:
                    _note_undecoded(path, number, text, error, faults)
                    yield None
        except (OSError, EOFError, zlib.error) as error:
            raise ParallelTextError(
                f"{path}: expected a whole gzip file, got after {number:,} lines: {error}; fetch it again"
            ) from error


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, gunzipped if it is gzipped.

    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: If the gzip stream is broken, or a ``.gz`` file is not gzip.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(describe_missing(path))
    data = path.read_bytes()
    if not data.startswith(GZIP_MAGIC):
        if path.suffix == ".gz" and data:
            raise ParallelTextError(f"{path}: expected gzip, got a file that begins with {data[:2]!r}; drop the .gz")
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ParallelTextError(f"{path}: expected a whole gzip file, got: {error}; fetch it again") from error


def describe_missing(path: str | Path) -> str:
    """Says that ``path`` is missing, and which name beside it is nearest to it."""
    path = Path(path)
    folder = path.parent
    if not folder.is_dir():
        return f"expected a file {path}, but there is no folder {folder}; check the path"
    names = sorted(entry.name for entry in folder.iterdir())
    nearest = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    hint = f"the nearest name there is {nearest[0]}" if nearest else f"the folder holds {len(names)} other entries"
    return f"expected a file {path}, but {folder} has none of that name; {hint}"


def _decode_each(path: str | Path, data: bytes, faults: FaultLog) -> list[str | None]:
    lines: list[str | None] = []
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            lines.append(raw.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            _note_undecoded(path, number, raw, error, faults)
            lines.append(None)
    return lines


def _note_undecoded(path: str | Path, number: int, raw: bytes, error: UnicodeDecodeError, faults: FaultLog) -> None:
    faults.add(path, number, "invalid UTF-8", f"byte 0x{raw[error.start]:02x} at byte {error.start + 1}")
