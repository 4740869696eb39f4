"""The folder in which a long command keeps what it has done, so that the same command can go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from st_xling.utils.io import TEMPORARY, write_json
from st_xling.utils.lock import LockedFolder

_TASK = "task.json"
_GONE = ".done"


class WorkFolder(LockedFolder):
    """Work on one task; use it as a context manager, which keeps other processes out.

    On entering, the folder is made, or what an earlier process left is taken up, if its task was the same.

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

    def remove(self) -> None:
        """The task is done. In one step, so that no later process finds half of the work."""
        self.path.replace(self._gone)
        shutil.rmtree(self._gone, ignore_errors=True)

    @property
    def _gone(self) -> Path:
        return self.path.with_name(self.path.name + _GONE)

    def _claim(self) -> None:
        shutil.rmtree(self._gone, ignore_errors=True)  # what a process that was killed had no time to remove
        path = self.path / _TASK
        if path.is_file():
            self._compare(json.loads(path.read_text(encoding="utf-8")))
            self.resumed = True
            return
        if any(not found.name.endswith(TEMPORARY) for found in self.path.iterdir()):
            raise ValueError(f"{self.path} holds something that is no work of this command; choose another (--work).")
        write_json(path, self._task, indent=1)

    def _compare(self, found: dict[str, Any]) -> None:
        names = sorted({*found, *self._task})
        differences = [
            f"{name} was {_short(found.get(name))}, is now {_short(self._task.get(name))}"
            for name in names
            if found.get(name) != self._task.get(name)
        ]
        if differences:
            raise ValueError(
                f"{self.path} holds the work of another command: {'; '.join(differences)}. Repeat that command to go "
                "on with it, or delete the folder, or choose another (--work)."
            )


def _short(value: Any) -> str:
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)
