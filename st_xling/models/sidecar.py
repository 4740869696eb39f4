"""Sidecar files: card, results, thresholds and pictures that are copied with a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.repocard import metadata_load

_CARD = "README.md"
#: Files of ours that may name places on this machine; in what is published they do not.
RECORDS = ("results.json", "mining.json", "training/run.json")
_PICTURES = ("accuracy_by_language", "score_histogram", "token_states", "cosines", "sentence_vectors")
#: What commands add to a model: true of its weights alone. ``card.json`` is the user's.
OF_THE_WEIGHTS = (_CARD, "results.json", "mining.json", *(f"pictures/{name}.png" for name in _PICTURES))


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
