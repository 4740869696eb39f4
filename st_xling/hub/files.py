"""The files of a model's folder that are published."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from st_xling.utils.io import read_json_object

logger = logging.getLogger(__name__)

#: Weights in formats that run code when they are read, or that other frameworks alone read.
UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npz", ".h5", ".msgpack", ".ot")
# The run's own: checkpoints, bases, sorted texts. A run keeps what others may see in run.json and log.jsonl.
_WORK_FOLDERS = {"training", "eval"}
_STOCK = {
    *("config.json", "config_sentence_transformers.json", "sentence_bert_config.json", "modules.json"),
    *("router_config.json", "model.safetensors", "model.safetensors.index.json", "generation_config.json"),
    *("adapter_model.safetensors", "adapter_config.json", "preprocessor_config.json", "processor_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "sentencepiece.bpe.model", "sentencepiece.model"),
    *("spiece.model", "spm.model", "tokenizer.model"),
}
"""Files of sentence-transformers and transformers, in the folder of a model or of a module."""
_SIDECARS = {
    *("README.md", "LICENSE", "results.json", "int8_ranges.json", "mining.json", "card.json"),
    *("training/run.json", "training/log.jsonl"),
}
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_MODULE = re.compile(r"(?:[A-Za-z][\w-]*?_)?\d+_[A-Z]\w*")
_NESTED = re.compile(r"\d+_Router/(?P<path>.+/.+)")
_PICTURE = re.compile(r"pictures/\w[\w.-]*\.(png|svg)")


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published model: its path relative to the model's folder, and its size in bytes."""

    path: str
    size: int


def is_published(path: str) -> bool:
    """Return whether the file at ``path``, relative to the model's folder, is part of a published model.

    Example:
        >>> [is_published(path) for path in ("2_Dense/model.safetensors", "training/checkpoint-5/model.safetensors")]
        [True, False]
    """
    if path in _SIDECARS or _PICTURE.fullmatch(path):
        return True
    if nested := _NESTED.fullmatch(path):
        path = nested["path"]
    folder, _, name = path.rpartition("/")
    return (name in _STOCK or _SHARD.fullmatch(name) is not None) and (not folder or bool(_MODULE.fullmatch(folder)))


def published_files(folder: str | Path) -> list[PublishedFile]:
    """List the files of a model's folder that are published, the card first.

    Checkpoints and other work files of training are not published. Neither are unknown files, which a warning names.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
    Raises:
        ValueError: If there is no model, its training has not ended, weights are not safetensors or damaged, modules
            are of other packages or need other code, or adapters need a model that is only on this machine.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: {folder} is none; give what st-xling train wrote.")
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    paths.sort(key=lambda path: (path != "README.md", "/" in path, path))
    known = [path for path in paths if is_published(path)]
    if read_json_object(folder / "training" / "run.json").get("finished") is False:
        raise ValueError(f"the training in {folder} has not ended; resume it: st-xling train … --resume.")
    unknown = [
        path
        for path in paths
        if not (path in known or path.partition("/")[0] in _WORK_FOLDERS or path.startswith("."))
        and not ("/" not in path and path.endswith("_results.csv"))
    ]
    _check_weights(folder, known, unknown)
    _check_stock(folder, known)
    if unknown:
        logger.warning("not published, since not part of a model: %s (in %s)", ", ".join(unknown), folder)
    return [PublishedFile(path, (folder / path).stat().st_size) for path in known]


def check_links(folder: Path, files: Iterable[PublishedFile]) -> None:
    """Raise ``ValueError`` for links out of ``folder``, except into the Hub's cache, whose snapshots are all links."""
    from huggingface_hub import constants

    allowed = [folder.resolve(), Path(constants.HF_HUB_CACHE).resolve()]
    if folder.parent.name == "snapshots":  # of a cache in another place
        allowed.append(folder.resolve().parent.parent)
    places = {file.path: (folder / file.path).resolve() for file in files}
    if linked := [name for name, place in places.items() if not any(place.is_relative_to(at) for at in allowed)]:
        raise ValueError(
            f"only files inside {folder} are published: {', '.join(linked)} link to files elsewhere; replace the links "
            "by copies."
        )


def _check_weights(folder: Path, known: list[str], unknown: list[str]) -> None:
    if unsafe := [path for path in unknown if path.endswith(UNSAFE_SUFFIXES)]:
        raise ValueError(
            f"only safetensors weights are published: {folder} contains {', '.join(unsafe)}; load the model and save "
            "it again with save_pretrained, into another folder, or remove what is not needed."
        )
    weights = [path for path in known if path.endswith(".safetensors")]
    if not weights or not {"modules.json", "config.json"}.intersection(known):
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


def _check_stock(folder: Path, known: list[str]) -> None:
    """Raise ``ValueError`` for what others could not load: modules that are missing or of others, a base model that is
    only on this machine."""
    path = folder / "modules.json"
    try:
        listed = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        modules = {str(module.get("path") or ""): str(module["type"]) for module in listed}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a list of modules with types ({error!r}); save the model again.") from error
    if lacking := [
        f"{name} ({kind.rpartition('.')[2]})"
        for name, kind in modules.items()
        if name and not kind.endswith(".Normalize") and not any(file.startswith(f"{name}/") for file in known)
    ]:
        raise ValueError(
            f"{folder} lacks modules that modules.json names: {', '.join(lacking)}; save the model again, with folders "
            "in place of links."
        )
    foreign = [kind for kind in modules.values() if not kind.startswith("sentence_transformers.")]
    configs = [name for name in known if name.endswith("config.json")]
    foreign += [f"{name} (auto_map)" for name in configs if read_json_object(folder / name).get("auto_map")]
    if foreign:
        raise ValueError(
            f"a published model needs sentence-transformers alone: {folder} needs the code of {', '.join(foreign)}, "
            "which others could load with trust_remote_code only."
        )
    base = str(read_json_object(folder / "adapter_config.json").get("base_model_name_or_path", ""))
    if base and (base.count("/") > 1 or base.startswith((".", "/", "~")) or Path(base).exists()):
        raise ValueError(
            f"{folder} contains adapters of a model that is only on this machine, {base}: merge them (st-xling train … "
            "--lora), or train them on a model of the Hub."
        )
