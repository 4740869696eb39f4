"""Files that are complete or absent, also after a crash of the machine; JSON files that several commands write."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import reprlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from st_xling.utils.lock import lock_folder

#: Ending of a file that is being written.
TEMPORARY = ".tmp"

#: What the system says when it has no room.
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_WAIT_S = 30.0


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path``, for what opens its files itself; flushed and renamed when the block ends well.

    Writers of one path wait for each other: each holds a lock on the temporary file, so that the last one to finish
    wins and none sees half of another's work.

    Args:
        path: The file; its folder must exist.
    Raises:
        OSError: When it cannot be written; nothing is then left of it. For a full disk the message says what to do.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    with naming_full_disk(path):
        lock = _lock_temporary(temporary)
        try:
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            os.close(lock)
    sync_folder(path.parent)


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """A stream to such a file. A device or a pipe, such as ``/dev/null``, is written into.

    Raises:
        OSError: As :func:`atomic_path`.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that is small enough for memory.

    Raises:
        OSError: As :func:`atomic_writer`.
    """
    with atomic_writer(path) as stream:
        stream.write(data)


def write_json(path: Path, content: Any, *, indent: int = 2) -> None:
    """Write JSON, whole or not at all.

    Raises:
        OSError: As :func:`atomic_writer`.
    """
    write_atomic(path, (json.dumps(content, ensure_ascii=False, indent=indent) + "\n").encode("utf-8"))


def append_line(path: Path, line: str) -> None:
    """Add a line to a journal. A line that is cut off by a crash lacks its line end; see :func:`read_journal`.

    Raises:
        OSError: As :func:`atomic_writer`; the journal is then as it was.
    """
    before = path.stat().st_size if path.exists() else 0
    with naming_full_disk(path):
        try:
            with path.open("ab") as file:
                file.write((line + "\n").encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(path, before)
            raise


def read_journal(path: Path) -> list[Any]:
    """The complete lines of a journal, each a JSON value; none if there is no journal."""
    if not path.exists():
        return []
    entries: list[Any] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return entries


def read_json_object(path: Path, *, missing_ok: bool = True, remedy: str = "restore the file, or remove it") -> Any:
    """The object in a JSON file, NaN and infinities as ``None``.

    Args:
        path: The file.
        missing_ok: Whether a missing file is an empty object.
        remedy: End of the message for a damaged file.
    Raises:
        FileNotFoundError: If there is none, unless that is allowed.
        ValueError: If it holds anything else; names the file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except FileNotFoundError:
        if missing_ok:
            return {}
        raise
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got {error}; {remedy}.") from error
    except RecursionError:
        raise ValueError(f"{path}: expected JSON, got brackets nested too deep; {remedy}.") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}; {remedy}.")
    return content


def check_shape(content: Any, shape: Any, path: Path, *, where: str = "", remedy: str = "restore or remove it") -> None:
    """Check what a JSON file holds, as far as ``shape`` says; ``null`` is allowed everywhere.

    Args:
        content: What was read.
        shape: ``str``, ``int``, ``float`` (any finite number), ``bool``, ``dict`` or ``list``; ``[shape]``: a list of
            these; ``{key: shape}``: an object, whose other keys are as ``...`` says, if it is among them.
        path: The file, for the message.
        where: Keys that lead to ``content``.
        remedy: End of the message.
    Raises:
        ValueError: Naming the file, the place, and what is there.
    """
    if content is None:
        return
    kind = type(shape) if isinstance(shape, (dict, list)) else shape
    fits = isinstance(content, (int, float) if kind is float else kind) and (kind is bool or content is not True)
    if kind is float and fits:  # an integer of JSON may have any number of digits
        fits = abs(content) <= sys.float_info.max
    if not fits:
        words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}
        raise ValueError(
            f"{path}: expected {words.get(kind, 'an object')} at {where or 'the top'}, got {reprlib.repr(content)}; "
            f"{remedy}."
        )
    if isinstance(shape, list):
        for place, part in enumerate(content):
            check_shape(part, shape[0], path, where=f"{where}[{place}]", remedy=remedy)
    elif isinstance(shape, dict):
        for key, part in content.items():
            if (inner := shape.get(key, shape.get(...))) is not None:
                check_shape(part, inner, path, where=f"{where}.{key}" if where else key, remedy=remedy)


def update_json_object(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read, change and replace such a file, while every other call of this for the same folder waits.

    Args:
        path: The file, in a folder that exists.
        change: Makes the new content from the old one; what it raises leaves the file as it is.
    Raises:
        ValueError: As :func:`read_json_object`, or if another process keeps the folder for half a minute.
        OSError: When it cannot be written; the old file then stands.
    """
    lock = lock_folder(path.parent, wait_s=_WAIT_S)
    try:
        write_json(path, finite(change(read_json_object(path))))
    finally:
        os.close(lock)


def finite(value: Any) -> Any:
    """The same as JSON can write it: NaN and infinities, which JSON does not know, become ``None``.

    Example:
        >>> finite({"f1": 0.5, "threshold": float("inf"), "ends": (0.25, float("nan"))})
        {'f1': 0.5, 'threshold': None, 'ends': [0.25, None]}
    """
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in 64 hexadecimal digits."""
    # 3.10 has no hashlib.file_digest.
    digest, block = hashlib.sha256(), memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last, also after a crash of the machine."""
    with contextlib.suppress(OSError):  # some file systems do not take it
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """A block that writes ``path``: for a full disk, its error names the file and says what to do."""
    try:
        yield
    except Exception as error:
        if not is_disk_full(error) or "Make room" in str(error):  # a file further in is named already
            raise
        number = getattr(error, "errno", None) or next(
            (number for number in DISK_FULL if os.strerror(number) in str(error)), errno.ENOSPC
        )
        raise OSError(
            number,
            f"{os.strerror(number)}: {path} could not be written; what was written before stands. Make room and run "
            "the same command again",
        ) from error


def is_disk_full(error: BaseException) -> bool:
    """Whether the system had no room, also where a library has put its own exception around that."""
    if isinstance(error, OSError):
        return error.errno in DISK_FULL
    # safetensors, tokenizers and torch.save give no number; the last one finds that less was written than it gave.
    words = ("No space left", "File too large", "Disk quota exceeded", "inline_container.cc")
    return not isinstance(error, ValueError) and any(word in str(error) for word in words)


def _lock_temporary(path: Path) -> int:
    """An empty file that no other process writes; what a killed one left of it is reused."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Whoever held the lock has renamed or removed the file: what is open here may be another one by now.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                os.ftruncate(descriptor, 0)
                return descriptor
        os.close(descriptor)
