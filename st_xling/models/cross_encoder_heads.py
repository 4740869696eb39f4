"""The head of a cross-encoder, found and made anew."""

from __future__ import annotations

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense
from torch import nn

from st_xling.models.backbone import token_encoder

INITIALIZER_RANGE = 0.02
"""BERT's own, for configurations that name none."""


def replace_head(model: CrossEncoder, seed: int = 0) -> CrossEncoder:
    """A new head in place of the model's, in place; the encoder (BERT's pooler included) stays as it is.

    Raises:
        ValueError: The model has no head that is known here.
    """
    found = head_modules(model)
    deviation = getattr(token_encoder(model).config, "initializer_range", INITIALIZER_RANGE)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in (part for module in found for part in module.modules()):
            if isinstance(part, nn.Linear):
                part.weight.copy_(torch.randn(part.weight.shape, generator=generator) * deviation)
                if part.bias is not None:
                    part.bias.zero_()
            elif isinstance(part, nn.LayerNorm):
                part.reset_parameters()
    return model


def head_modules(model: CrossEncoder) -> list[nn.Module]:
    """What :func:`replace_head` renews: the last linear layer, or all that the backbone has after its base model."""
    last = model[-1]
    if isinstance(last, Dense) and last.module_output_name == "scores":
        return [last]
    if len(model) == 1:
        transformer = token_encoder(model)
        base = getattr(transformer, "base_model", transformer)
        if base is not transformer:
            return [part for part in transformer.children() if part is not base]
    raise ValueError(
        f"the model must end in a linear layer of the host's or be a sequence-classification model: got "
        f"{', '.join(type(part).__name__ for part in model)}; build it with cross_encoder(…)."
    )
