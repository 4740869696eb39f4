"""Figures of a model kept in its folder: the list ``evaluations`` in ``results.json``, from which its card is made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.utils.io import finite, read_json_object, update_json_object

#: Name of the file in a model's folder.
RESULTS_FILE = "results.json"

#: What figures may be of.
TASKS = (
    *("tatoeba", "bucc", "xsim", "precision", "reranking", "retrieval"),
    *("transfer-xnli", "transfer-pawsx", "transfer-pos", "transfer-panx"),
)

_LIST = "evaluations"


@dataclass(frozen=True)
class KeptFigures:
    """What one evaluation found.

    Attributes:
        task: One of :data:`TASKS`.
        figures: What ``--json`` writes of the task; NaN and infinities, which JSON does not know, as ``None``.
        signature: What the figures depend on besides the model.
        command: Which gives them again.
        version: Of st-xling.
    Raises:
        ValueError: For another task, figures that are no dict, or the rest if it is not text.
    """

    task: str
    figures: dict[str, Any]
    signature: str
    command: str
    version: str = __version__

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}: got {self.task!r}.")
        if not isinstance(self.figures, dict):
            raise ValueError(f"figures must be a dict: got {self.figures!r}.")
        for name in ("signature", "command", "version"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text: got {getattr(self, name)!r}.")


def keep_figures(folder: str | Path, kept: KeptFigures) -> Path:
    """Add figures to those of a model; those of the same task and signature are replaced, all else stays.

    Args:
        folder: Of the model.
        kept: The figures.
    Returns:
        The file.
    Raises:
        ValueError: If there is no such folder, the file that is there is broken, or figures are not JSON's.
        OSError: When it cannot be written; what was there then stands.
    """
    path = Path(folder) / RESULTS_FILE
    if not path.parent.is_dir():
        raise ValueError(f"figures are kept in a model's folder: there is no folder {folder}.")
    try:
        new = json.loads(json.dumps(finite(asdict(kept)), allow_nan=False))
    except TypeError as error:
        raise ValueError(f"figures must be what JSON can write: {error}.") from error

    def added(content: dict[str, Any]) -> dict[str, Any]:
        entries = _entries(content, path)
        for place, entry in enumerate(entries):
            if (entry["task"], entry["signature"]) == (kept.task, kept.signature):
                entries[place] = new
                break
        else:
            entries.append(new)
        return {**content, _LIST: entries}

    update_json_object(path, added)
    return path


def read_kept_figures(folder: str | Path) -> list[KeptFigures]:
    """Figures that were kept with a model, oldest first; none if there are none.

    Raises:
        ValueError: If the file is broken.
    """
    path = Path(folder) / RESULTS_FILE
    return [_figures(entry) for entry in _entries(read_json_object(path), path)]


def _entries(content: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    """As they are in the file, all of them sound."""
    entries = content.get(_LIST, [])
    faults = [] if isinstance(entries, list) else [f"{_LIST!r} must be a list, got {type(entries).__name__}"]
    for number, entry in enumerate(entries if not faults else [], 1):
        try:
            _figures(entry)
        except (ValueError, TypeError, KeyError) as error:
            faults.append(f"number {number}: {f'{error} is missing' if isinstance(error, KeyError) else error}")
    if faults:
        raise ValueError(f"{path}: expected figures of evaluations: {'; '.join(faults)}. Mend or remove the file.")
    return list(entries)


def _figures(entry: Any) -> KeptFigures:
    """Keys that are not known here, of a later version, are left out."""
    if not isinstance(entry, dict):
        raise ValueError(f"expected an object, got {entry!r}")
    return KeptFigures(**{field.name: entry[field.name] for field in fields(KeptFigures)})
