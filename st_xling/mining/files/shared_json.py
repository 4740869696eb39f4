"""A JSON file of a model's folder that several commands add to: changed by one process at a time, whole at any time."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from st_xling.mining.files.locked_folder import lock_folder
from st_xling.mining.files.whole_files import write_whole

_WAIT_S = 30.0


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file, NaN and infinities as ``None``; empty if there is no file.

    Raises:
        ValueError: If it holds anything else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got {error}; restore the file, or remove it.") from error
    except RecursionError:
        raise ValueError(
            f"{path}: expected JSON, got brackets nested too deep; restore the file, or remove it."
        ) from None
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: expected a JSON object, got {type(content).__name__}; restore the file, or remove it."
        )
    return content


def change_object(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read, change and replace such a file, while every other call of this waits.

    Args:
        path: The file, in a folder that exists.
        change: Makes the new content from the old one; what it raises leaves the file as it is.
    Raises:
        ValueError: As :func:`read_object`, or if another process keeps the folder for half a minute.
        OSError: When it cannot be written; the old file then stands.
    """
    lock = _wait_for(path.parent)
    try:
        content = finite(change(read_object(path)))
        write_whole(path, (json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode("utf-8"))
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


def _wait_for(folder: Path) -> int:
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            return lock_folder(folder)
        except ValueError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.05)
