"""Files that are there whole or not at all, also after a crash of the machine."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

#: Ending of a file that is being written.
BESIDE = ".tmp"

#: What the system says when it has no room.
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def written_whole(path: Path, *, size: int | None = None) -> Iterator[IO[bytes]]:
    """A stream to a file beside ``path``, which is flushed to the disk and takes its name when the block ends well.

    Args:
        path: The file.
        size: Bytes that will be written, if that is known.
    Raises:
        OSError: When it cannot be written; nothing is then left of it. For a full disk the message says what to do.
    """
    beside = path.with_name(path.name + BESIDE)
    try:
        with beside.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise _explained(error, path, size) from error
        raise
    sync_folder(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is small enough for memory.

    Raises:
        OSError: As :func:`written_whole`.
    """
    with written_whole(path, size=len(data)) as stream:
        stream.write(data)


def place(made: Path, path: Path) -> None:
    """Give a finished file its name, also on another file system."""
    try:
        made.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with made.open("rb") as stream, written_whole(path) as copy:
            shutil.copyfileobj(stream, copy)
        made.unlink()
    sync_folder(path.parent)


def append_whole(path: Path, line: str) -> None:
    """Add a line to a journal. A line that is cut off by a crash lacks its line end; see :func:`read_journal`.

    Raises:
        OSError: As :func:`written_whole`; the journal is then as it was.
    """
    data = (line + "\n").encode("utf-8")
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, before)
        if error.errno in DISK_FULL:
            raise _explained(error, path, len(data)) from error
        raise


def read_journal(path: Path) -> list[Any]:
    """The whole lines of a journal, each a JSON value; none if there is no journal."""
    if not path.exists():
        return []
    entries: list[Any] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
    return entries


def json_bytes(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last; where folders cannot be opened, the system does so itself."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _explained(error: OSError, path: Path, size: int | None) -> OSError:
    need = "could not be written" if size is None else f"needs {size:,} bytes"
    done = "found" if size is None else "written"
    return OSError(
        error.errno,
        f"{error.strerror}: {path} {need}; what was {done} before stands. Make room and run the same command again",
    )
