"""Files of any size that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from st_xling.mining.whole_files import BESIDE, DISK_FULL, sync_folder


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a file beside ``path``, which takes its name when the block ends well.

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
            raise OSError(
                error.errno,
                f"{error.strerror}: {path} could not be written; what was found before stands. Make room and run the "
                "same command again",
            ) from error
        raise
    sync_folder(path.parent)


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
