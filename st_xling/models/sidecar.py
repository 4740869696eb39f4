"""Sidecar files: card, results, thresholds and pictures that are copied with a model."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.repocard import metadata_load
from safetensors import safe_open
from sentence_transformers.base.model import BaseModel

from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

_CARD = "README.md"
#: Files of ours that may name places on this machine; in what is published they do not.
RECORDS = ("results.json", "mining.json", "training/run.json")
_PICTURES = ("accuracy_by_language", "score_histogram", "token_states", "cosines", "sentence_vectors")
#: What commands add to a model: true of its weights alone. ``card.json`` is the user's.
OF_THE_WEIGHTS = (_CARD, "results.json", "mining.json", *(f"pictures/{name}.png" for name in _PICTURES))
_COPIED = ("card.json", "LICENSE", "int8_ranges.json", "training/log.jsonl", *RECORDS, "pictures/*")
# Settings that change embeddings or scores; others, and the files as a whole, differ by version of ST.
_SETTINGS = {
    "config_sentence_transformers.json": ("prompts", "default_prompt_name", "similarity_fn_name"),
    "sentence_bert_config.json": ("max_seq_length", "do_lower_case"),
    "tokenizer_config.json": ("model_max_length",),
}


def save_with_sidecar_files(model: BaseModel, path: str | Path, source: str | Path) -> None:
    """Save ``model`` with the card, results, thresholds and pictures of another folder.

    They are not copied when the model is no longer the one in that folder, since results are true of its weights alone.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``.
        path: Folder to save to.
        source: Folder that the model was loaded from or saved to.
    """
    folder = Path(source).resolve()
    # Before it is overwritten, where path is source.
    card = (folder / _CARD).read_text(encoding="utf-8") if (folder / _CARD).is_file() else None
    model.save_pretrained(str(path))
    if card is not None:
        _copy_files(folder, card, Path(path))


def card_metadata(name: str | Path, repo_type: str = "model") -> dict[str, Any]:
    """What the card of a folder, or of something on the Hub that was fetched before, says in its YAML; else nothing."""
    card: Any = Path(name) / _CARD
    try:
        if not card.parent.is_dir():
            card = try_to_load_from_cache(str(name), _CARD, repo_type=repo_type)
        return metadata_load(card) or {}
    except Exception:  # the card is not ours to check
        return {}


def card_terms(name: str | Path) -> dict[str, str]:
    """Licence and base model, as far as such a card names one of each: what a copy of the model has to repeat."""
    metadata = card_metadata(name)
    terms = ("license", "license_name", "license_link", "base_model")
    return {term: metadata[term] for term in terms if isinstance(metadata.get(term), str)}


def _copy_files(folder: Path, card: str, goal: Path) -> None:
    difference = _first_difference(goal, folder)
    if difference is not None:
        logger.warning(
            "the model is another than that of %s (%s): its card, results and pictures are not copied.",
            folder,
            difference,
        )
        return
    for source in (path for pattern in _COPIED for path in sorted(folder.glob(pattern))):
        path = source.relative_to(folder).as_posix()
        copy = goal / path
        if copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path in RECORDS:
            copy.write_bytes(shared_json(source))
        else:
            shutil.copyfile(source, copy)
    (goal / _CARD).write_text(card, encoding="utf-8")


def _first_difference(saved: Path, folder: Path) -> str | None:
    """The first file in which the model in ``saved`` differs from that in ``folder``."""
    if saved.resolve() == folder:
        return None
    for path in sorted(saved.rglob("*")):
        name = path.relative_to(saved).as_posix()
        if path.suffix == ".safetensors":
            equal = (folder / name).is_file() and _same_tensors(path, folder / name)
        elif name == "modules.json" or (path.name == "config.json" and "_Transformer" not in name and "/" in name):
            equal = _read_json(path) == _read_json(folder / name)
        elif keys := _SETTINGS.get(path.name):
            new, old = _read_json(path) or {}, _read_json(folder / name) or {}
            equal = all(new.get(key) == old.get(key) for key in keys)
        else:
            continue
        if not equal:
            return name
    return None


def _same_tensors(left: Path, right: Path) -> bool:
    # Versions of safetensors and transformers may order and label equal tensors differently.
    with safe_open(str(left), framework="pt") as new, safe_open(str(right), framework="pt") as old:
        if set(new.keys()) != set(old.keys()):
            return False
        for key in new.keys():  # noqa: SIM118
            one, other = new.get_tensor(key), old.get_tensor(key)
            if one.dtype != other.dtype or not torch.equal(one, other):
                return False
    return True


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
