"""Merge two encoders, such as one before and after a training: weights between theirs, and often the best of both.

:func:`merge_encoders` mixes by ``SentenceTransformer.merge`` (mergekit), after checking what that leaves unsaid: it
takes prompts, length, dimensions and similarity from the first model.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from st_xling.models.encoding import own_prompt
from st_xling.models.load import card_data, set_loaded
from st_xling.models.lora import has_adapters, merge_lora
from st_xling.utils.lazy_model import Loaded
from st_xling.utils.options import Dtype, require


def merge_encoders(
    first: SentenceTransformer,
    second: SentenceTransformer,
    weight: float,
    *,
    dtype: Dtype | None = None,
) -> SentenceTransformer:
    r"""Mix the weights of two encoders of one architecture, one of which was trained from the other.

    .. math:: \theta = (1 - w)\,\theta_1 + w\,\theta_2

    Both are mixed in float32, with adapters (LoRA) merged in float32 before. Neither is changed.

    Args:
        first: Encoder, such as the start of a training.
        second: Encoder, such as the trained one.
        weight: Share of the second, from 0 to 1.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"`` of the merged weights; ``None``: float32.

    Returns:
        A new encoder, with the prompts of the first.

    Raises:
        ValueError: A weight outside of [0, 1]; encoders that read or compare texts differently, see
            :func:`check_mergeable`; mergekit is not installed.

    Source:
        Wortsman et al. 2022, Robust fine-tuning of zero-shot models (WiSE-FT), equation 1.

    Example:
        >>> from st_xling.models import tiny_encoder
        >>> first, second = (tiny_encoder(["a b"], vocabulary=50, hidden_size=16, seed=seed) for seed in (0, 1))
        >>> merged = merge_encoders(first, second, 0.5)
        >>> name, before = next(iter(first.named_parameters()))
        >>> after = second.get_parameter(name)
        >>> torch.testing.assert_close(merged.get_parameter(name), (before + after) / 2)
    """
    check_weight(weight)
    require("mergekit", "merging models", extra="merge")
    plain = [_plain_float32(model) for model in (first, second)]
    check_mergeable(*plain)
    out_dtype = None if dtype is None else getattr(torch, dtype)
    merged = SentenceTransformer.merge(
        plain,
        parameters={"weight": [1.0 - weight, weight]},
        dtype=torch.float32,
        out_dtype=out_dtype,
        device=plain[0].device,
    )
    merged.model_card_data = card_data(SentenceTransformer)
    merged.model_card_data.register_model(merged)
    set_loaded(merged, Loaded())
    return merged


def check_weight(weight: float) -> None:
    """Raise ``ValueError`` for a share that is not from 0 to 1."""
    if not (math.isfinite(weight) and 0 <= weight <= 1):
        raise ValueError(f"a weight is the share of the second model, from 0 to 1: got {weight}.")


def check_mergeable(first: SentenceTransformer, second: SentenceTransformer) -> None:
    """Raise ``ValueError`` that names everything in which two encoders differ besides their weights.

    Args:
        first: An encoder without adapters.
        second: Another.
    """
    faults: list[str] = []
    for name, (value_of_first, value_of_second) in _properties(first, second).items():
        if value_of_first != value_of_second:
            faults.append(f"{name} ({value_of_first} and {value_of_second})")

    shapes_of_first = _weight_shapes(first)
    shapes_of_second = _weight_shapes(second)
    if not faults and shapes_of_first != shapes_of_second:
        unlike = [name for name, shape in shapes_of_first.items() if shapes_of_second.get(name) != shape]
        unlike += [name for name in shapes_of_second if name not in shapes_of_first]
        faults.append(f"weights ({', '.join(unlike[:3])})")
    if faults:
        raise ValueError(
            f"models that are merged differ in their weights alone: got others in {'; '.join(faults)}. Merge a model "
            "with one that was trained from it; --prompt and --max-length set one prompt and length for both."
        )


def _properties(first: SentenceTransformer, second: SentenceTransformer) -> dict[str, tuple[Any, Any]]:
    """Return name → value of both for everything that changes what the same weights give."""
    models = (first, second)
    properties: dict[str, tuple[Any, Any]] = {}

    def add(name: str, values: list[Any]) -> None:
        properties[name] = (values[0], values[1])

    add("modules", [_module_names(model) for model in models])
    add("the prompt of a text", [repr(own_prompt(model)) for model in models])
    add("the prompt of a query", [repr(own_prompt(model, "query")) for model in models])
    add("the prompt of a passage", [repr(own_prompt(model, "document")) for model in models])
    add("max_seq_length", [model.max_seq_length for model in models])
    add("truncate_dim", [model.truncate_dim for model in models])
    add("similarity", [model.similarity_fn_name for model in models])
    add("the size of the vocabulary", [_vocabulary_size(model) for model in models])
    if properties["the size of the vocabulary"][0] == properties["the size of the vocabulary"][1]:
        tokenizers = [_vocabulary(model) for model in models]
        if tokenizers[0] != tokenizers[1]:
            properties["the tokens of the vocabulary"] = ("those of the first", "others")
    return properties


def _module_names(model: SentenceTransformer) -> str:
    return " + ".join(type(module).__name__ for module in model)


def _weight_shapes(model: SentenceTransformer) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


def _vocabulary(model: SentenceTransformer) -> dict[str, int]:
    tokenizer: Any = model.tokenizer
    return tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}


def _vocabulary_size(model: SentenceTransformer) -> int:
    return len(_vocabulary(model))


def _plain_float32(model: SentenceTransformer) -> SentenceTransformer:
    """Return an encoder in float32 without adapters: itself, or a copy."""
    is_float32 = all(weight.dtype == torch.float32 for weight in model.parameters() if weight.is_floating_point())
    if is_float32 and not has_adapters(model):
        return model
    changed = copy.deepcopy(model)
    if has_adapters(changed):
        merge_lora(changed)
    return changed.float()
