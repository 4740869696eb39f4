"""Files that are there whole or not at all, also after a crash of the machine."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

#: Ending of a file that is being written.
BESIDE = ".tmp"

#: What the system says when it has no room.
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_whole(path: Path, data: bytes) -> None:
    """Write beside, flush to the disk, rename.

    Raises:
        OSError: When it cannot be written; nothing is then left of it. For a full disk the message says what to do.
    """
    beside = path.with_name(path.name + BESIDE)
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise _explained(error, path, len(data)) from error
    sync_folder(path.parent)


def append_whole(path: Path, line: str) -> None:
    """Add a line to a journal. A line that is cut off by a crash lacks its line end; see :func:`read_journal`.

    Raises:
        OSError: As :func:`write_whole`; the journal is then as it was.
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
        raise _explained(error, path, len(data)) from error


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


def _explained(error: OSError, path: Path, size: int) -> OSError:
    if error.errno not in DISK_FULL:
        return error
    return OSError(
        error.errno,
        f"{error.strerror}: {path} needs {size:,} bytes; what was written before stands. Make room and run the same "
        "command again",
    )
