"""Paths that commands read and write, and what of them is published.

An output never replaces an input, nor another output; what is published names files without this machine's folders.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from st_xling.utils.io import read_json_object
from st_xling.utils.terminal import hide_passwords


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
    outputs = [(name, path, "folder") for name, path in (folders or {}).items()]
    outputs += [(name, path, "file") for name, path in files.items()]
    for name, path, kind in outputs:
        if not isinstance(path, (str, os.PathLike)) or str(path) == "-":
            continue
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            continue  # nothing is replaced: /dev/null, a pipe
        real = os.path.realpath(path)
        if "://" in str(path):
            raise ValueError(f"{name} must be on this machine: got {path}; write it here, then copy it there.")
        here, parents = Path(real), [str(parent) for parent in Path(real).parents]
        if here.exists() and here.is_dir() != (kind == "folder"):
            raise ValueError(f"{name} must be a {kind}: {path} is a {'folder' if here.is_dir() else 'file'}; {_OTHER}.")
        if source := read.get(real):
            raise ValueError(f"{name} must be a {kind} of its own: {path} would replace the input {source}; {_OTHER}.")
        if real in written:
            raise ValueError(f"{name} must be a {kind} of its own: {path} is {written[real]} already; {_OTHER}.")
        for parent in parents if kind == "file" else ():
            if parent in read and here.exists() and not _is_result(here):
                raise ValueError(
                    f"{name} must not replace what is read: {path} is a file of the input {read[parent]}; {_OTHER}."
                )
            if parent in written:
                raise ValueError(f"{name} must lie outside {written[parent]}, which holds its own files: got {path}.")
        above = next(part for part in here.parents if part.exists())
        if not above.is_dir():
            raise ValueError(f"{name} must lie in a folder: got {real}, but {above} is a file; {_OTHER}.")
        if not os.access(above, os.W_OK):
            raise ValueError(f"{name} must lie in a folder that you may write to: got {real}; {_OTHER}.")
        written[real] = name


def existing_paths(spec: Any) -> dict[str, str]:
    """The files and folders on this machine that an option's value may name, links followed → as they were named.

    Args:
        spec: A path, a spec with languages before ``=``, paths joined by commas and options after ``?``, or several.

    Example:
        >>> list(existing_paths(f"de-en={__file__}?size=20").values()) == [__file__]
        True
    """
    if isinstance(spec, (list, tuple)):
        return {real: name for part in spec for real, name in existing_paths(part).items()}
    if not isinstance(spec, (str, Path)):
        return {}
    text = str(spec)
    whole = {text, text.partition("=")[2], text.partition("?")[0], text.partition("=")[2].rpartition("?")[0]}
    names = {part for name in whole for part in (name, *name.split(","))} - {""}
    existing = {os.path.realpath(name): name for name in sorted(names) if os.path.lexists(name)}
    if existing:
        return existing
    # The common beginning of line-aligned files: corpus means corpus.de and corpus.en.
    beginnings = (path for name in names for path in Path(name).parent.glob(f"{glob.escape(Path(name).name)}.*"))
    return {os.path.realpath(path): str(path) for path in beginnings}


def without_folders(text: str) -> str:
    """A text, spec or command with the last part alone of absolute paths, and of those below a home.

    URLs stay, without passwords and tokens.

    Example:
        >>> without_folders("st-xling train tr --data 'de-en=/home/me/my texts/a.de,~/a.en?size=9' --out run")
        "st-xling train tr --data 'de-en=a.de,a.en?size=9' --out run"
    """
    text = hide_passwords(text)
    with contextlib.suppress(ValueError):  # quotes that nobody closed: no command of ours
        if text.startswith("st-xling "):  # a path ends where its word does
            return shlex.join(_FOLDERS.sub("", word) for word in shlex.split(text))
    return _FOLDERS.sub("", text)


def shown_command(command: str, repo_id: str | None = None) -> str:
    """Return a command to paste, without what only concerns one machine and changes no result.

    These are ``--keep``, ``--json``, ``--cache``, ``--overwrite`` and ``--resume``, and all but the last part of
    ``--out`` and of absolute paths.

    Args:
        command: The command as it was typed.
        repo_id: Replaces the model of ``evaluate`` and ``transfer``, which comes after the task.
    Example:
        >>> shown_command("st-xling evaluate bucc my-encoder --data mining --json f.json --keep", "me/encoder")
        'st-xling evaluate bucc me/encoder --data mining'
    """
    shown: list[str] = []
    rest = iter(shlex.split(command))
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in ("--json", "--cache"):
            value = value if equals else next(rest, "")
        elif flag == "--out":
            shown += [flag, PurePath(value if equals else next(rest, "")).name or "model"]
        elif word not in ("--overwrite", "--resume", "--keep"):
            shown.append(word)
    if repo_id and shown[1:2] in (["evaluate"], ["transfer"]) and len(shown) > 3 and not shown[3].startswith("-"):
        shown[3] = repo_id
    return without_folders(shlex.join(shown))


def without_places(content: Any) -> Any:
    """Apply :func:`without_folders` to every text and key of JSON data."""
    if isinstance(content, dict):
        return {without_folders(key): without_places(value) for key, value in content.items()}
    if isinstance(content, list):
        return [without_places(value) for value in content]
    return without_folders(content) if isinstance(content, str) else content


def shared_json(path: Path) -> bytes:
    """Return the publishable bytes of a JSON file: its own, or those of :func:`without_places`."""
    written = path.read_bytes()
    content = json.loads(written)
    shared = without_places(content)
    return written if shared == content else f"{json.dumps(shared, ensure_ascii=False, indent=2)}\n".encode()


# Where a word of a text or spec begins: "/", a drive or "~/", and folders up to the last part, which is left.
_FOLDERS = re.compile(
    r"""(?<![^\s=,:|'"(])(?:file://)?(?!//)(?:[A-Za-z]:[/\\]|/|~[\w.-]*/)(?:[^/\\=,:|?'"\n]*[/\\])*(?=[\w.])"""
)
_OTHER = "choose another name"


def _is_result(path: Path) -> bool:
    """Return whether it is a file of ``--json``: only these have a signature next to results."""
    try:
        return path.suffix == ".json" and "signature" in read_json_object(path)
    except (ValueError, OSError):
        return False
