"""A small cross-encoder over given text, with random weights large enough that scores differ."""

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder

from st_xling.models import cross_encoders


def tiny_cross_encoder(texts: Sequence[str], *, architecture: Any = "bert", max_length: int = 40) -> CrossEncoder:
    """Two layers of 16 under the backbone's own head."""
    model = cross_encoders.tiny_cross_encoder(
        texts,
        head="pooler",
        vocabulary=300,
        hidden_size=16,
        heads=2,
        dropout=0.0,
        max_length=max_length,
        architecture=architecture,
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(std=0.3, generator=generator)
    return model.to("cpu").eval()
