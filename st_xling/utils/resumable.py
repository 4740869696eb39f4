"""A folder from which a long command resumes after a kill, and the place where its result is put at the end.

One process at a time works in it. Files are written under temporary names, listed in a record (``done.json``) and
renamed, so that a kill at any moment loses no more than the step that was being written:

>>> with ResumableFolder("numbers.work") as folder:
...     _ = folder.begin({"command": "count", "to": 2})
...     for step in ("one", "two"):
...         if step not in folder.steps:
...             with folder.writing(step, f"{step}.txt") as path:
...                 _ = path.write_text(step)
>>> sorted(path.name for path in folder.path.iterdir())
['done.json', 'one.txt', 'two.txt']
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

from st_xling.utils.file_endings import COMPRESSIONS
from st_xling.utils.io import (
    LOCK,
    TEMPORARY,
    atomic_path,
    atomic_writer,
    file_crc32,
    locked,
    read_json_object,
    write_json,
)

RECORD = "done.json"

#: A file, which is replaced in one step, or a stream.
Output = str | Path | IO[bytes]

# A model is loaded by these: they are removed first and written last, so that a kill leaves no mixture of two models.
_ENTRIES = ("modules.json", "config.json")

# Endings of what a command writes again in a moment; all else in a work folder has cost time.
_CHEAP = (".json", ".jsonl", ".lock", ".tmp")


class ResumableFolder:
    """A folder that is filled step by step; use it as a context manager, then call :meth:`begin`.

    A folder in which no step was finished is free for any task; if the block ends with an error, it is removed.

    Args:
        path: A new or empty folder, or one that an earlier process left.
        name: Name of the folder in errors.
        instead: Alternative for the user, in errors.
        record: File of the record, relative to the folder.
        whole: True if everything in the folder belongs to the task, such as the folders of its parts.
    Raises:
        ValueError: On entering: it is a file, or another process works in it.

    Attributes:
        task: Task that the folder was begun for.
        listed: Steps by name, finished or not: ``files``, relative to the folder, and other facts.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "the work folder",
        instead: str = "choose another (--work)",
        record: str = RECORD,
        whole: bool = False,
    ) -> None:
        self.path = Path(path)
        self.record = self.path / record
        self.task: dict[str, Any] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self._name, self._instead, self._whole = name, instead, whole
        self._created = False
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> ResumableFolder:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self._name} must be a folder: {self.path} is a file; {self._instead}.")
        self._created = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock.enter_context(locked(self.path))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, Exception) and self.task and not self._is_begun():
                self.remove()
        finally:
            self._lock.close()
            if kind is not None and self._created:
                with contextlib.suppress(OSError):  # it is not empty
                    self.path.rmdir()

    def begin(self, task: Mapping[str, Any], *, overwrite: bool = False) -> bool:
        """Resume what an earlier process left of the same task, or start.

        Args:
            task: Everything that the kept results depend on, by name; JSON values.
            overwrite: Remove the files of another task.
        Returns:
            Whether the folder was begun for this task before.
        Raises:
            ValueError: If the folder was begun for another task (names the differences), or contains something else.
        """
        task = json.loads(json.dumps(task))
        if self.load() and self.task and (self._is_begun() or self.task == task):
            if self.task == task:
                self.remove_temporary()
                return True
            if not overwrite:
                raise ValueError(
                    f"{self.path} was begun for another task: {'; '.join(differences(self.task, task))}. Repeat the "
                    f"earlier command to resume it, delete the folder, or {self._instead}."
                )
        self.check_free()
        self.clear()
        self.start(task)
        return False

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """The finished steps: those of which all files are there."""
        paths = {name: [self.path / file for file in step["files"]] for name, step in self.listed.items()}
        return {name: step for name, step in self.listed.items() if all(map(Path.is_file, paths[name]))}

    def load(self) -> bool:
        """Read the record, if there is one.

        Raises:
            ValueError: If the record is damaged.
        """
        if not self.record.is_file():
            return False
        task = read_json_object(self.record, remedy="delete the folder")
        steps = task.pop("steps", None)
        entries = [*steps.values()] if isinstance(steps, dict) else [None]
        if not all(isinstance(entry, dict) and isinstance(entry.get("files"), list) for entry in entries):
            raise ValueError(f"{self.record} was written by something else; {self._instead}.")
        self.task, self.listed = task, steps
        return True

    def check_free(self) -> None:
        """Raise ``ValueError`` if the folder contains files and no record."""
        if not self.record.is_file() and (other := next(self._contents(), None)) is not None:
            raise ValueError(f"{self.path} contains {other.name}, which this command did not write; {self._instead}.")

    def start(self, task: Mapping[str, Any]) -> None:
        """Write a new record, without steps."""
        self.task, self.listed = dict(task), {}
        self.write_record()

    def write_record(self) -> None:
        self.record.parent.mkdir(exist_ok=True)
        write_json(self.record, {**self.task, "steps": self.listed}, indent=1)

    @contextmanager
    def writing(self, step: str, file: str, /, *, checksum: bool = False, **facts: object) -> Iterator[Path]:
        """Yield a temporary file, which becomes ``file`` when the block ends; the step is then finished.

        Args:
            step: Name of the step.
            file: Its only file, relative to the folder.
            checksum: Add the fact ``crc32`` of the file, for steps that are written once: a kill between the record and
                the file leaves an earlier file as it was.
            facts: Other facts of the step; JSON values.
        Raises:
            OSError: If there is no room; the step is then not finished.
        """
        with atomic_path(self.path / file) as temporary:
            yield temporary
            sums = {"crc32": file_crc32(temporary)} if checksum else {}
            # Listed before it is there: what the record lists is all that there can be.
            self.listed[step] = {"files": [file], **facts, **sums}
            self.write_record()

    def install(self, step: str, folder: Path, *, also: Iterable[str] = ()) -> None:
        """Move the files of a finished folder here, and remove those that the step had before and has no longer.

        Args:
            step: Name of the step.
            folder: A temporary folder in this one, which is removed.
            also: Files that others may have added, and which are removed, too.
        """
        now = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        before = {*self.listed.get(step, {"files": []})["files"], *also}
        self.listed[step] = {"files": sorted(before.union(now))}
        self.write_record()
        for name in (*_ENTRIES, *sorted(before.difference(now))):
            remove_file(self.path, name)
        for name in sorted(now, key=lambda name: name in _ENTRIES):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).replace(self.path / name)
        shutil.rmtree(folder)
        self.listed[step] = {"files": now}
        self.write_record()

    def clear(self) -> None:
        """Remove the files that the record lists; of a folder that is ours as a whole, everything but the record."""
        for name in [name for step in self.listed.values() for name in step["files"]]:
            remove_file(self.path, name)
        self.remove_temporary()
        for path in self._contents() if self._whole else ():
            if path != self.record:
                _remove(path)
        self.listed = {}

    def remove(self) -> None:
        """Remove what :meth:`clear` removes and, if nothing else is left, the record and the folder."""
        if self._whole:  # a process that is killed in between leaves a folder that is free
            self.task = {}
            self.write_record()
        self.clear()
        self.task = {}
        if any(path != self.record for path in self._contents()):
            return
        self.record.unlink(missing_ok=True)
        (self.path / LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is the current folder
            self.path.rmdir()

    def _contents(self) -> Iterator[Path]:
        return (path for path in sorted(self.path.iterdir()) if path.name != LOCK and not TEMPORARY.match(path.name))

    def _is_begun(self) -> bool:
        files = (path for path in self.path.rglob("*") if path.is_file()) if self._whole else ()
        return bool(self.steps) or any(path.suffix not in _CHEAP for path in files)

    def remove_temporary(self) -> None:
        """Remove what a killed process left half-written."""
        # Folders of others may lie in this one, with files that they are writing.
        own = self.path if self._whole else self.record.parent
        for path in [*self.path.glob("*"), *own.rglob("*")]:
            if TEMPORARY.fullmatch(path.name):
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_file(folder: Path, name: str) -> None:
    """Remove a file below a folder, and the folders in between that are then empty; a name outside is ignored."""
    path = folder / name
    if ".." in Path(name).parts or Path(name).is_absolute() or not (path.is_file() or path.is_symlink()):
        return
    path.unlink()
    with contextlib.suppress(OSError):  # not empty
        while path.parent != folder:
            path = path.parent
            path.rmdir()


def differences(before: Any, now: Any) -> list[str]:
    """Return the dotted names and both values of what two tasks do not agree on.

    Example:
        >>> differences({"k": 4, "model": {"layer": 1}}, {"k": 5, "model": {"layer": 2}})
        ['k was 4, is now 5', 'model.layer was 1, is now 2']
    """
    return [f"{key} was {_short(old)}, is now {_short(new)}" for key, old, new in changed_values(before, now)]


def changed_values(before: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return dotted name, earlier and present value of what two tasks do not agree on."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return [] if before == now else [(name, before, now)]
    keys = sorted({*before, *now})
    parts = (changed_values(before.get(key), now.get(key), f"{name}.{key}" if name else key) for key in keys)
    return [part for some in parts for part in some]


def _short(value: Any) -> str:
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)


def work_path(out: Output, work: str | Path | None) -> str | Path | None:
    """Return the work folder: ``work``, else ``OUT.work``; ``None`` for a stream, which has a temporary one."""
    return work if work is not None else f"{out}.work" if _is_file_name(out) else None


def check_replaced(files: Mapping[str, Any], work: str | Path | None) -> None:
    """Raise if a result would replace an earlier one, unless the command is resumed: ``work`` has a record.

    Args:
        files: Name of the option → file; no file, an empty one, a device or ``"-"`` is ignored.
        work: Result of :func:`work_path`.
    Raises:
        ValueError: Naming option and file.
    """
    if work is not None and (Path(work) / RECORD).is_file():
        return
    for name, path in files.items():
        if path is not None and Path(path).is_file() and Path(path).stat().st_size:
            raise ValueError(f"{name} {path} exists: add --overwrite to replace it, or choose another name.")


@contextmanager
def work_folder(out: Output, work: str | Path | None, task: Mapping[str, Any]) -> Iterator[ResumableFolder]:
    """Yield the folder in which the work on ``out`` is kept: :func:`work_path`, or a temporary one.

    Args:
        out: A file, or what is written like a stream.
        work: Chosen folder.
        task: See :meth:`ResumableFolder.begin`.
    """
    with contextlib.ExitStack() as stack:
        path = work_path(out, work)
        if path is None:
            temporary = tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True)
            path = Path(stack.enter_context(temporary)) / "work"
        folder = stack.enter_context(ResumableFolder(path, whole=True))
        folder.begin(task)
        yield folder


def deliver(result: Path, out: Output) -> None:
    """Move a finished file to where it is wanted, packed if its name ends so, or copy it to the stream."""
    if not _is_file_name(out):
        with result.open("rb") as stream, contextlib.ExitStack() as stack:
            copy = stack.enter_context(Path(out).open("wb")) if isinstance(out, (str, Path)) else out
            shutil.copyfileobj(stream, copy)
            copy.flush()
        return
    path = Path(out).resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    compression = COMPRESSIONS.get(path.suffix)
    if compression is None:
        with contextlib.suppress(OSError):  # another file system
            result.replace(path)
            return
    with result.open("rb") as stream, atomic_writer(path) as copy:
        with compression.open(copy, "wb") if compression else contextlib.nullcontext(copy) as packed:
            shutil.copyfileobj(stream, packed)
    result.unlink()


def _is_file_name(out: Output) -> TypeGuard[str | Path]:
    """Return whether ``out`` may be replaced; a device or a pipe (``/dev/null``) is written into."""
    return isinstance(out, (str, Path)) and (Path(out).is_file() or not Path(out).exists())
