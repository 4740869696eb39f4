"""Whose a store's folder is: only the store that was asked for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from st_xling.mining.stores.manifest import JOURNAL, MANIFEST, WRITING, Header
from st_xling.utils.io import TEMPORARY


def is_unfinished(path: Path) -> bool:
    """Whether it is a file of a store that a killed process left while it was written."""
    name = path.name.removesuffix(TEMPORARY)
    return path.name != name and (name in (MANIFEST, WRITING, JOURNAL) or name.startswith("shard-"))


def check_folder(folder: Path) -> None:
    """Raise unless the folder is empty, or a store, whole or half-written."""
    ours = any((folder / name).is_file() for name in (MANIFEST, WRITING))
    if not ours and any(not is_unfinished(path) for path in folder.iterdir()):
        raise ValueError(f"{folder} holds something that is no store; choose another folder.")


def differences(found: Header | dict[str, Any], asked: Header | dict[str, Any]) -> list[str]:
    """In what two headers, or the descriptions of two texts, do not agree; names are left out, contents count."""
    left, right = (asdict(part) if isinstance(part, Header) else part for part in (found, asked))
    return [
        f"{key.replace('_', ' ')} was {_short(left.get(key))}, is now {_short(right[key])}"
        for key in right
        if key != "files" and _content(left.get(key)) != _content(right[key])
    ]


def _content(value: Any) -> Any:
    # A model may be moved or renamed: its fingerprint counts.
    return value["fingerprint"] if isinstance(value, dict) and "fingerprint" in value else value


def _short(value: Any) -> str:
    if isinstance(value, dict) and "fingerprint" in value:
        return f"{value['name'] or 'unnamed'}@{value['fingerprint'][:8]}"
    if isinstance(value, list) and len(value) > 5:
        return f"{len(value)} of them"
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)
