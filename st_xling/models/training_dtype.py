"""Weights that are trained have 32 bits, whatever type a checkpoint was stored in.

transformers loads a checkpoint in the type that it was stored in, and many are stored in bfloat16, which keeps eight
bits of a number: next to a weight of 0.1 an update below 0.0002 is rounded away, and AdamW's averages are rounded
likewise. Training would go on without a word, and most weights would never change.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import torch
from torch import nn

from st_xling.models.backbones import token_encoder

logger = logging.getLogger(__name__)

_HALF_PRECISION = (torch.bfloat16, torch.float16)


def train_in_float32(model: nn.Module, *losses: nn.Module, keep_adapted: bool = False) -> None:
    """Turn weights of 16 bits that will be trained into float32, in place, and say so in a line.

    Args:
        model: Model to train.
        *losses: Its losses, whose heads have the type of the model's weights.
        keep_adapted: Leave the transformer in its type, since adapters are trained in its place and mixed precision
            computes with both. This holds for models without further weights (a decoder under its last token): without
            mixed precision, as in evaluation, layers behind the transformer would get states of another type.
    """
    kept: set[int] = set()
    if keep_adapted:
        inside = {id(weight) for weight in token_encoder(model).parameters()}
        if inside == {id(weight) for weight in model.parameters()}:
            kept = inside
    stored = to_float32(model, *losses, kept=kept)
    if stored is not None:
        logger.warning(
            "the weights are stored in %s, too coarse for small updates: they are trained, and saved, in float32",
            str(stored).removeprefix("torch."),
        )


def to_float32(*modules: nn.Module, kept: Collection[int] = ()) -> torch.dtype | None:
    """Turn weights and buffers of 16 bits into float32, in place.

    Args:
        *modules: Modules with them.
        kept: Ids of tensors that stay as they are.

    Returns:
        The type that they had; ``None`` if there were none.
    """
    stored = None
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dtype in _HALF_PRECISION and id(tensor) not in kept:
                stored = tensor.dtype
                tensor.data = tensor.data.float()
        for child in module.modules():
            # The scale of Gemma's embeddings was rounded with them, and is computed anew when the model is loaded.
            if hasattr(child, "scalar_embed_scale") and child.embed_scale.dtype == torch.float32:
                child.embed_scale.fill_(child.scalar_embed_scale)  # type: ignore[operator, arg-type]
    return stored
