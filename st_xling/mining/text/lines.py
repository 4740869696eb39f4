r"""Lines of large text files as bytes, by number, never the whole file.

Lines end where :func:`st_xling.utils.text.raw_lines` ends them: at ``\n`` or ``\r\n`` and nowhere else.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from st_xling.utils.text import open_bytes

_UTF8_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 1 << 20


class LineIndex:
    """Lines of one file by number, from offsets in memory: 8 bytes a line.

    A compressed file is unpacked to a temporary file first.
    """

    def __init__(self, path: str | Path) -> None:
        with open_bytes(path) as stream:
            if isinstance(stream.raw, io.FileIO):  # plain: the file itself
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
