"""The parts of an encoder that token-level objectives copy, borrow or call, whatever its family names them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers.base.modules import Normalize
from torch import Tensor, nn

from st_xling.models.token_rows import check_ids
from st_xling.utils.private import shallow_copy, uncompiled

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BERT_LAYER = {"attention.self.query", "attention.output.LayerNorm", "intermediate.dense", "output.LayerNorm"}


@dataclass(frozen=True)
class Backbone:
    """A view on the transformer inside a ``SentenceTransformer``; it owns nothing.

    Attributes:
        model: The Hugging Face encoder (``BertModel``, ``ModernBertModel``, …).
        tokenizer: Its tokenizer.
        embeddings: Its embedding layer, from ids to the first layer's input; where that is only a table, the table.
        layers: Its transformer layers, first to last.
        bert_shaped: True if layers are BERT's: absolute positions, and LayerNorm behind attention and feed-forward.
        revision: Version on the Hub that the encoder was loaded from; ``None`` for a folder.
    """

    model: nn.Module
    tokenizer: PreTrainedTokenizerBase
    embeddings: nn.Module
    layers: nn.ModuleList
    bert_shaped: bool
    revision: str | None = None

    @property
    def hidden_size(self) -> int:
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The input embeddings. *Shape of the weight:* ``(vocabulary, hidden)``"""
        return self.model.get_input_embeddings()  # type: ignore[operator]

    def mask_id(self, purpose: str) -> int:
        """Id of the mask token.

        Args:
            purpose: Who needs it, for the error.

        Raises:
            ValueError: The tokenizer has no mask token, or the word embeddings have no row for it.
        """
        number = special_token_id(self.tokenizer, "mask", purpose)
        check_ids(self.tokenizer, self.word_embeddings.num_embeddings, [number])
        return number

    @property
    def has_shared_distances(self) -> bool:
        """True if only the first layer has weights for the distances between tokens, for all layers, as in T5."""
        first, *others = [_has_distances(layer) for layer in self.layers]
        return first and not any(others)

    @property
    def position_table(self) -> nn.Embedding | None:
        """Learned absolute positions; ``None`` where positions are relative or rotary."""
        return getattr(self.embeddings, "position_embeddings", None)

    @property
    def position_offset(self) -> int:
        """Position id of the first token: 0 for BERT, ``pad_token_id + 1`` for (XLM-)RoBERTa and MPNet."""
        padding = getattr(self.position_table, "padding_idx", None)
        return 0 if padding is None else int(padding) + 1

    def position_ids(self, attention_mask: Tensor) -> Tensor:
        """Position of each real token as the encoder counts them.

        Args:
            attention_mask: 1 for tokens, 0 for padding. *Shape:* ``(batch, tokens)``

        Returns:
            *Shape:* ``(batch, tokens)``; padding gets the position of the last token before it, never one out of range.
        """
        counted = attention_mask.long().cumsum(dim=1) - 1
        return counted.clamp(min=0) + self.position_offset

    def embed(self, input_ids: Tensor | None = None, **inputs: Tensor | None) -> Tensor:
        """Input of the first layer. *Shape:* ``(batch, tokens)`` → ``(batch, tokens, hidden)``

        Args:
            input_ids: Or ``inputs_embeds``, what the word embeddings gave.
            **inputs: ``position_ids``, ``token_type_ids``; those that the family does not know are dropped.
        """
        if self.embeddings is self.word_embeddings:  # EuroBERT: a table, and rotary positions in the layers
            return inputs["inputs_embeds"] if input_ids is None else self.embeddings(input_ids)  # type: ignore[return-value]
        return self.embeddings(**_accepted_arguments(self.embeddings, input_ids=input_ids, **inputs))

    def encode(self, **inputs: Tensor | None) -> Tensor:
        """States of the last layer of a separate pass; inputs that the family does not know are dropped."""
        return self.model(**_accepted_arguments(self.model, return_dict=True, **inputs)).last_hidden_state

    def run(self, layers: Sequence[nn.Module], states: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        """``states`` through ``layers`` in place of the encoder's, and through all that is around them.

        The family's code makes masks and relative or rotary positions, and normalizes at the end.

        Args:
            layers: The encoder's, copies of its last ones, or others that are called like them.
            states: *Shape:* ``(batch, tokens, hidden)``
            attention_mask: *Shape:* ``(batch, tokens)``
            position_ids: *Shape:* ``(batch, tokens)``
        """
        # A copy of the encoder down to the list of layers, which shares everything else with it.
        model: Any = shallow_copy(self.model)
        _match_layer_types(model, len(layers))
        path_of_layers = next(name for name, child in model.named_modules() if child is self.layers)
        *parent_names, list_name = path_of_layers.split(".")
        parent = model
        for name in parent_names:
            child = shallow_copy(getattr(parent, name))
            _match_layer_types(child, len(layers))
            setattr(parent, name, child)
            parent = child
        setattr(parent, list_name, nn.ModuleList(layers))
        if len(layers) < len(self.layers) and hasattr(parent, "conv"):  # next to DeBERTa's first layer
            parent.conv = None
        if self.embeddings is not self.word_embeddings:
            name = next(name for name, child in model.named_children() if child is self.embeddings)
            setattr(model, name, _Constant(states))
        inputs = _accepted_arguments(
            model,
            inputs_embeds=states,
            attention_mask=attention_mask.long(),
            position_ids=position_ids,
            return_dict=True,
        )
        return model(**inputs).last_hidden_state


def _match_layer_types(module: Any, count: int) -> None:
    """Give a copy of an encoder with ``count`` layers the kinds of the last ones.

    Gemma looks them up by a layer's index: one that looks far would get the mask and positions of one that looks near.
    """
    layer_types = getattr(getattr(module, "config", None), "layer_types", None)
    if layer_types and count < len(layer_types):
        module.config = copy.copy(module.config)
        module.config.layer_types = layer_types[-count:]


class _Constant(nn.Module):
    """Replaces the embedding layer by given embeddings."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.states = states

    def forward(self, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        return self.states if mask is None else self.states * mask[..., None]  # DeBERTa's convolution sees padding


def _has_distances(layer: nn.Module) -> bool:
    return any(hasattr(module, "relative_attention_bias") for module in layer.modules())


def _accepted_arguments(module: nn.Module, **inputs: Any) -> dict[str, Any]:
    """Return those of the inputs that the module's ``forward`` has by name: families differ in them."""
    parameters = inspect.signature(module.forward).parameters
    return {name: value for name, value in inputs.items() if name in parameters}


def normalizes(model: nn.Module) -> bool:
    """Return whether a model has a ``Normalize``, so that its embeddings have length 1."""
    return any(isinstance(module, Normalize) for module in model.modules())


def unwrap(model: nn.Module) -> nn.Module:
    """The module inside a distributed or compiled wrapper, or the module itself."""
    model = uncompiled(model)
    inner = getattr(model, "module", None)
    return unwrap(inner) if isinstance(inner, nn.Module) else model


def token_encoder(model: nn.Module) -> nn.Module:
    """The Hugging Face encoder inside a ``SentenceTransformer``.

    Raises:
        ValueError: The first module gives no token embeddings (bag of words, static embeddings, …).
    """
    first = next(iter(unwrap(model).children()), None)
    encoder = getattr(first, "auto_model", None) or getattr(first, "model", None)
    if not isinstance(encoder, nn.Module) or not hasattr(encoder, "config"):
        raise ValueError(
            f"the token embeddings of a transformer encoder are needed: the first module is {type(first).__name__}, "
            "which has none; start from a transformer, or drop token-level terms."
        )
    return encoder


def is_causal(encoder: nn.Module) -> bool:
    """Return whether a Hugging Face model is a decoder, whose tokens only see those before them.

    Decoders that were made to look both ways say so in their configuration, by transformers' ``is_causal: false``.
    """
    if not getattr(encoder.config, "is_causal", True):
        return False
    return any(getattr(module, "is_causal", False) for module in encoder.modules())


def layer_lists(module: nn.Module, count: int) -> Iterator[tuple[nn.Module, str, nn.ModuleList]]:
    """Lists of ``count`` layers inside ``module``, with their parents and names there; none within another.

    Most encoders have one; XLM's layers are spread over four.
    """
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList) and len(child) == count:
            yield module, name, child
        else:
            yield from layer_lists(child, count)


def backbone(model: nn.Module) -> Backbone:
    """Find the pieces of the encoder inside ``model``.

    Args:
        model: A ``SentenceTransformer`` whose first module is a transformer.

    Raises:
        ValueError: No token embeddings, a decoder, or an encoder of another shape; the message names what is missing.
    """
    encoder: Any = token_encoder(model)
    name = type(encoder).__name__
    count = getattr(encoder.config, "num_hidden_layers", 0)
    lists = list(layer_lists(encoder, count))
    words = encoder.get_input_embeddings()
    embeddings = next((child for child in encoder.children() if _contains(child, words)), None)
    if embeddings is None or len(lists) != 1 or count < 1:
        lacks = "word embeddings" if embeddings is None else f"a list of its {count} layers"
        raise ValueError(
            f"token-level objectives copy an encoder's layers: {name} lacks {lacks}; take another encoder "
            "(BERT, XLM-R, DistilBERT, MPNet, DeBERTa, ModernBERT, EuroBERT), or sentence-level losses only."
        )
    layers = lists[0][2]
    if is_causal(encoder):
        raise ValueError(
            f"{name} is a decoder, and token-level objectives need a bidirectional encoder: take one, or train this "
            "model with sentence-level losses only."
        )
    if words.weight.shape[1] != encoder.config.hidden_size:
        raise ValueError(f"{name} factorises its embeddings (ELECTRA, ALBERT), which these objectives do not support.")
    bert_shaped = dict(layers[-1].named_modules()).keys() >= _BERT_LAYER and hasattr(embeddings, "position_embeddings")
    unwrapped = unwrap(model)
    tokenizer: Any = getattr(unwrapped, "tokenizer", None)
    card_data = getattr(unwrapped, "model_card_data", None)
    return Backbone(
        encoder,
        tokenizer,
        embeddings,
        layers,
        bert_shaped,
        revision=getattr(card_data, "base_model_revision", None),
    )


def _contains(module: nn.Module, wanted: nn.Module) -> bool:
    return any(inner is wanted for inner in module.modules())


def special_token_id(tokenizer: Any, kind: str, purpose: str) -> int:
    """Id of the tokenizer's ``mask``, ``cls`` or ``sep`` token.

    Raises:
        ValueError: The tokenizer has none; ``purpose`` names who needs it.
    """
    value = getattr(tokenizer, f"{kind}_token_id", None)
    if value is None and kind == "mask" and "<extra_id_0>" in tokenizer.get_vocab():
        raise ValueError(
            f"{purpose} needs a mask token: {type(tokenizer).__name__} has none, but T5's spans; set "
            "tokenizer.mask_token = '<extra_id_0>'."
        )
    if value is None:
        raise ValueError(
            f"{purpose} needs a {kind} token: {type(tokenizer).__name__} has none; add one with "
            f"tokenizer.add_special_tokens({{'{kind}_token': '[{kind.upper()}]'}}) and resize the embeddings."
        )
    return int(value)


def cls_mask(input_ids: Tensor, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """True at a row's CLS token, or the one that begins its text. *Shape:* ``(batch, tokens)`` → the same."""
    first_id = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
    return input_ids == (-1 if first_id is None else first_id)


def sep_mask(input_ids: Tensor, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """True at a row's SEP token, or the one that ends its text. *Shape:* ``(batch, tokens)`` → the same."""
    last_id = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    return input_ids == (-1 if last_id is None else last_id)


def right_align(mask: Tensor, *values: Tensor) -> list[Tensor]:
    """``mask`` and ``values`` with each row's padding moved to its front. *Shape:* ``(batch, tokens, …)`` each

    What follows a row is then right behind its last token, as families need it that count distances by columns.
    """
    width = mask.shape[1]
    padding = mask.flip(1).long().argmax(dim=1, keepdim=True)  # behind the last token; 0 for a row without any
    rows = torch.arange(len(mask), device=mask.device)[:, None]
    columns = (torch.arange(width, device=mask.device) - padding) % width
    return [value[rows, columns] for value in (mask, *values)]
