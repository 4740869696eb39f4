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
_MODEL_ENTRIES = ("modules.json", "config.json")

# Endings of what a command writes again in a moment; all else in a work folder has cost time.
_CHEAP_ENDINGS = (".json", ".jsonl", ".lock", ".tmp")


class ResumableFolder:
    """A folder that is filled step by step; use it as a context manager, then call :meth:`begin`.

    A folder in which no step was finished is free for any task; if the block ends with an error, it is removed.

    Args:
        path: A new or empty folder, or one that an earlier process left.
        name: Name of the folder in errors.
        instead: Alternative for the user, in errors.
        record: File of the record, relative to the folder.
        owns_folder: True if everything in the folder belongs to the task, such as the folders of its parts.

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
        owns_folder: bool = False,
    ) -> None:
        self.path = Path(path)
        self.record = self.path / record
        self.task: dict[str, Any] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self._name = name
        self._instead = instead
        self._owns_folder = owns_folder
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
        finished: dict[str, dict[str, Any]] = {}
        for name, step in self.listed.items():
            if all((self.path / file).is_file() for file in step["files"]):
                finished[name] = step
        return finished

    def load(self) -> bool:
        """Read the record, if there is one.

        Raises:
            ValueError: If the record is damaged.
        """
        if not self.record.is_file():
            return False
        task = read_json_object(self.record, remedy="delete the folder")
        steps = task.pop("steps", None)
        if not _are_steps(steps):
            raise ValueError(f"{self.record} was written by something else; {self._instead}.")
        self.task = task
        self.listed = steps
        return True

    def check_free(self) -> None:
        """Raise ``ValueError`` if the folder contains files and no record."""
        if self.record.is_file():
            return
        for path in self._contents():
            if path == self.record.parent and _is_all_temporary(path):  # a kill before the first record was there
                continue
            raise ValueError(f"{self.path} contains {path.name}, which this command did not write; {self._instead}.")

    def start(self, task: Mapping[str, Any]) -> None:
        """Write a new record, without steps."""
        self.task = dict(task)
        self.listed = {}
        self.write_record()

    def write_record(self) -> None:
        """Write task and steps as they are now."""
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
            entry = {"files": [file], **facts}
            if checksum:
                entry["crc32"] = file_crc32(temporary)
            # Listed before it is there: what the record lists is all that there can be.
            self.listed[step] = entry
            self.write_record()

    def install(self, step: str, folder: Path, *, also: Iterable[str] = ()) -> None:
        """Move the files of a finished folder here, and remove those that the step had before and has no longer.

        Args:
            step: Name of the step.
            folder: A temporary folder in this one, which is removed.
            also: Files that others may have added, and which are removed, too.
        """
        new_files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        old_files = set(also)
        if step in self.listed:
            old_files.update(self.listed[step]["files"])

        # Until all are moved, the record lists the old and the new ones, so that none is left after a kill.
        self.listed[step] = {"files": sorted(old_files.union(new_files))}
        self.write_record()
        for name in (*_MODEL_ENTRIES, *sorted(old_files.difference(new_files))):
            remove_file(self.path, name)
        for name in sorted(new_files, key=lambda name: name in _MODEL_ENTRIES):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (folder / name).replace(target)
        shutil.rmtree(folder)
        self.listed[step] = {"files": new_files}
        self.write_record()

    def clear(self) -> None:
        """Remove the files that the record lists; everything but the record where the task owns the folder."""
        for step in self.listed.values():
            for name in step["files"]:
                remove_file(self.path, name)
        self.remove_temporary()
        if self._owns_folder:
            for path in self._contents():
                if path != self.record:
                    _remove(path)
        self.listed = {}

    def remove(self) -> None:
        """Remove what :meth:`clear` removes and, if nothing else is left, the record and the folder."""
        if self._owns_folder:  # a process that is killed in between leaves a folder that is free
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
        """Yield the files and folders in it, without the lock and temporary ones."""
        for path in sorted(self.path.iterdir()):
            if path.name != LOCK and not TEMPORARY.match(path.name):
                yield path

    def _is_begun(self) -> bool:
        """Return whether a step was finished, or its parts contain what has cost time."""
        if self.steps:
            return True
        if not self._owns_folder:
            return False
        return any(path.is_file() and path.suffix not in _CHEAP_ENDINGS for path in self.path.rglob("*"))

    def remove_temporary(self) -> None:
        """Remove what a killed process left half-written."""
        # Folders of others may lie in this one, with files that they are writing.
        searched = self.path if self._owns_folder else self.record.parent
        for path in [*self.path.glob("*"), *searched.rglob("*")]:
            if TEMPORARY.fullmatch(path.name):
                _remove(path)


def _is_all_temporary(folder: Path) -> bool:
    """Return whether this is a folder that contains nothing but what a killed process left half-written."""
    if TEMPORARY.fullmatch(folder.name):
        return True
    return folder.is_dir() and all(map(_is_all_temporary, folder.iterdir()))


def _are_steps(steps: Any) -> TypeGuard[dict[str, dict[str, Any]]]:
    """Return whether part of a record has the form of :attr:`ResumableFolder.listed`."""
    if not isinstance(steps, dict):
        return False
    return all(isinstance(step, dict) and isinstance(step.get("files"), list) for step in steps.values())


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_file(folder: Path, name: str) -> None:
    """Remove a file below a folder, and the folders in between that are then empty; a name outside is ignored."""
    path = folder / name
    is_outside = ".." in Path(name).parts or Path(name).is_absolute()
    if is_outside or not (path.is_file() or path.is_symlink()):
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
    changes = changed_values(before, now)
    return [f"{key} was {_shorten_hash(old)}, is now {_shorten_hash(new)}" for key, old, new in changes]


def changed_values(before: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return dotted name, earlier and present value of what two tasks do not agree on."""
    if isinstance(before, dict) and isinstance(now, dict):
        changes: list[tuple[str, Any, Any]] = []
        for key in sorted({*before, *now}):
            dotted_name = f"{name}.{key}" if name else key
            changes += changed_values(before.get(key), now.get(key), dotted_name)
        return changes
    if before == now:
        return []
    return [(name, before, now)]


def _shorten_hash(value: Any) -> str:
    """Format a value; of a SHA-256 the first eight digits."""
    if isinstance(value, str) and len(value) == 64:
        return value[:8]
    return str(value)


def work_path(out: Output, work: str | Path | None) -> str | Path | None:
    """Return the work folder: ``work``, else ``OUT.work``; ``None`` for a stream, which has a temporary one."""
    if work is not None:
        return work
    if _is_file_name(out):
        return f"{out}.work"
    return None


def check_replaced(files: Mapping[str, Any], work: str | Path | None) -> None:
    """Raise if a result would replace an earlier one, unless the command is resumed: ``work`` has a record.

    Args:
        files: Name of the option → file; no file, an empty one, a device or ``"-"`` is ignored.
        work: Result of :func:`work_path`.

    Raises:
        ValueError: Naming option and file.
    """
    is_resumed = work is not None and (Path(work) / RECORD).is_file()
    if is_resumed:
        return
    for name, path in files.items():
        if path is None:
            continue
        has_content = Path(path).is_file() and Path(path).stat().st_size > 0
        if has_content:
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
            parent = tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True)
            path = Path(stack.enter_context(parent)) / "work"
        folder = stack.enter_context(ResumableFolder(path, owns_folder=True))
        folder.begin(task)
        yield folder


def deliver(result: Path, out: Output) -> None:
    """Move a finished file to where it is wanted, packed if its name ends so, or copy it to the stream."""
    if not _is_file_name(out):
        with result.open("rb") as stream, contextlib.ExitStack() as stack:
            if isinstance(out, (str, Path)):  # a device or a pipe
                out = stack.enter_context(Path(out).open("wb"))
            shutil.copyfileobj(stream, out)
            out.flush()
        return
    path = Path(out).resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    compression = COMPRESSIONS.get(path.suffix)
    if compression is None:
        with contextlib.suppress(OSError):  # another file system
            result.replace(path)
            return
    with result.open("rb") as stream, atomic_writer(path) as file:
        if compression is None:
            shutil.copyfileobj(stream, file)
        else:
            with compression.open(file, "wb") as packed:
                shutil.copyfileobj(stream, packed)
    result.unlink()


def _is_file_name(out: Output) -> TypeGuard[str | Path]:
    """Return whether ``out`` may be replaced; a device or a pipe (``/dev/null``) is written into."""
    if not isinstance(out, (str, Path)):
        return False
    return Path(out).is_file() or not Path(out).exists()
