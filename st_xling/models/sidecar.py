"""Sidecar files: card, results, thresholds and pictures that are copied with a model."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.repocard import metadata_load
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.model import BaseModel

from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.load import load_sentence_transformer
from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

_CARD = "README.md"
#: Files of ours that may name places on this machine; in what is published they do not.
RECORDS = ("results.json", "mining.json", "training/run.json")
_PICTURES = ("accuracy_by_language", "score_histogram", "token_states", "cosines", "sentence_vectors")
#: What commands add to a model: true of its weights alone. ``card.json`` is the user's.
OF_THE_WEIGHTS = (_CARD, "results.json", "mining.json", *(f"pictures/{name}.png" for name in _PICTURES))
_COPIED = ("card.json", "LICENSE", "int8_ranges.json", "training/log.jsonl", *RECORDS, "pictures/*")


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
    kind: Any = CrossEncoder if isinstance(model, CrossEncoder) else SentenceTransformer
    is_same = card is not None and _identity(model) == _identity(
        load_sentence_transformer(kind, str(folder), device="cpu")
    )
    model.save_pretrained(str(path))
    if card is None:
        return
    if not is_same:
        logger.warning("the model is another than that of %s: its card, results and pictures are not copied.", folder)
        return
    for file in (file for pattern in _COPIED for file in sorted(folder.glob(pattern))):
        name = file.relative_to(folder).as_posix()
        copy = Path(path) / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(shared_json(file) if name in RECORDS else file.read_bytes())
    (Path(path) / _CARD).write_text(card, encoding="utf-8")


def _identity(model: Any) -> list[Any]:
    """All that embeddings or scores depend on."""
    return [model_fingerprint(model), model.prompts, getattr(model, "similarity_fn_name", None)]


def card_metadata(name: str | Path, repo_type: str = "model") -> dict[str, Any]:
    """Return the YAML of the card of a folder, or of a Hub repository that was fetched before; else nothing."""
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
