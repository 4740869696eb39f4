"""A hash of all that a model's embeddings depend on, by which stores and caches of them know it again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import torch

#: Texts whose embeddings tell apart models of backends that do not show their weights.
PROBES = ["The cat sleeps.", "Die Katze schläft.", "猫在睡觉。", "القطة نائمة."]


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
        scores = model.predict([(text, text) for text in PROBES]) if hasattr(model, "predict") else model.encode(PROBES)
        digest.update(f"{backend} {np.round(scores, 3).tolist()}".encode())
    # Where token states are pooled, the transformer's own pooler is computed and left; a checkpoint without one gets
    # another, of random weights, each time it is loaded.
    pools = any(type(module).__name__ == "Pooling" for module in model.modules())
    for key, tensor in sorted(model.state_dict().items()):
        if pools and ".pooler." in key:
            continue
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def _settings(module: Any) -> Any:
    if hasattr(module, "auto_model"):  # its own settings name paths and versions; weights and vocabulary say enough
        config = module.auto_model.config.to_dict()
        return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}
    return _text_keys(module.get_config_dict()) if hasattr(module, "get_config_dict") else str(module)


def _text_keys(value: Any) -> Any:
    """JSON has no tuples as keys, which a ``Router`` has."""
    if not isinstance(value, dict):
        return value
    return {str(key) if isinstance(key, tuple) else key: _text_keys(part) for key, part in value.items()}


def _vocabulary(tokenizer: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items()) if hasattr(tokenizer, "get_vocab") else str(type(tokenizer))
    content = json.loads(backend.to_str())
    # Every call sets these two anew.
    return {key: value for key, value in content.items() if key not in ("truncation", "padding")}
