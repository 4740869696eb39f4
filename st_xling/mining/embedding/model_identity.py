"""Which encoder is it? Its name and a hash of all that its embeddings depend on."""

from __future__ import annotations

from typing import Any

from st_xling.mining.stores.manifest import ModelIdentity
from st_xling.models.fingerprint import model_fingerprint


def model_identity(model: Any, name: str | None = None) -> ModelIdentity:
    """Name, revision and fingerprint of a ``SentenceTransformer`` or a ``CrossEncoder``.

    Args:
        model: The encoder.
        name: As the user asked for it; else what the encoder knows of itself.
    """
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    known = name or model.model_card_data.model_id or getattr(config, "_name_or_path", None) or ""
    return ModelIdentity(str(known), str(getattr(config, "_commit_hash", None) or ""), model_fingerprint(model))
