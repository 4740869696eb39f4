"""The layers of an encoder: how many there are, and the encoder cut to the first of them."""

from __future__ import annotations

import copy
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from st_xling.models.backbone import token_encoder
from st_xling.models.load import Pooling, st_model

TOLERANCE = 1e-4
"""Difference of states, relative to the largest of them, that counts as none: the same kernels made both."""


def layer_count(model: nn.Module) -> int:
    """Transformer layers of the encoder inside a ``SentenceTransformer``.

    Raises:
        ValueError: It has none, or does not say how many.
    """
    encoder = token_encoder(model)
    count = getattr(encoder.config, "num_hidden_layers", None)
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"an encoder of transformer layers is needed: {type(encoder).__name__} names none.")
    return count


def check_layer(model: nn.Module, layer: int) -> int:
    """``layer`` itself, or ``ValueError`` that says how many layers there are."""
    count = layer_count(model)
    if not 1 <= layer <= count:
        raise ValueError(
            f"layer must be from 1 to {count}: got {layer}; {type(token_encoder(model)).__name__} has {count} layers."
        )
    return layer


def cut_to_layer(model: SentenceTransformer, layer: int, *, pooling: Pooling = "mean") -> SentenceTransformer:
    """An encoder that ends at a layer, of ST's Transformer and Pooling; its weights are those of ``model``.

    Args:
        model: A ``SentenceTransformer`` whose first module is a transformer; it stays as it is, what follows that
            module is not taken over, nor are prompts.
        layer: The last layer kept, counted from 1.
        pooling: How its token states become a sentence vector.

    Raises:
        ValueError: A layer that the encoder lacks, or an encoder whose states at a layer are not what it gives when it
            ends there (a final normalisation, for instance).
    """
    count = layer_count(model)
    check_layer(model, layer)
    weights: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    transformer: Any = copy.deepcopy(model[0], weights)
    if layer < count:
        encoder = token_encoder(nn.Sequential(transformer))
        for part in encoder.modules():
            for name, child in list(part.named_children()):
                if isinstance(child, nn.ModuleList) and len(child) == count:
                    setattr(part, name, child[:layer])
            if getattr(part, "n_layers", None) == count:  # XLM counts by itself
                part.n_layers = layer  # type: ignore[assignment]
        encoder.config.num_hidden_layers = layer  # type: ignore[union-attr]
    head = PoolingModule(transformer.get_embedding_dimension(), pooling_mode=pooling)
    cut = st_model(SentenceTransformer, modules=[transformer, head], device=str(model.device))
    cut.model_card_data.base_model = model.model_card_data.base_model
    cut.eval()
    if layer < count:
        _check_cut(model, cut, layer)
    return cut


def layer_states(model: SentenceTransformer, features: dict[str, Any]) -> tuple[Tensor, ...]:
    """Token states after the embeddings and after each layer, of one pass; ``features`` are then as after the pass.

    Args:
        model: Its first module is a transformer.
        features: A batch, as ``model.preprocess`` gives it, on the model's device.

    Returns:
        ``layers + 1`` tensors. *Shape of each:* ``(batch, tokens, hidden)``
    """
    config: Any = token_encoder(model).config
    before = config.output_hidden_states
    config.output_hidden_states = True
    try:
        return model[0](features)["all_layer_embeddings"]
    finally:
        config.output_hidden_states = before


@torch.inference_mode()
def _check_cut(model: SentenceTransformer, cut: SentenceTransformer, layer: int) -> None:
    training = model.training
    model.eval()
    try:
        features: dict[str, Any] = batch_to_device(model.preprocess(["a b c"]), model.device)
        expected = layer_states(model, dict(features))[layer].float()
        states = cut[0](dict(features))["token_embeddings"].float()
    finally:
        model.train(training)
    if not torch.allclose(states, expected, rtol=0, atol=TOLERANCE * float(expected.abs().max())):
        raise ValueError(
            f"{type(token_encoder(model)).__name__} cannot be cut to layer {layer}: when it ends there its states are "
            "other ones, as where a final normalisation follows the last layer; use a BERT- or XLM-R-type encoder, or "
            f"its last layer, {layer_count(model)}."
        )
