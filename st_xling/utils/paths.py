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
    a *new* file may be put there. A folder that is written may lie in one that is read, or contain files that are read:
    what it replaces there is the writer's concern.

    Args:
        files: Name of the option → file to be written; what is no path (a stream, ``"-"``, ``None``) is skipped.
        inputs: Files, folders, specs such as ``de-en=a.de,a.en?split=test``, Hub ids; what names nothing on this
            machine is skipped.
        folders: Name of the option → folder to be written.

    Raises:
        ValueError: Naming the option, the path and what it would replace.
    """
    read: dict[str, str] = {}
    for path in inputs:
        read |= existing_paths(path)
    outputs = [(name, path, "folder") for name, path in (folders or {}).items()]
    outputs += [(name, path, "file") for name, path in files.items()]
    written: dict[str, str] = {}
    for name, path, kind in outputs:
        if not isinstance(path, (str, os.PathLike)) or str(path) == "-":
            continue
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            continue  # nothing is replaced: /dev/null, a pipe
        real = os.path.realpath(path)
        _check_output(name, path, kind, real, read, written)
        _check_folder_above(name, real)
        written[real] = name


def _check_output(
    name: str, path: Any, kind: str, real: str, read: Mapping[str, str], written: Mapping[str, str]
) -> None:
    """Raise ``ValueError`` if an output would replace an input or another output.

    Args:
        name: Option that names the output.
        path: The output, as it was named.
        kind: ``"file"`` or ``"folder"``.
        real: Its path, links followed.
        read: Paths of the inputs, links followed → as they were named.
        written: Paths of the other outputs, links followed → their options.
    """
    if "://" in str(path):
        raise ValueError(f"{name} must be on this machine: got {path}; write it here, then copy it there.")
    output = Path(real)
    if output.exists() and output.is_dir() != (kind == "folder"):
        found_kind = "folder" if output.is_dir() else "file"
        raise ValueError(f"{name} must be a {kind}: {path} is a {found_kind}; {_REMEDY}.")
    if source := read.get(real):
        raise ValueError(f"{name} must be a {kind} of its own: {path} would replace the input {source}; {_REMEDY}.")
    if real in written:
        raise ValueError(f"{name} must be a {kind} of its own: {path} is {written[real]} already; {_REMEDY}.")
    if kind == "folder":
        return
    for folder in map(str, output.parents):
        if folder in read and output.exists() and not _is_result(output):
            raise ValueError(
                f"{name} must not replace what is read: {path} is a file of the input {read[folder]}; {_REMEDY}."
            )
        if folder in written:
            raise ValueError(f"{name} must lie outside {written[folder]}, which holds its own files: got {path}.")


def _check_folder_above(name: str, real: str) -> None:
    """Raise ``ValueError`` if an output cannot be written where it is named."""
    existing = next(folder for folder in Path(real).parents if folder.exists())
    if not existing.is_dir():
        raise ValueError(f"{name} must lie in a folder: got {real}, but {existing} is a file; {_REMEDY}.")
    if not os.access(existing, os.W_OK):
        raise ValueError(f"{name} must lie in a folder that you may write to: got {real}; {_REMEDY}.")


def existing_paths(spec: Any) -> dict[str, str]:
    """Return the files and folders on this machine that an option's value may name.

    They are keyed by their paths with links followed; the values are as they were named.

    Args:
        spec: A path, a spec with languages before ``=``, paths joined by commas and options after ``?``, or several.

    Example:
        >>> list(existing_paths(f"de-en={__file__}?size=20").values()) == [__file__]
        True
    """
    if isinstance(spec, (list, tuple)):
        existing: dict[str, str] = {}
        for path in spec:
            existing |= existing_paths(path)
        return existing
    if not isinstance(spec, (str, Path)):
        return {}

    names = _possible_names(str(spec))
    existing = {os.path.realpath(name): name for name in names if os.path.lexists(name)}
    if existing:
        return existing
    # The common beginning of line-aligned files: corpus means corpus.de and corpus.en.
    for name in names:
        prefix = Path(name)
        for path in prefix.parent.glob(f"{glob.escape(prefix.name)}.*"):
            existing[os.path.realpath(path)] = str(path)
    return existing


def _possible_names(spec: str) -> list[str]:
    """Return the texts within a spec that may be names of files, in alphabetical order.

    An ``=`` or ``?`` may belong to a name or divide it from languages and options, and a comma may join two names.
    """
    _, _, location = spec.partition("=")
    names = set()
    for text in (spec, location, spec.partition("?")[0], location.rpartition("?")[0]):
        names.update([text, *text.split(",")])
    return sorted(names - {""})


def without_folders(text: str) -> str:
    """Return a text, spec or command in which absolute paths, and those below a home, have only their last part.

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
    words = iter(shlex.split(command))
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in ("--json", "--cache", "--out") and not equals:
            value = next(words, "")
        if flag in ("--json", "--cache"):
            continue
        if flag == "--out":
            shown += [flag, PurePath(value).name or "model"]
        elif word not in ("--overwrite", "--resume", "--keep"):
            shown.append(word)
    names_model = len(shown) > 3 and shown[1] in ("evaluate", "transfer") and not shown[3].startswith("-")
    if repo_id and names_model:
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
    """Return the publishable bytes of a JSON file: as it is, or with the content of :func:`without_places`."""
    written = path.read_bytes()
    content = json.loads(written)
    shared = without_places(content)
    if shared == content:
        return written
    return f"{json.dumps(shared, ensure_ascii=False, indent=2)}\n".encode()


# Where a word of a text or spec begins: "/", a drive or "~/", and folders up to the last part, which is kept.
_FOLDERS = re.compile(
    r"""(?<![^\s=,:|'"(])(?:file://)?(?!//)(?:[A-Za-z]:[/\\]|/|~[\w.-]*/)(?:[^/\\=,:|?'"\n]*[/\\])*(?=[\w.])"""
)
_REMEDY = "choose another name"


def _is_result(path: Path) -> bool:
    """Return whether it is a file of ``--json``: only these have a signature next to results."""
    try:
        return path.suffix == ".json" and "signature" in read_json_object(path)
    except (ValueError, OSError):
        return False
