"""Bidirectional word alignment: what a word attends to in the other sentence should attend back."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from st_xling.losses.base import Batch, SumAndCount, TokenLevelLoss, at_least_float32, bibtex
from st_xling.losses.token_inputs import Positions, TokenInputs, join_pairs, usable_positions
from st_xling.models.backbones import Backbone, backbone
from st_xling.utils.private import attention_implementation, with_attention


def word_alignment(
    target_to_source: Tensor, source_to_target: Tensor, source_mask: Tensor, target_mask: Tensor
) -> Tensor:
    r"""One minus the agreement of two attention matrices, head by head.

    .. math:: L = 1 - \frac{1}{H} \sum_h \frac{\sum_{ij} A^h_{y \to x}[i, j]\, A^h_{x \to y}[j, i]}{\min(|x|, |y|)}

    Args:
        target_to_source: Attention of target words to source words. *Shape:* ``(batch, heads, |y|, |x|)``
        source_to_target: Attention of source words to target words. *Shape:* ``(batch, heads, |x|, |y|)``
        source_mask: True for the words that count. *Shape:* ``(batch, |x|)``
        target_mask: The same for the target. *Shape:* ``(batch, |y|)``

    Returns:
        Mean over the batch's pairs of which both sentences have words, in [0, 1], unitless (no nats). *Shape:* ``()``

    Raises:
        ValueError: Shapes that do not fit each other.

    Source:
        Hu et al. 2021 (AMBER), section 2, equation 5. The printed trace has one transpose too many for its shapes.

    Example:
        >>> sure = torch.eye(2).expand(1, 3, 2, 2)
        >>> word_alignment(sure, sure, torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool))
        tensor(0.)
    """
    tensors = (target_to_source, source_to_target, source_mask, target_mask)
    shapes = [tuple(tensor.shape) for tensor in tensors]
    batch, heads, y, x = shapes[0]
    if shapes[1:] != [(batch, heads, x, y), (batch, x), (batch, y)]:
        raise ValueError(f"expected attention (batch, heads, |y|, |x|) and its like: got the shapes {shapes}.")
    both = target_mask[:, None, :, None] & source_mask[:, None, None, :]
    agreement = (target_to_source * source_to_target.transpose(2, 3)).masked_fill(~both, 0.0).sum(dim=(2, 3))
    shorter = torch.minimum(source_mask.sum(dim=1), target_mask.sum(dim=1))
    per_pair = 1 - agreement.mean(dim=1) / shorter.clamp(min=1)
    counted = (shorter > 0).to(per_pair.dtype)
    return (per_pair * counted).sum() / counted.sum().clamp(min=1)


class WordAlignmentLoss(TokenLevelLoss):
    """Asks the top layer's attention between the two sentences to agree in both directions (WA).

    The pair is read as one sequence under two masks, both in one call. Target-to-source: a target token sees the source
    and the targets before it, a source token only the source; source-to-target is the mirror image. Only the top
    layer's attention weights are computed: only for it, an encoder of fast attention (sdpa) is switched to eager,
    which gives the same numbers. Special tokens are seen but neither summed nor counted.

    Args:
        model: The ``SentenceTransformer`` to train, with a bidirectional encoder.
        positions: Of the target's tokens: ``"restarting"`` from the beginning (XLM) or ``"running"`` on (BERT, AMBER).
        segments: Give the target segment 1 where the encoder has two segments (BERT, AMBER).

    References:
        - Hu et al. 2021, Explicit Alignment Objectives for Multilingual Bidirectional Encoders, section 2, equation 5

    Requirements:
        1. Parallel pairs.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

    Relations:
        - With :class:`TranslationLanguageModelingLoss` and :class:`TranslationRankingLoss` it makes AMBER. It costs a
          separate encoder pass over twice the rows, and leaves the sentence embedding untrained.

    Example:
        >>> from st_xling.losses import TranslationRankingLoss, WordAlignmentLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + WordAlignmentLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    max_columns = 2
    citation = bibtex("hu2021explicit")
    reads_encoding = False

    def __init__(self, model: nn.Module, *, positions: Positions = "restarting", segments: bool = False) -> None:
        super().__init__(model)
        parts = backbone(model)
        config: Any = parts.model.config
        attention = attention_implementation(config)
        if attention not in (None, "eager", "sdpa"):
            raise ValueError(
                f"word alignment reads attention under masks of its own, which {attention!r} does not take: load the "
                "model with model_kwargs={'attn_implementation': 'sdpa'}."
            )
        if parts.has_shared_distances:
            raise ValueError(
                f"word alignment sets the masks of each layer, and {type(parts.model).__name__} takes those of its "
                "first one in all: drop the word alignment term."
            )
        self.positions = usable_positions(parts, positions)
        self.segments = segments

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[SumAndCount]:
        parts = backbone(self.model)
        pairs = join_pairs(parts, batch[0], batch[1], positions=self.positions, segments=self.segments)
        visible = torch.cat([_visible(pairs, target_first=False), _visible(pairs, target_first=True)])
        to_source, to_target = top_attention(parts, pairs, visible).chunk(2)
        cut = pairs.source_length
        source = pairs.words[:, :cut]
        target = pairs.words[:, cut:]
        count = (source.any(dim=1) & target.any(dim=1)).sum()
        mean = word_alignment(to_source[:, :, cut:, :cut], to_target[:, :, :cut, cut:], source, target)
        return [(mean * count, count)]


def top_attention(parts: Backbone, pairs: TokenInputs, visible: Tensor) -> Tensor:
    """Attention weights of the top layer for joined pairs read under several masks at once.

    Args:
        parts: The encoder.
        pairs: The joined pairs.
        visible: Who may look at whom, one block of rows a mask. *Shape:* ``(masks x batch, tokens, tokens)``, bool

    Returns:
        Without dropout. *Shape:* ``(masks x batch, heads, tokens, tokens)``
    """
    states = parts.embed(pairs.input_ids, position_ids=pairs.position_ids, token_type_ids=pairs.segment_ids)
    masks = len(visible) // len(states)
    weights: list[Tensor] = []
    *below, top = parts.layers
    layers = [_masked(layer, visible, layer.forward) for layer in below]
    layers.append(_masked(top, visible, partial(_keep_weights, parts, weights, top)))
    # Each mask reads all pairs once more.
    attention_mask = pairs.attention_mask.repeat(masks, 1)
    position_ids = pairs.position_ids.repeat(masks, 1)
    parts.run(layers, states.repeat(masks, 1, 1), attention_mask, position_ids)
    if not weights:
        raise ValueError(f"{type(parts.model).__name__} gives no attention weights: drop the word alignment term.")
    return at_least_float32(weights[0])


def _masked(layer: nn.Module, visible: Tensor, call: Callable[..., Any]) -> nn.Module:
    """``layer``, all weights shared, whose tokens see what both ``visible`` and the encoder's mask allow them.

    A copy with another ``forward``, no hook on the layer: gradient checkpointing calls it again in the backward pass.

    Args:
        layer: Of the encoder.
        visible: *Shape:* ``(rows, tokens, tokens)``, bool
        call: Its ``forward``, or what calls that.
    """
    masked = copy.copy(layer)

    def forward(states: Tensor, *args: Any, **kwargs: Any) -> Any:
        # Families give it by name, or as the first one behind the states.
        named = "attention_mask" in kwargs
        attention_mask = kwargs.pop("attention_mask") if named else next(iter(args), None)
        allowed = visible[:, None]
        if attention_mask is not None:  # padding, and a window in which a layer may look
            if attention_mask.is_floating_point():  # 0 where a token is seen, else a very low number
                allowed = allowed & (attention_mask >= 0)
            else:
                allowed = allowed & attention_mask.bool()
        # A token that may see no other (a pad, the first target word) sees all: its weights are never read.
        allowed = allowed | ~allowed.any(dim=3, keepdim=True)
        if attention_mask is None or attention_mask.dtype == torch.bool or attention_mask.is_floating_point():
            lowest = torch.finfo(states.dtype).min
            allowed = torch.zeros_like(allowed, dtype=states.dtype).masked_fill(~allowed, lowest)
        if named:
            return call(states, *args, attention_mask=allowed, **kwargs)
        return call(states, allowed, *args[1:], **kwargs)

    masked.forward = forward
    return masked


def _keep_weights(parts: Backbone, weights: list[Tensor], layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Call ``layer`` and add its attention weights to ``weights``: as eager attention, the only one to show them."""

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, tuple) and len(output) > 1 and isinstance(output[1], Tensor) and output[1].ndim == 4:
            weights.append(output[1])

    config: Any = parts.model.config
    modules = list(layer.modules())
    training_modes = [module.training for module in modules]
    if "output_attentions" in inspect.signature(layer.forward).parameters:
        kwargs["output_attentions"] = True
    hooks = [module.register_forward_hook(keep) for module in modules]
    layer.eval()  # weights without dropout; its states are not read
    try:
        with with_attention(config, "eager"):
            return layer.forward(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in zip(modules, training_modes):
            module.training = training


def _visible(pairs: TokenInputs, *, target_first: bool) -> Tensor:
    """The mask of one direction: one sentence sees itself, the other sees that one and its earlier tokens.

    *Shape:* ``(batch, tokens, tokens)``, rows look at columns
    """
    columns = torch.arange(pairs.attention_mask.shape[1], device=pairs.attention_mask.device)
    on_target = columns >= pairs.source_length
    context = on_target if target_first else ~on_target  # the columns that every token sees
    outside = ~context[:, None] & ~context[None, :]
    earlier = outside & (columns[None, :] < columns[:, None])
    return (context[None, :] | earlier)[None] & pairs.attention_mask[:, None, :]
