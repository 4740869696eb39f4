"""The files of a model's folder that are published, and those that are not."""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_xling.hub.known_files import describe
from st_xling.utils.io import check_shape, read_json_object

logger = logging.getLogger(__name__)

#: Weights in formats that run code when they are read, or that other frameworks alone read.
UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npz", ".h5", ".msgpack", ".ot")
# The run's own: checkpoints, bases, sorted texts. A run keeps what others may see in run.json and log.jsonl.
_WORK_FOLDERS = {"training", "eval", ".replaced", ".saving", ".cache", ".git"}
_KEPT_OF_HUBS = {".gitattributes", ".gitignore", ".DS_Store"}


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published model.

    Attributes:
        path: Relative to the model's folder, with forward slashes.
        size: In bytes.
        what: A phrase that says what it is.
    """

    path: str
    size: int
    what: str


def published_files(folder: str | Path) -> list[PublishedFile]:
    """The files of a model's folder that are published: the card first, then those on top, then those in folders.

    Checkpoints and other work files of training stay at home. A file that is not known stays there too, and is named
    in a warning.

    Args:
        folder: As ``st-xling train`` leaves it, or ``save_pretrained``.

    Raises:
        ValueError: No folder, no model in it, a training that has not ended, weights that are not safetensors or are
            damaged, modules that are not the host's, settings that need code of the user's, adapters of a model that
            lies on this machine alone.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: {folder} is none; give what st-xling train wrote.")
    paths = sorted(_walk(folder), key=lambda path: (path != "README.md", "/" in path, path))
    known = {path: what for path in paths if (what := describe(path)) is not None}
    _check_finished(folder)
    _check_weights(folder, paths, known)
    _check_modules(folder)
    _check_code(folder, known)
    _check_base(folder)
    unknown = [path for path in paths if path not in known and not _stays_silently(path)]
    if unknown:
        _warn_once(f"not published, since no part of a model: {', '.join(unknown)} (in {folder})")
    return [PublishedFile(path, (folder / path).stat().st_size, what) for path, what in known.items()]


@functools.cache
def _warn_once(text: str) -> None:
    """The card's table and the push ask for the same files."""
    logger.warning("%s", text)


def _walk(folder: Path) -> Iterator[str]:
    """Paths below ``folder`` with forward slashes; of work folders, only files that may be published."""
    for place, folders, names in os.walk(folder):
        relative = Path(place).relative_to(folder)
        inside_work = bool(relative.parts) and relative.parts[0] in _WORK_FOLDERS
        if inside_work:
            folders.clear()
        for name in names:
            path = (relative / name).as_posix()
            if not inside_work or describe(path) is not None:
                yield path


def _stays_silently(path: str) -> bool:
    return path in _KEPT_OF_HUBS or ("/" not in path and path.endswith("_results.csv"))


def _check_finished(folder: Path) -> None:
    run = folder / "training" / "run.json"
    if read_json_object(run).get("finished") is False:
        raise ValueError(f"{folder} holds a training that has not ended; go on with it: st-xling train … --resume.")


def _check_weights(folder: Path, paths: list[str], known: dict[str, str]) -> None:
    unsafe = [path for path in paths if path.endswith(UNSAFE_SUFFIXES)]
    if unsafe:
        raise ValueError(
            f"only safetensors weights are published: {folder} holds {', '.join(unsafe)}; load the model and save it "
            "again with save_pretrained, into another folder, or remove what is not needed."
        )
    weights = [path for path in known if path.endswith(".safetensors")]
    if not weights or not ({"modules.json", "config.json"} & known.keys()):
        raise ValueError(
            f"no model to publish in {folder}: expected modules.json and model.safetensors, as st-xling train and "
            "save_pretrained write them."
        )
    from safetensors import SafetensorError, safe_open

    for path in weights:
        try:
            with safe_open(str(folder / path), framework="numpy"):
                pass
        except SafetensorError as error:
            raise ValueError(f"{folder / path} is no whole safetensors file ({error}); save it again.") from error


def _check_modules(folder: Path) -> None:
    """Refuse modules that a stranger's sentence-transformers would not load by itself."""
    path = folder / "modules.json"
    listed = _read(path) if path.is_file() else []
    check_shape(listed, [{"type": str}], path, remedy="save the model again")
    types = [(module or {}).get("type") or "a module without type" for module in listed or ()]
    foreign = [name for name in types if not name.startswith("sentence_transformers.")]
    if foreign:
        raise ValueError(
            f"a published model needs sentence-transformers alone: {path} names {', '.join(foreign)}, which others "
            "could load with trust_remote_code only; rebuild the model from the host's modules."
        )


def _check_code(folder: Path, known: Iterable[str]) -> None:
    """Refuse what transformers could load only with code that is not published."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    for path in known:
        if not path.endswith("config.json"):
            continue
        settings = read_json_object(folder / path)
        kind = settings.get("model_type")
        if settings.get("auto_map"):
            why = f"has auto_map, {json.dumps(settings['auto_map'])[:200]}"
        elif Path(path).name == "config.json" and isinstance(kind, str) and kind not in CONFIG_MAPPING_NAMES:
            why = f"names a model_type that transformers does not know, {kind!r}"
        else:
            continue
        raise ValueError(
            f"a published model needs sentence-transformers alone: {folder / path} {why}, for which others would need "
            "code that is not published; save the model with a class of transformers."
        )


def _check_base(folder: Path) -> None:
    """Refuse adapters whose base nobody else has."""
    path = folder / "adapter_config.json"
    if not path.is_file():
        return
    base = str(read_json_object(path).get("base_model_name_or_path"))
    if base.count("/") > 1 or base.startswith((".", "/", "~")) or "\\" in base or Path(base).exists():
        raise ValueError(
            f"{folder} holds adapters of a model that lies on this machine alone, {base}: merge them (st-xling train "
            "… --lora), or train them on a model of the Hub."
        )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); save the model again.") from error
