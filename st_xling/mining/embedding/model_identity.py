"""Which encoder is it? A hash of all that its embeddings depend on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch

from st_xling.mining.stores.manifest import ModelIdentity


def model_identity(model: Any, name: str | None = None) -> ModelIdentity:
    """Name, revision and fingerprint of a ``SentenceTransformer`` or a ``CrossEncoder``.

    The fingerprint covers weights, their types, the modules and their settings, the vocabulary, the length that texts
    are cut to and the default prompt. Paths, versions, devices and threads do not enter it.

    Args:
        model: The encoder.
        name: As the user asked for it; else what the encoder knows of itself.
    """
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    digest = hashlib.sha256()
    settings = {
        "modules": [[type(module).__name__, _settings(module)] for module in model],
        "max_seq_length": model.max_seq_length,
        "truncate_dim": getattr(model, "truncate_dim", None),  # a cross-encoder has none
        "prompt": model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
        "tokenizer": _vocabulary(model.tokenizer),
    }
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode("utf-8"))
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    known = name or model.model_card_data.model_id or getattr(config, "_name_or_path", None) or ""
    return ModelIdentity(str(known), str(getattr(config, "_commit_hash", None) or ""), digest.hexdigest())


def _settings(module: Any) -> Any:
    if hasattr(module, "auto_model"):  # its own settings name paths and versions; weights and vocabulary say enough
        config = module.auto_model.config.to_dict()
        return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}
    return module.get_config_dict() if hasattr(module, "get_config_dict") else str(module)


def _vocabulary(tokenizer: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items()) if hasattr(tokenizer, "get_vocab") else str(type(tokenizer))
    content = json.loads(backend.to_str())
    # Every call sets these two anew.
    return {key: value for key, value in content.items() if key not in ("truncation", "padding")}
