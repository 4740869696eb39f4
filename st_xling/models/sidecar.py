"""Folders of models: what identifies a model, the files next to its weights, and a model made from another."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.repocard import metadata_load

from st_xling.models.lora import CONFIG as ADAPTER_CONFIG
from st_xling.models.lora import own_base
from st_xling.utils.io import file_sha256, read_json_object, temporary_path, write_json
from st_xling.utils.resumable import ResumableFolder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CARD = "README.md"
#: Files of ours that may name places on this machine; in what is published they do not.
RECORDS = ("results.json", "mining.json", "training/run.json")
_PICTURE_FILES = (
    *("pictures/accuracy_by_language.png", "pictures/score_histogram.png", "pictures/cosines.png"),
    "pictures/front.png",
)
#: Files that commands add to a model: they only belong to its weights. ``card.json`` is the user's.
OF_THE_WEIGHTS = (_CARD, "results.json", "mining.json", ".eval_results/st-xling.yaml", *_PICTURE_FILES)
_MODEL_FILES = (".safetensors", ".bin", ".json", ".txt", ".model", ".py")
_NO_MODULES = ("training", "eval", "pictures", "onnx", "openvino", ".git", ".cache")
#: Texts whose embeddings tell apart models of backends that do not show their weights.
PROBES = ["The cat sleeps.", "Die Katze schläft.", "猫在睡觉。", "القطة نائمة."]


def saved_card_metadata(name: str | Path) -> dict[str, Any]:
    """Return the YAML of the card of a folder, or of a model of the Hub that was fetched before; else nothing."""
    card: Any = Path(name) / _CARD
    try:
        if not card.parent.is_dir():
            card = try_to_load_from_cache(str(name), _CARD)
        return metadata_load(card) or {}
    except Exception:  # the card is not ours to check
        return {}


def card_terms(name: str | Path) -> dict[str, str]:
    """Licence and base model, as far as such a card names one of each: what a copy of the model has to repeat."""
    metadata = saved_card_metadata(name)
    terms = ("license", "license_name", "license_link", "base_model")
    return {term: metadata[term] for term in terms if isinstance(metadata.get(term), str)}


@contextmanager
def model_folder(out: str | Path, source: str, key: str, *, overwrite: bool = False) -> Iterator[ResumableFolder]:
    """Yield the folder of a model that is made from another, such as a slim one; no other process makes it meanwhile.

    Args:
        out: The folder of the new model.
        source: Hub id or folder of the model that it is made from.
        key: Key of the report in ``results.json``, which names the kind, such as ``"slim"``.
        overwrite: Replace an earlier model of the kind.

    Raises:
        ValueError: If such a model may not be written to ``out``, or another process writes it.
    """
    out = Path(out)
    if Path(source).is_dir():
        source_folder = Path(source).resolve()
        out_folder = out.resolve()
        is_inside = source_folder in out_folder.parents or out_folder in source_folder.parents
        if source_folder == out_folder or is_inside:
            raise ValueError(f"--out must lie apart from the model, which stays as it is: got {out} for {source}.")
    with ResumableFolder(out, name="--out", instead="choose another --out", record="training/done.json") as folder:
        folder.check_free()
        if folder.load() and folder.task != {"command": key}:
            raise ValueError(f"{out} contains an earlier model of {folder.task.get('command')}; choose another --out.")
        if "model" in folder.steps and not overwrite:
            raise ValueError(f"{out} contains an earlier model of {key}; use --overwrite to replace it.")
        folder.task = {"command": key}
        yield folder


def write_model(
    folder: ResumableFolder,
    model: SentenceTransformer,
    source: str,
    report: dict[str, Any],
    complete: Callable[[Path], object] | None = None,
) -> None:
    """Save a model and its report, in a temporary folder first.

    Args:
        folder: From :func:`model_folder`.
        model: The new ``SentenceTransformer``.
        source: Model that it was made from; the manifest of its training, and its check for leaks, are copied.
        report: For ``results.json``.
        complete: Called with the temporary folder before its files are moved, such as to write the card.

    Raises:
        OSError: When it cannot be written; an earlier model then stays.
    """
    folder.remove_temporary()
    temporary = temporary_path(folder.path / "model")
    new = temporary / folder.path.resolve().name  # the card is called by the folder's name
    manifest = Path(source) / "training" / "run.json"
    try:
        new.parent.mkdir()
        model.save_pretrained(str(new))
        results = {folder.task["command"]: report}
        if manifest.is_file():
            (new / "training").mkdir()
            shutil.copyfile(manifest, new / "training" / "run.json")
            # The card tells of this training, and whether its text was compared with test text.
            results |= _leak_check(Path(source))
        write_json(new / "results.json", results)
        if complete is not None:
            complete(new)
        folder.install("model", new, also=OF_THE_WEIGHTS)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _leak_check(trained: Path) -> dict[str, Any]:
    results = read_json_object(trained / "results.json")
    return {name: value for name, value in results.items() if name == "leak"}


def model_fingerprint(model: Any) -> str:
    """SHA-256 of weights that embeddings depend on, their types, the modules and their settings, the vocabulary, the
    length that texts are cut to and the default prompt. Paths, versions, devices and threads do not enter it.

    Args:
        model: A ``SentenceTransformer`` or a ``CrossEncoder``.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    settings = {
        "modules": [[type(module).__name__, _settings(module)] for module in model],
        "max_seq_length": model.max_seq_length,
        "truncate_dim": getattr(model, "truncate_dim", None),  # a cross-encoder has none
        "prompt": model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
        "tokenizer": _vocabulary(model.tokenizer),
    }
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode("utf-8"))
    backend = getattr(model, "backend", "torch")
    if backend != "torch":  # its weights are not torch's: identified by what it computes
        if hasattr(model, "predict"):
            scores = model.predict([(text, text) for text in PROBES])
        else:
            scores = model.encode(PROBES)
        digest.update(f"{backend} {np.round(scores, 3).tolist()}".encode())
    # Where token states are pooled, the transformer's pooler is computed and not read; a checkpoint without one gets
    # another, of random weights, each time it is loaded.
    pools = any(type(module).__name__ == "Pooling" for module in model.modules())
    for key, tensor in sorted(model.state_dict().items()):
        if pools and ".pooler." in key:
            continue
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def saved_fingerprint(name_or_path: str, *, revision: str | None = None) -> str | None:
    """Hash of a saved model that is not loaded: two models of one name can be told apart by it.

    Args:
        name_or_path: Folder, of whose model files all bytes are read; or Hub id, which is identified by the commit that
            the cache has.
        revision: Branch, tag or commit of the Hub.

    Returns:
        64 hexadecimal digits, or the commit; ``None`` if there is neither a folder nor a cached model.
    """
    folder = Path(name_or_path)
    if not folder.is_dir():
        return _cached_commit(name_or_path, revision)
    base = own_base(folder)
    digest = hashlib.sha256()
    roots = [folder] if base is None else [folder, base]
    for root in roots:
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            name = relative.as_posix()
            is_model_file = path.suffix in _MODEL_FILES and relative.parts[0] not in _NO_MODULES and path.is_file()
            # Files that name the folder of adapters' base, or that commands write next to a model, are no part of it.
            if is_model_file and name not in (*OF_THE_WEIGHTS, "card.json", ADAPTER_CONFIG):
                digest.update(f"{name} {file_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _cached_commit(repo_id: str, revision: str | None) -> str | None:
    for name in ("modules.json", "config.json"):
        try:
            path = try_to_load_from_cache(repo_id, name, revision=revision)
        except ValueError:  # no Hub id
            return None
        if isinstance(path, str):  # …/snapshots/COMMIT/config.json
            return Path(path).parent.name
    return None


def _settings(module: Any) -> Any:
    if hasattr(module, "auto_model"):  # its settings name paths and versions; weights and vocabulary are hashed
        config = module.auto_model.config.to_dict()
        return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}
    return _text_keys(module.get_config_dict()) if hasattr(module, "get_config_dict") else str(module)


def _text_keys(value: Any) -> Any:
    """Turn keys that are tuples into text: a ``Router`` has such keys, which JSON has not."""
    if not isinstance(value, dict):
        return value
    result = {}
    for key, inner in value.items():
        result[str(key) if isinstance(key, tuple) else key] = _text_keys(inner)
    return result


def _vocabulary(tokenizer: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items()) if hasattr(tokenizer, "get_vocab") else str(type(tokenizer))
    content = json.loads(backend.to_str())
    # Every call sets these two anew.
    return {key: value for key, value in content.items() if key not in ("truncation", "padding")}
