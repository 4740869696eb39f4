"""Files that are complete or absent, folders that one process at a time writes, and JSON files of several commands."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import re
import reprlib
import secrets
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

#: Name of a file or folder that is being written; nobody else uses such names.
TEMPORARY = re.compile(r"\.st-xling-[0-9a-f]{8}\.tmp")

#: Name of the file that a process locks while it works in a folder.
LOCK = ".st-xling.lock"

logger = logging.getLogger(__name__)

#: Error codes of a full disk.
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_BLOCK_BYTES = 1 << 20


def temporary_path(path: Path) -> Path:
    """Return a hidden name next to ``path`` that nothing else has; :data:`TEMPORARY` matches it."""
    return path.with_name(f".st-xling-{secrets.token_hex(4)}.tmp")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path``, which replaces it when the block ends without an error.

    Args:
        path: The file; its folder must exist.

    Raises:
        OSError: If the file cannot be written, such as for a full disk; the temporary file is then removed.
    """
    temporary = temporary_path(path)
    with naming_full_disk(path):
        try:
            temporary.touch()
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """For a full disk, raise an error that names ``path``, which the block writes, and what to do."""
    try:
        yield
    except Exception as error:
        if not is_disk_full(error) or "Make room" in str(error):  # a file further in is named already
            raise
        number = getattr(error, "errno", None) or _errno_in_message(error)
        reason = f"{os.strerror(number)}: {path} could not be written. Make room and run the same command again"
        raise OSError(number, reason) from error


def _errno_in_message(error: BaseException) -> int:
    """Return the error code of a full disk that a message of a library describes in words."""
    for number in DISK_FULL:
        if os.strerror(number) in str(error):
            return number
    return errno.ENOSPC


@contextmanager
def locked(folder: Path, *, name: str = LOCK, wait_s: float = 0.0) -> Iterator[None]:
    """Keep other processes out of a folder while the block runs.

    Args:
        folder: An existing folder; processes that do not lock it are not kept out.
        name: File to lock there, which is removed at the end.
        wait_s: Time to wait for another process, in seconds.

    Raises:
        ValueError: If another process has locked the folder.
    """
    path = folder / name
    deadline = time.monotonic() + wait_s
    lock = FileLock(path)
    while True:
        path.touch()
        inode_before = _inode(path)
        try:
            lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
        except Timeout as error:
            raise ValueError(
                f"another process is writing {folder}; wait until it has finished, or choose another folder."
            ) from error
        # Whoever had the lock has removed its file: what is locked here may be that one, which nobody else sees. It
        # is ours if the name leads to the same file as before.
        if inode_before is not None and _inode(path) == inode_before:
            break
        lock.release()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to a file that is written as by :func:`atomic_path`.

    A device or a pipe, such as ``/dev/null``, is written into.

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
    text = json.dumps(content, ensure_ascii=False, indent=indent) + "\n"
    write_atomic(path, text.encode("utf-8"))


def read_json_object(path: Path, *, missing_ok: bool = True, remedy: str = "restore the file, or remove it") -> Any:
    """Return the object in a JSON file, NaN and infinities as ``None``.

    Args:
        path: The file.
        missing_ok: Return an empty object for a missing file.
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


_JSON_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "text", int: "a whole number"}


def check_shape(content: Any, shape: Any, path: Path, *, where: str = "") -> None:
    """Check the content of a JSON file that another program, or a person, may have changed.

    Args:
        content: What was read.
        shape: ``dict``, ``list``, ``str`` or ``int``; ``[shape]`` for a list of these; ``{key: shape}`` for an object,
            where the key ``...`` stands for all keys that are not named. Keys may be missing or ``null``.
        path: The file, for the message.
        where: Keys that lead to the content.

    Raises:
        ValueError: If something is of another type; names the file, the place and what is there.
    """
    if content is None:
        return
    expected_type = type(shape) if isinstance(shape, (dict, list)) else shape
    if not isinstance(content, expected_type) or content is True:
        raise ValueError(
            f"{path}: expected {_JSON_TYPES[expected_type]} at {where or 'the top'}, got {reprlib.repr(content)}; "
            "restore the file, or remove it."
        )
    if isinstance(content, list) and isinstance(shape, list):
        for index, entry in enumerate(content):
            check_shape(entry, shape[0], path, where=f"{where}[{index}]")
    elif isinstance(content, dict) and isinstance(shape, dict):
        for key, entry in content.items():
            entry_shape = shape.get(key, shape.get(...))
            if entry_shape is not None:
                entry_where = f"{where}.{key}" if where else key
                check_shape(entry, entry_shape, path, where=entry_where)


def update_json_object(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read, change and replace a JSON file, while every other call of this for the same folder waits.

    Args:
        path: The file, in a folder that exists.
        change: Makes the new content from the old one; what it raises leaves the file as it is.

    Raises:
        ValueError: As :func:`read_json_object`, or if another process keeps the folder for half a minute.
        OSError: When it cannot be written; the old file is then kept.
    """
    with locked(path.parent, wait_s=30.0):
        content = change(read_json_object(path))
        write_json(path, finite(content))


def finite(value: Any) -> Any:
    """Return a value as JSON can write it: NaN and infinities, which JSON does not know, become ``None``.

    Example:
        >>> finite({"f1": 0.5, "threshold": float("inf"), "ends": (0.25, float("nan"))})
        {'f1': 0.5, 'threshold': None, 'ends': [0.25, None]}
    """
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in 64 hexadecimal digits."""
    # Python 3.10 has no hashlib.file_digest.
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()


def file_crc32(path: Path) -> int:
    """Return the CRC-32 of a file's bytes, which changes with any one of their bits.

    It takes a third of the time of SHA-256: as long as reading the file from a fast disk, or less.
    """
    checksum = 0
    block = memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            checksum = zlib.crc32(block[:count], checksum)
    return checksum


def record_hash(path: Path) -> None:
    """Record the SHA-256 of a cached file next to it, for :func:`is_intact`."""
    write_json(path.with_suffix(".json"), {"sha256": file_sha256(path)})


def is_intact(path: Path) -> bool:
    """Return whether a cached file is there as it was recorded; log a warning if its bytes changed since."""
    if not path.exists():
        return False
    recorded = read_json_object(path.with_suffix(".json"), remedy="delete it")
    if recorded == {"sha256": file_sha256(path)}:
        return True
    logger.warning("%s is damaged: it is made again", path)
    return False


def is_disk_full(error: BaseException) -> bool:
    """Return whether the disk was full, also where a library has wrapped the exception."""
    if isinstance(error, OSError):
        return error.errno in DISK_FULL
    # safetensors, tokenizers and torch.save give no number; the last one finds that less was written than it gave. What
    # torch says of a damaged file that it reads comes from the same inline_container.cc.
    words = ("No space left", "File too large", "Disk quota exceeded", "PytorchStreamWriter", ". unexpected pos ")
    return not isinstance(error, ValueError) and any(word in str(error) for word in words)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
