"""The files of a model's folder that are published, what each is, and those that stay at home."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from st_xling.utils.io import LOCK, read_json_object

logger = logging.getLogger(__name__)

#: Weights in formats that run code when they are read, or that other frameworks alone read.
UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npz", ".h5", ".msgpack", ".ot")
# The run's own: checkpoints, bases, sorted texts. A run keeps what others may see in run.json and log.jsonl.
_WORK_FOLDERS = {"training", "eval"}
_OF_HUBS = {".gitattributes", ".gitignore", ".DS_Store", LOCK}
_STOCK = {
    "config.json": "shape of the encoder",
    "config_sentence_transformers.json": "settings of sentence-transformers: kind of model, prompts, similarity",
    "sentence_bert_config.json": "how sentence-transformers feeds the encoder: length, output",
    "modules.json": "the modules and their order",
    "router_config.json": "which modules read which text",
    "model.safetensors": "weights",
    "model.safetensors.index.json": "which file holds which weights",
    "adapter_model.safetensors": "weights of the adapters",
    "adapter_config.json": "shape of the adapters, and the model below them",
    "tokenizer.json": "the tokenizer: how text becomes tokens",
    "tokenizer_config.json": "settings of the tokenizer",
    "special_tokens_map.json": "special tokens",
    "added_tokens.json": "tokens added to the vocabulary",
    "chat_template.jinja": "how several texts become one",
    "generation_config.json": "settings for generating text",
    **dict.fromkeys(("preprocessor_config.json", "processor_config.json"), "settings of the input's preparation"),
    **dict.fromkeys(("vocab.txt", "vocab.json", "merges.txt", "bpe.codes"), "vocabulary of the tokenizer"),
    **dict.fromkeys(
        ("sentencepiece.bpe.model", "sentencepiece.model", "spiece.model", "spm.model", "tokenizer.model"),
        "vocabulary of the tokenizer",
    ),
}
_SIDECARS = {
    "README.md": "this card",
    "LICENSE": "the licence in full",
    "results.json": "every result, with its signature",
    "int8_ranges.json": "ranges of int8 vectors, for quantize_embeddings of sentence-transformers",
    "mining.json": "thresholds for mining, by language pair",
    "card.json": "what the user says for this card: licences, intended use",
    "training/run.json": "recipe, data and command of the training",
    "training/log.jsonl": "loss and development scores by step",
}
_SHARD = re.compile(r"model-(\d{5})-of-(\d{5})\.safetensors")
_MODULE = re.compile(r"(?:(?P<route>[A-Za-z][\w-]*?)_)?\d+_(?P<kind>[A-Z]\w*)")
_NESTED = re.compile(r"\d+_Router/(?P<path>.+/.+)")
_PICTURE = re.compile(r"pictures/(?P<name>[\w][\w.-]*)\.(png|svg)")


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


def describe(path: str) -> str | None:
    """What the file at ``path`` of a published model is.

    Args:
        path: Relative to the model's folder, with forward slashes.

    Returns:
        A phrase for the card's table of files; ``None`` for a file that is no part of a published model.

    Example:
        >>> describe("2_Dense/model.safetensors")
        'Dense module: weights'
    """
    if path in _SIDECARS:
        return _SIDECARS[path]
    if picture := _PICTURE.fullmatch(path):
        return "picture: " + re.sub(r"[_\W]+", " ", picture["name"]).strip()
    if nested := _NESTED.fullmatch(path):
        path = nested["path"]
    folder, _, name = path.rpartition("/")
    shard = _SHARD.fullmatch(name)
    what = f"weights, part {int(shard[1])} of {int(shard[2])}" if shard else _STOCK.get(name)
    module = _MODULE.fullmatch(folder)
    if what is None or not folder or module is None:
        return what if not folder else None
    if name == "config.json" and module["kind"] != "Transformer":
        what = "settings"
    routes = {"query": "queries", "document": "documents"}
    route = f" for {routes.get(module['route'], module['route'])}" if module["route"] else ""
    return f"{module['kind']} module{route}: {what}"


def published_files(folder: str | Path) -> list[PublishedFile]:
    """The files of a model's folder that are published: the card first, then those on top, then those in folders.

    Checkpoints and other work files of training stay at home. A file that is not known stays there too, and is named
    in a warning.

    Args:
        folder: As ``st-xling train`` leaves it, or ``save_pretrained``.

    Raises:
        ValueError: No folder, no model in it, a training that has not ended, weights that are not safetensors or are
            damaged, modules of other packages, settings that need code of the user's, adapters of a model that lies on
            this machine alone.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: {folder} is none; give what st-xling train wrote.")
    paths = sorted(_walk(folder), key=lambda path: (path != "README.md", "/" in path, path))
    known = {path: what for path in paths if (what := describe(path)) is not None}
    if read_json_object(folder / "training" / "run.json").get("finished") is False:
        raise ValueError(f"{folder} holds a training that has not ended; go on with it: st-xling train … --resume.")
    _check_weights(folder, paths, known)
    _check_stock(folder, known)
    ours = [path for path in paths if path in _OF_HUBS or ("/" not in path and path.endswith("_results.csv"))]
    if unknown := [path for path in paths if path not in known and path not in ours]:
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
        top = relative.parts[0] if relative.parts else ""
        inside_work = top in _WORK_FOLDERS or top.startswith(".")
        if inside_work:
            folders.clear()
        for name in names:
            path = (relative / name).as_posix()
            if not inside_work or describe(path) is not None:
                yield path


def check_links(folder: Path, files: Iterable[PublishedFile]) -> None:
    """Raise ``ValueError`` for links out of ``folder``, except into the Hub's cache, whose snapshots are all links."""
    from huggingface_hub import constants

    allowed = [folder.resolve(), Path(constants.HF_HUB_CACHE).resolve()]
    if folder.parent.name == "snapshots":  # of a cache in another place
        allowed.append(folder.resolve().parent.parent)
    linked = [
        file.path for file in files if not any((folder / file.path).resolve().is_relative_to(at) for at in allowed)
    ]
    if linked:
        raise ValueError(
            f"only files inside {folder} are published: {', '.join(linked)} link to files elsewhere; replace the links "
            "by copies."
        )


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


def _check_stock(folder: Path, known: Iterable[str]) -> None:
    """Refuse what a stranger's sentence-transformers would not load by itself: modules and code of others, or a base
    model that nobody else has."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    alone = "a published model needs sentence-transformers alone"
    path = folder / "modules.json"
    try:
        listed = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        types = [module["type"] for module in listed]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no list of modules with types ({error!r}); save the model again.") from error
    folders = {str(module.get("path") or ""): str(module["type"]) for module in listed}
    lacking = [
        f"{name} ({kind.rpartition('.')[2]})"
        for name, kind in folders.items()
        if name and not kind.endswith(".Normalize") and not any(path.startswith(f"{name}/") for path in known)
    ]
    if lacking:
        raise ValueError(
            f"{folder} lacks modules that modules.json names: {', '.join(lacking)}; save the model again, with folders "
            "in place of links."
        )
    if foreign := [name for name in types if not str(name).startswith("sentence_transformers.")]:
        raise ValueError(
            f"{alone}: {path} names {', '.join(map(str, foreign))}, which others could load with trust_remote_code "
            "only; rebuild the model from its own modules."
        )
    for path in (folder / name for name in known if name.endswith("config.json")):
        settings = read_json_object(path)
        kind = settings.get("model_type")
        if settings.get("auto_map"):
            why = f"has auto_map, {json.dumps(settings['auto_map'])[:200]}"
        elif path.name == "config.json" and isinstance(kind, str) and kind not in CONFIG_MAPPING_NAMES:
            why = f"names a model_type that transformers does not know, {kind!r}"
        else:
            continue
        raise ValueError(
            f"{alone}: {path} {why}, for which others would need code that is not published; save the model with a "
            "class of transformers."
        )
    base = str(read_json_object(folder / "adapter_config.json").get("base_model_name_or_path", ""))
    if base.count("/") > 1 or base.startswith((".", "/", "~")) or "\\" in base or (base and Path(base).exists()):
        raise ValueError(
            f"{folder} holds adapters of a model that lies on this machine alone, {base}: merge them (st-xling train "
            "… --lora), or train them on a model of the Hub."
        )
