"""What a command reads and where it writes: an output never replaces an input, nor another output."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from st_xling.utils.io import TEMPORARY, read_json_object


def check_outputs(files: Mapping[str, Any], inputs: Iterable[Any], *, folders: Mapping[str, Any] | None = None) -> None:
    """Raise if an output cannot be written where it is named, or would replace what is read or written besides.

    Links are followed. A file in a folder that is read counts as read, unless an earlier ``--json`` wrote it;
    a *new* file may be put there. A folder that is written may lie in one that is read, or hold files that are read:
    what it replaces there is the writer's own concern.

    Args:
        files: Name of the option → file to be written; what is no path (a stream, ``"-"``, ``None``) is passed over.
        inputs: Files, folders, specs such as ``de-en=a.de,a.en?split=test``, Hub ids; what names nothing on this
            machine is passed over.
        folders: Name of the option → folder to be written.
    Raises:
        ValueError: Naming the option, the path and what it would replace.
    """
    read = {real: name for path in inputs for real, name in existing_paths(path).items()}
    written: dict[str, str] = {}
    folders = {name: real for name, path in (folders or {}).items() if (real := _real(name, path)) is not None}
    for name, real in folders.items():
        _check_folder_above(name, real)
        if Path(real).exists() and not Path(real).is_dir():
            raise ValueError(f"{name} must be a folder: {real} is a file; {_OTHER}.")
        if real in read:
            raise ValueError(f"{name} must be a folder of its own: {read[real]} is read; {_OTHER}.")
        if real in written:
            raise ValueError(f"{name} must be a folder of its own: {real} is {written[real]} already; {_OTHER}.")
        written[real] = name
    for name, path in files.items():
        real = _real(name, path)
        if real is None or _is_device(real):
            continue
        if Path(real).is_dir():
            raise ValueError(f"{name} must be a file: {path} is a folder; name a file in it.")
        if real in read or real + TEMPORARY in read:
            source = read.get(real) or read[real + TEMPORARY]
            raise ValueError(f"{name} must be a file of its own: {path} would replace the input {source}; {_OTHER}.")
        if real in written:
            raise ValueError(f"{name} must be a file of its own: {path} is {written[real]} already; {_OTHER}.")
        above = {str(parent) for parent in Path(real).parents}
        for folder in above & read.keys():
            if Path(real).exists() and not _is_result(Path(real)):
                raise ValueError(
                    f"{name} must not replace what is read: {path} is a file of the input {read[folder]}; {_OTHER}."
                )
        for other, folder in folders.items():
            if folder in above:
                raise ValueError(f"{name} must lie outside {other}: {path} is in {folder}, which holds its own files.")
        _check_folder_above(name, real)
        written[real] = name


def existing_paths(spec: Any) -> dict[str, str]:
    """The files and folders on this machine that an option's value may name, links followed → as they were named.

    Args:
        spec: A path, a spec with languages before ``=``, paths joined by commas and options after ``?``, or several.

    Example:
        >>> list(existing_paths(f"de-en={__file__}?size=20").values()) == [__file__]
        True
    """
    if spec is None or isinstance(spec, (bool, int, float)):
        return {}
    if isinstance(spec, (list, tuple)):
        return {real: name for part in spec for real, name in existing_paths(part).items()}
    if not isinstance(spec, (str, os.PathLike)):
        return {}
    text = os.fspath(spec)
    if not isinstance(text, str):
        return {}
    whole = {text, text.partition("=")[2], text.partition("?")[0], text.partition("=")[2].rpartition("?")[0]}
    names = {part for name in whole for part in (name, *name.split(","))} - {""}
    existing = {os.path.realpath(name): name for name in sorted(names) if os.path.lexists(name)}
    if existing:
        return existing
    # The common beginning of line-aligned files: corpus stands for corpus.de and corpus.en.
    beginnings = (path for name in names if "\0" not in name for path in Path(name).parent.glob(f"{_plain(name)}.*"))
    return {os.path.realpath(path): str(path) for path in beginnings}


_OTHER = "choose another name"


def _plain(name: str) -> str:
    return glob.escape(Path(name).name)


def _check_folder_above(name: str, real: str) -> None:
    above = next((part for part in Path(real).parents if part.exists()), Path("/"))
    if not above.is_dir():
        raise ValueError(f"{name} must lie in a folder: got {real}, but {above} is a file; {_OTHER}.")


def _is_result(path: Path) -> bool:
    """Whether it is what ``--json`` of an earlier command wrote, which alone has a signature beside its results."""
    try:
        return path.suffix == ".json" and "signature" in read_json_object(path)
    except (ValueError, OSError):
        return False


def _real(name: str, path: Any) -> str | None:
    """Where a link leads, or ``None`` for what is no path."""
    if not isinstance(path, (str, os.PathLike)) or str(path) == "-":
        return None
    try:
        os.stat(path)  # noqa: PTH116
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{name} must be a file or folder: {path} is a link to itself; remove it.") from error
    return os.path.realpath(path)


def _is_device(real: str) -> bool:
    """Whether it is written into, not replaced, such as ``/dev/null`` or a pipe."""
    path = Path(real)
    return path.exists() and not path.is_file() and not path.is_dir()
