"""The encoder of fewer tokens: rows of its word embeddings, and the ids in its configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from torch import nn


def check_encoder(encoder: Any, tokens: int) -> None:
    """Raise ``ValueError`` unless the word embeddings of ``encoder`` can be cut.

    Args:
        encoder: A transformers model.
        tokens: Ids of its tokenizer.
    """
    name = type(encoder).__name__
    table = encoder.get_input_embeddings()
    if not isinstance(table, nn.Embedding):
        raise ValueError(f"word embeddings that are a table are needed: {name} has {type(table).__name__}.")
    if len(table.weight) < tokens:
        raise ValueError(
            f"every token needs a row of the word embeddings: the tokenizer has {tokens:,} ids and {name} "
            f"{len(table.weight):,} rows; take the tokenizer that belongs to it."
        )
    head = encoder.get_output_embeddings()
    if head is not None:
        raise ValueError(
            f"{name} predicts tokens, too, and would have to be cut at both ends; take a model that only encodes."
        )


def config_ids(config: Any) -> set[int]:
    """Ids of tokens that a configuration names: ``pad_token_id``, ``bos_token_id`` …"""
    return {number for value in _named(config).values() for number in (value if isinstance(value, list) else [value])}


def cut_weights(encoder: Any, ids: Mapping[int, int]) -> None:
    """Replace the word embeddings of ``encoder`` by those rows that stay, in place; all other weights stay.

    Args:
        encoder: A transformers model.
        ids: Old id → new id, from 0 and without gaps.

    Raises:
        ValueError: Positions hang on the id of padding, and that changes.
    """
    table: Any = encoder.get_input_embeddings()
    old = table.padding_idx
    padding = None if old is None else ids.get(old)
    counted_from = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    if counted_from is not None and ids.get(counted_from) != counted_from:
        raise ValueError(
            f"{type(encoder).__name__} counts positions from the id of padding, {counted_from}, which would become "
            f"{ids.get(counted_from)}; keep more tokens."
        )
    rows = sorted(ids, key=ids.__getitem__)
    weight = nn.Parameter(table.weight.detach()[rows].clone(), requires_grad=table.weight.requires_grad)
    # A copy of the module itself: some scale what they give.
    cut = copy.deepcopy(table, {id(table.weight): weight})
    cut.num_embeddings, cut.padding_idx = len(rows), padding
    encoder.set_input_embeddings(cut)
    for config in (encoder.config, getattr(encoder, "generation_config", None)):
        if config is not None:
            for name, value in _named(config).items():
                renamed = [ids.get(number) for number in value] if isinstance(value, list) else ids.get(value)
                setattr(config, name, renamed)
    encoder.config.vocab_size = len(rows)
    if hasattr(encoder, "vocab_size"):
        encoder.vocab_size = len(rows)


def _named(config: Any) -> dict[str, Any]:
    """Entries that are ids of tokens; negative numbers stand for none."""
    found = {}
    for name, value in config.to_dict().items():
        numbers = value if isinstance(value, list) else [value]
        if name.endswith("_token_id") and numbers and all(type(n) is int and n >= 0 for n in numbers):
            found[name] = value
    return found
