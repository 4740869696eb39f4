"""The folder in which a long command keeps what it has done, so that the same command can go on."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

from st_xling.utils.io import TEMPORARY, read_json_object, write_atomic, write_json
from st_xling.utils.lock import LockedFolder

_TASK = "task.json"

#: Says that the folder may go: its results are delivered. Name and content are such that nobody else makes them.
_FINISHED, _MARK = ".st-xling-finished", b"this work of st-xling is finished; what is left of it may be deleted\n"

_COMMANDS = ("mine", "score", "rerank")

# What a moment brings back: all else in the folder has cost time.
_CHEAP = {_TASK, "published.json", "sentences.jsonl", "writing.json", "ranked.jsonl"}


class WorkFolder(LockedFolder):
    """Work on one task; use it as a context manager, which keeps other processes out.

    On entering, the folder is made, or what an earlier process left is resumed, if its task was the same. A folder in
    which nothing was done yet is free for any task, and goes when the block ends with an error.

    Args:
        path: A new or empty folder, or what was left.
        task: What all that is kept depends on, by name; JSON values.
    Raises:
        ValueError: On entering: the folder is of another task (says in what it differs), holds something else, or
            another process works in it.

    Attributes:
        resumed: Whether something was there.
    """

    def __init__(self, path: Path, task: dict[str, Any]) -> None:
        super().__init__(path, what="the work folder", instead="choose another (--work)")
        self._task: dict[str, Any] = json.loads(json.dumps(task))
        self.resumed = False

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None and exception and isinstance(exception[1], Exception) and not self._is_begun():
            with contextlib.suppress(OSError):
                self._empty()
                self.path.rmdir()
        super().__exit__()

    def remove(self) -> None:
        """The task is done. A process that is killed meanwhile leaves a folder that says that it is to go."""
        write_atomic(self.path / _FINISHED, _MARK)
        self._empty()
        with contextlib.suppress(OSError):  # the current folder stays, empty
            self.path.rmdir()

    def _claim(self) -> None:
        path = self.path / _TASK
        mark = self.path / _FINISHED
        if mark.is_file() and mark.read_bytes() == _MARK:
            self._empty()
        if path.is_file():
            found = read_json_object(path, remedy="delete the folder, or choose another (--work)")
            if found == self._task:
                self.resumed = True
                return
            if found.get("command") not in _COMMANDS or self._is_begun():
                raise self._refusal(found)
            self._empty()
        if any(found.name != f"{_TASK}{TEMPORARY}" for found in self.path.iterdir()):
            raise ValueError(f"{self.path} holds something that is no work of this command; choose another (--work).")
        write_json(path, self._task, indent=1)

    def _is_begun(self) -> bool:
        return any(
            path.name not in _CHEAP and not path.name.endswith(TEMPORARY) and not _is_empty_journal(path)
            for path in self.path.rglob("*")
            if not path.is_dir()
        )

    def _empty(self) -> None:
        # The mark goes last: dying between any two steps leaves a folder that the next process understands.
        paths = sorted(self.path.iterdir(), key=lambda path: path.name == _FINISHED)
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _refusal(self, found: dict[str, Any]) -> ValueError:
        differences = [
            f"{name} was {_short(found.get(name))}, is now {_short(self._task.get(name))}"
            for name in sorted({*found, *self._task})
            if found.get(name) != self._task.get(name)
        ]
        return ValueError(
            f"{self.path} holds the work of another command: {'; '.join(differences)}. Repeat that command to go on "
            "with it, or delete the folder, or choose another (--work)."
        )


def _is_empty_journal(path: Path) -> bool:
    return path.name == "journal.jsonl" and not path.lstat().st_size


def _short(value: Any) -> str:
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)
