"""The layers of an encoder: how many there are, and the encoder cut to the first of them."""

from __future__ import annotations

import copy
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from st_xling.models.backbone import layer_lists, token_encoder
from st_xling.models.load import load_sentence_transformer
from st_xling.utils.choices import Pooling

TOLERANCE = 1e-4
"""Difference of states, relative to the largest of them, that counts as none: the same kernels made both."""

_FINAL_NORMS = ("final_norm", "norm", "LayerNorm", "final_layer_norm")  # next to the list of layers


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
    """Return ``layer``, or raise ``ValueError`` with the number of layers."""
    count = layer_count(model)
    if not 1 <= layer <= count:
        raise ValueError(
            f"layer must be from 1 to {count}: got {layer}; {type(token_encoder(model)).__name__} has {count} layers."
        )
    return layer


def cut_to_layer(model: SentenceTransformer, layer: int, *, pooling: Pooling = "mean") -> SentenceTransformer:
    """An encoder that ends at a layer, of ST's Transformer and Pooling; its weights are those of ``model``.

    Where the encoder normalizes what its last layer gives (ModernBERT, EuroBERT, XLM-R-XL), so does the cut one.

    Args:
        model: A ``SentenceTransformer`` whose first module is a transformer; it stays as it is, what follows that
            module is not taken over, nor are prompts.
        layer: The last layer kept, counted from 1.
        pooling: How its token states become a sentence vector.

    Raises:
        ValueError: A layer that the encoder lacks, or an encoder whose states at a layer are not what it gives when it
            ends there.
    """
    count = layer_count(model)
    check_layer(model, layer)
    weights: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    transformer: Any = copy.deepcopy(model[0], weights)
    if layer < count:
        encoder: Any = token_encoder(nn.Sequential(transformer))
        for parent, name, layers in list(layer_lists(encoder, count)):
            setattr(parent, name, layers[:layer])
        if getattr(encoder, "n_layers", None) == count:  # XLM counts by itself
            encoder.n_layers = layer
        if kinds := getattr(encoder.config, "layer_types", None):  # ModernBERT: near or far attention, by layer
            encoder.config.layer_types = kinds[:layer]
        encoder.config.num_hidden_layers = layer
    head = PoolingModule(transformer.get_embedding_dimension(), pooling_mode=pooling)
    cut = load_sentence_transformer(SentenceTransformer, modules=[transformer, head], device=str(model.device))
    cut.model_card_data.base_model = model.model_card_data.base_model
    cut.eval()
    if layer < count:
        _check_cut(model, cut, layer)
    return cut


def layer_states(model: SentenceTransformer, features: dict[str, Any]) -> tuple[Tensor, ...]:
    """Token states after the embeddings and after each layer, of one pass; ``features`` are then as after the pass.

    A normalization behind the encoder's last layer is applied to each layer's, as in an encoder that is cut there.

    Args:
        model: Its first module is a transformer.
        features: A batch, as ``model.preprocess`` gives it, on the model's device.

    Returns:
        ``layers + 1`` tensors. *Shape of each:* ``(batch, tokens, hidden)``
    """
    encoder: Any = token_encoder(model)
    before = encoder.config.output_hidden_states
    encoder.config.output_hidden_states = True
    try:
        first, *states, last = model[0](features)["all_layer_embeddings"]
    finally:
        encoder.config.output_hidden_states = before
    parents = [parent for parent, _, _ in layer_lists(encoder, layer_count(model))]
    norm = next((getattr(parents[0], name) for name in _FINAL_NORMS if hasattr(parents[0], name)), None)
    if norm is not None and not hasattr(parents[0], "rel_embeddings"):  # DeBERTa normalizes its distances
        states = [norm(state) for state in states]
    return first, *states, last


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
            f"other ones; use another encoder, or its last layer, {layer_count(model)}."
        )
