"""Models are known again by what their embeddings depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from st_xling.models.fingerprint import model_fingerprint


def test_a_pooler_that_no_embedding_reads_is_left_out(make_model: Callable[..., Any]) -> None:
    """transformers gives a checkpoint without one another each time it is loaded."""
    model = make_model()
    before, pooler = model_fingerprint(model), model[0].auto_model.pooler.dense.weight
    with torch.no_grad():
        pooler.add_(1.0)
    assert model_fingerprint(model) == before
    with torch.no_grad():
        next(model[0].auto_model.encoder.parameters()).add_(1.0)
    assert model_fingerprint(model) != before
