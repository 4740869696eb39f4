"""The parts of a BERT-shaped encoder that our heads copy or borrow; an error names what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_LAYER_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_EMBEDDING_PARTS = ("word_embeddings", "position_embeddings", "LayerNorm")


@dataclass(frozen=True)
class Backbone:
    """A view on the transformer inside a ``SentenceTransformer``; it owns nothing.

    Attributes:
        model: The Hugging Face encoder (``BertModel``, ``XLMRobertaModel``, …).
        tokenizer: Its tokenizer.
        embeddings: Its embedding layer: words + positions + LayerNorm.
        layers: Its transformer layers, first to last.
        position_offset: Position id of the first token: 0 for BERT, ``pad_token_id + 1`` for (XLM-)RoBERTa.
    """

    model: nn.Module
    tokenizer: Any
    embeddings: nn.Module
    layers: nn.ModuleList
    position_offset: int

    @property
    def hidden_size(self) -> int:
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The input embeddings. *Shape of the weight:* ``(vocabulary, hidden)``"""
        return self.embeddings.word_embeddings  # type: ignore[return-value]

    def position_ids(self, attention_mask: Tensor) -> Tensor:
        """Position of each real token as the encoder counts them, for right-padded rows.

        Args:
            attention_mask: 1 for tokens, 0 for padding. *Shape:* ``(batch, tokens)``

        Returns:
            *Shape:* ``(batch, tokens)``; padding gets the position of the last token before it, never one out of range.
        """
        counted = attention_mask.long().cumsum(dim=1) - 1
        return counted.clamp(min=0) + self.position_offset


def unwrap(model: nn.Module) -> nn.Module:
    """The module inside a distributed or compiled wrapper, or the module itself."""
    while True:
        inner = getattr(model, "_orig_mod", None) or getattr(model, "module", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def token_encoder(model: nn.Module) -> nn.Module:
    """The Hugging Face encoder inside a ``SentenceTransformer``.

    Raises:
        ValueError: The first module gives no token embeddings (bag of words, static embeddings, …).
    """
    first = next(iter(unwrap(model).children()), None)
    encoder = getattr(first, "auto_model", None) or getattr(first, "model", None)
    if not isinstance(encoder, nn.Module) or not hasattr(encoder, "config"):
        raise ValueError(
            "this objective needs the token embeddings of a transformer encoder: the model's first module is "
            f"{type(first).__name__}, which has none; start from a transformer, or drop the token-level terms."
        )
    return encoder


def backbone(model: nn.Module) -> Backbone:
    """Find the pieces of a BERT- or XLM-R-type encoder inside ``model``.

    Args:
        model: A ``SentenceTransformer`` whose first module is a transformer.

    Raises:
        ValueError: No token embeddings, or an encoder of another shape; the message names what is missing.
    """
    encoder = token_encoder(model)
    name = type(encoder).__name__
    embeddings, layers = getattr(encoder, "embeddings", None), getattr(getattr(encoder, "encoder", None), "layer", None)
    missing = [] if isinstance(embeddings, nn.Module) else ["embeddings"]
    if isinstance(embeddings, nn.Module):
        missing += [f"embeddings.{part}" for part in _EMBEDDING_PARTS if not hasattr(embeddings, part)]
    if not isinstance(layers, nn.ModuleList) or len(layers) == 0:
        missing.append("encoder.layer")
    else:
        missing += [f"encoder.layer[-1].{part}" for part in _LAYER_PARTS if not _has(layers[-1], part)]
    if missing:
        raise ValueError(
            f"this head copies layers of a BERT- or XLM-R-type encoder: {name} lacks {', '.join(missing)}; "
            "use such an encoder, or train with sentence-level losses only."
        )
    assert isinstance(embeddings, nn.Module) and isinstance(layers, nn.ModuleList)
    if embeddings.word_embeddings.weight.shape[1] != encoder.config.hidden_size:  # type: ignore[union-attr, index]
        raise ValueError(f"{name} factorises its embeddings (ELECTRA, ALBERT), which this head does not support.")
    if encoder.config.is_decoder:  # type: ignore[union-attr]
        raise ValueError(f"{name} is configured as a decoder; a bidirectional encoder is needed.")
    padding = embeddings.position_embeddings.padding_idx  # type: ignore[union-attr]
    offset = 0 if padding is None else int(padding) + 1  # type: ignore[arg-type]
    tokenizer = getattr(unwrap(model), "tokenizer", None)
    return Backbone(encoder, tokenizer, embeddings, layers, offset)


def _has(module: nn.Module, path: str) -> bool:
    current: Any = module
    for part in path.split("."):
        current = getattr(current, part, None)
        if current is None:
            return False
    return True


def special_token_id(tokenizer: Any, kind: str, purpose: str) -> int:
    """Id of the tokenizer's ``mask``, ``cls`` or ``sep`` token.

    Raises:
        ValueError: The tokenizer has none; ``purpose`` says who needs it.
    """
    value = getattr(tokenizer, f"{kind}_token_id", None)
    if value is None:
        raise ValueError(
            f"{purpose} needs a {kind} token: {type(tokenizer).__name__} has none; "
            f"add one with tokenizer.add_special_tokens({{'{kind}_token': '[{kind.upper()}]'}}) "
            "and resize the embeddings."
        )
    return int(value)


def cls_mask(input_ids: Tensor, tokenizer: Any) -> Tensor:
    """True where a row's CLS token stands. *Shape:* ``(batch, tokens)`` → the same, bool."""
    cls_id = getattr(tokenizer, "cls_token_id", None)
    return torch.zeros_like(input_ids, dtype=torch.bool) if cls_id is None else input_ids == cls_id
