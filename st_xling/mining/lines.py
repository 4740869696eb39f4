r"""Lines of large text files as bytes, one after another or by number, never the whole file.

Lines end where :func:`st_xling.data.lines.read_lines` ends them: at ``\n`` or ``\r\n`` and nowhere else.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from st_xling.data.faults import ParallelTextError
from st_xling.data.lines import GZIP_MAGIC, describe_missing

#: A longer line is no sentence; the file is probably not text.
LONGEST_LINE_BYTES = 1 << 24

_XZ_MAGIC = b"\xfd7zXZ\x00"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_PACKED = (".gz", ".xz", ".zst")
_UTF8_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 1 << 20


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a plain, gzip, xz or (with Python 3.14) zstandard file, told by its first bytes.

    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: For a compressed file that is broken or cut off (also while it is read), a name that promises
            a compression that is not there, UTF-16, or zstandard where Python has none.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"expected a file of text: {path} is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise ValueError(
            f"expected a file, which is read more than once: {path} is a pipe or a device; write its content to a file "
            "first, and name that."
        )
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(f"expected a file: {path} is a link to {path.readlink()}, which is not there.")
    if not path.is_file():
        raise FileNotFoundError(describe_missing(path))
    with path.open("rb") as file:
        magic = file.read(6)
        file.seek(0)
        try:
            with _unpacked(path, file, magic) as stream:
                yield stream
        except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
            raise ParallelTextError(f"{path}: expected a whole packed file, got: {error}; fetch it again") from error


def _unpacked(path: Path, file: IO[bytes], magic: bytes) -> Any:
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)
    if magic.startswith(_XZ_MAGIC):
        return lzma.LZMAFile(file)
    if magic.startswith(_ZSTD_MAGIC):
        try:
            from compression import zstd  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise ParallelTextError(
                f"{path}: zstandard needs Python 3.14; unpack it first: unzstd {path.name}"
            ) from None
        return zstd.ZstdFile(file)
    if path.suffix in _PACKED and magic:
        raise ParallelTextError(
            f"{path}: expected {path.suffix[1:]}, got a file that begins with {magic[:2]!r}; drop the {path.suffix}"
        )
    if magic.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ParallelTextError(f"{path}: expected UTF-8, got UTF-16; convert it: iconv -f utf-16 -t utf-8")
    return file


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """Every line without its end; a byte order mark at the start is dropped.

    Raises:
        ParallelTextError: As :func:`open_bytes`, and for a line of more than 16 MiB.
    """
    with open_bytes(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE_BYTES + 1):
            number += 1
            if len(line) > LONGEST_LINE_BYTES:
                raise ParallelTextError(
                    f"{path}:{number}: expected a sentence a line, got a line of more than {LONGEST_LINE_BYTES:,} "
                    "bytes; is this text?"
                )
            yield _without_end(line.removeprefix(_UTF8_MARK) if number == 1 else line)


class LineIndex:
    """Lines of one file by number, from offsets in memory: 8 bytes a line.

    A compressed file is unpacked to a temporary file first.
    """

    def __init__(self, path: str | Path) -> None:
        with open_bytes(path) as stream:
            if isinstance(stream, io.BufferedReader):  # plain: the file itself
                self._file: IO[bytes] = Path(path).open("rb")  # noqa: SIM115
            else:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                shutil.copyfileobj(stream, self._file, _CHUNK_BYTES)
        self._starts = _line_starts(self._file)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, line: int) -> bytes:
        """Line ``line``, counted from 0, without its end."""
        start, stop = self._starts[line].item(), self._starts[line + 1].item()
        return _without_end(os.pread(self._file.fileno(), stop - start, start))

    def close(self) -> None:
        self._file.close()


def _line_starts(file: IO[bytes]) -> np.ndarray:
    """Where each line begins, and where the last one ends. *Shape:* ``(lines + 1,)``"""
    file.seek(0)
    first = len(_UTF8_MARK) if file.read(len(_UTF8_MARK)) == _UTF8_MARK else 0
    file.seek(0)
    starts, place = [np.array([first], dtype=np.int64)], 0
    while chunk := file.read(_CHUNK_BYTES):
        starts.append(np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")) + place + 1)
        place += len(chunk)
    found = np.concatenate(starts)
    return found if found[-1] == place else np.append(found, np.int64(place))


def _without_end(line: bytes) -> bytes:
    return line[:-1].removesuffix(b"\r") if line.endswith(b"\n") else line
