"""The folder in which a long command keeps what it has done, so that it can go on; and where its result goes then."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

from st_xling.utils.io import TEMPORARY, atomic_writer, read_json_object, sync_folder, write_atomic, write_json
from st_xling.utils.lock import LockedFolder

#: A file, which is replaced in one step, or a stream.
Output = str | Path | IO[bytes]

_TASK = "task.json"

# Says that the folder may go: its results are delivered. Name and content are such that nobody else makes them.
_FINISHED, _MARK = ".st-xling-finished", b"this work of st-xling is finished; what is left of it may be deleted\n"

_COMMANDS = ("mine", "score", "rerank")

# What is made again in a moment: all else in the folder has cost time.
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

    def _prepare(self) -> None:
        path, mark = self.path / _TASK, self.path / _FINISHED
        if mark.is_file() and mark.read_bytes() == _MARK:
            self._empty()
        if path.is_file():
            before = read_json_object(path, remedy="delete the folder, or choose another (--work)")
            if before == self._task:
                self.resumed = True
                return
            if before.get("command") not in _COMMANDS or self._is_begun():
                differences = [
                    f"{name} was {_short(before.get(name))}, is now {_short(self._task.get(name))}"
                    for name in sorted({*before, *self._task})
                    if before.get(name) != self._task.get(name)
                ]
                raise ValueError(
                    f"{self.path} holds the work of another command: {'; '.join(differences)}. Repeat that command to "
                    "go on with it, or delete the folder, or choose another (--work)."
                )
            self._empty()
        if any(other.name != f"{_TASK}{TEMPORARY}" for other in self.path.iterdir()):
            raise ValueError(f"{self.path} holds something that is no work of this command; choose another (--work).")
        write_json(path, self._task, indent=1)

    def _is_begun(self) -> bool:
        """Whether there is anything in it that has cost time."""
        for path in self.path.rglob("*"):
            is_empty = path.name == "journal.jsonl" and not path.lstat().st_size
            if not (path.is_dir() or is_empty or path.name in _CHEAP or path.name.endswith(TEMPORARY)):
                return True
        return False

    def _empty(self) -> None:
        # The mark goes last: dying between any two steps leaves a folder that the next process understands.
        paths = sorted(self.path.iterdir(), key=lambda path: path.name == _FINISHED)
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _short(value: Any) -> str:
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)


def work_path(out: Output, work: str | Path | None) -> str | Path | None:
    """The folder of the work: ``work``, else beside ``out``; ``None`` for a stream, which has a temporary one."""
    return work if work is not None else f"{out}.work" if _is_file_name(out) else None


def check_replaced(files: Mapping[str, Any], work: str | Path | None) -> None:
    """Raise if a result would replace an earlier one, unless it is work that goes on: ``work`` is there still.

    Args:
        files: Name of the option → file; no file, an empty one, a device or ``"-"`` is passed over.
        work: As :func:`work_path` has it.
    Raises:
        ValueError: Naming option and file.
    """
    if work is not None and any((Path(work) / name).is_file() for name in (_TASK, _FINISHED)):
        return
    for name, path in files.items():
        if path is not None and Path(path).is_file() and Path(path).stat().st_size:
            raise ValueError(f"{name} {path} exists: add --overwrite to replace it, or choose another name.")


@contextmanager
def work_folder(out: Output, work: str | Path | None, task: dict[str, Any]) -> Iterator[WorkFolder]:
    """The folder where work on ``out`` is kept: :func:`work_path`, or a temporary one.

    Args:
        out: A file, or what is written like a stream.
        work: Chosen folder.
        task: As for :class:`WorkFolder`.
    """
    with contextlib.ExitStack() as stack:
        path = work_path(out, work)
        if path is None:
            temporary = tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True)
            path = Path(stack.enter_context(temporary)) / "work"
        yield stack.enter_context(WorkFolder(Path(path), task))


def deliver(result: Path, out: Output) -> None:
    """Move a finished file to where it is wanted, or copy it to the stream.

    Args:
        result: The file.
        out: Where it is wanted.
    """
    if not _is_file_name(out):
        with result.open("rb") as stream, contextlib.ExitStack() as stack:
            copy = stack.enter_context(Path(out).open("wb")) if isinstance(out, (str, Path)) else out
            shutil.copyfileobj(stream, copy)
            copy.flush()
        return
    path = Path(out).resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # of another file system, for one
        result.replace(path)
        sync_folder(path.parent)
        return
    with result.open("rb") as stream, atomic_writer(path) as copy:
        shutil.copyfileobj(stream, copy)
    result.unlink()


def _is_file_name(out: Output) -> TypeGuard[str | Path]:
    """Whether it may be replaced: a device or a pipe (``/dev/null``) may not, it is written into."""
    return isinstance(out, (str, Path)) and (Path(out).is_file() or not Path(out).exists())
