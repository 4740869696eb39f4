"""A folder that one process at a time writes in."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TypeVar

Folder = TypeVar("Folder", bound="LockedFolder")


def lock_folder(folder: Path, *, wait_s: float = 0.0) -> int:
    """An advisory lock on the folder itself; it ends with the process, or when the descriptor is closed.

    Args:
        folder: One that exists.
        wait_s: How long to wait for another process, in seconds.
    Returns:
        The file descriptor that holds the lock.
    Raises:
        ValueError: If another process has it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            os.close(descriptor)
            raise ValueError(f"another process is writing {folder}; wait for it, or choose another folder.") from error
        except OSError:  # a network file system without locks: two writers are then the user's affair
            pass
        return descriptor


class LockedFolder:
    """A folder that is created and locked on entering; the lock ends with the block.

    Args:
        path: The folder.
        what: Its name in errors.
        instead: What to do where it cannot be a folder.
    Raises:
        ValueError: On entering: it is a file, or another process has it.
    """

    def __init__(self, path: Path, *, what: str, instead: str) -> None:
        self.path = path
        self._what, self._instead = what, instead
        self._lock: int | None = None

    def __enter__(self: Folder) -> Folder:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self._what} must be a folder: {self.path} is a file; {self._instead}.")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(self.path)
        try:
            self._prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _prepare(self) -> None:
        """Look at what is there, under the lock: resume it, or raise if it belongs to something else."""
        raise NotImplementedError
