"""How large a model is: tokens, parameters, and bytes of what is saved of it."""

from __future__ import annotations

from dataclasses import dataclass

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer


@dataclass(frozen=True)
class ModelSize:
    """Sizes of a model.

    Attributes:
        tokens: Of its vocabulary.
        parameters: Each counted once.
        bytes: Of the weights and of the tokenizer, as they are saved; settings of a few kilobytes come on top.
    """

    tokens: int
    parameters: int
    bytes: int


def model_size(model: SentenceTransformer) -> ModelSize:
    """Sizes of an encoder on a transformer; of separate encoders, both."""
    encoders = [module for module in model.modules() if isinstance(module, Transformer)]
    tokenizers = [encoder.tokenizer for encoder in encoders if encoder.tokenizer is not None]
    weights = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
    written = [tokenizer.backend_tokenizer.to_str(pretty=True).encode("utf-8") for tokenizer in tokenizers]
    return ModelSize(
        tokens=len(tokenizers[0]),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        bytes=sum(tensor.numel() * tensor.element_size() for tensor in weights.values()) + sum(map(len, written)),
    )
