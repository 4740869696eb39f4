"""Encode a padded batch in groups of rows of like length, so that little is computed on padding."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import WordWeights
from torch import Tensor, nn

from st_xling.losses.mini_batches import cut_mini_batch, take_rows

#: Cost of one more group, in tokens, times the square of the encoder's width: the calls of a layer take as long as
#: its products for so many tokens. Measured on a processor, 32 to 128 tokens at a width of 384 are equally good.
GROUP_COST = 64 * 384**2


def length_groups(lengths: np.ndarray, group_tokens: int) -> list[np.ndarray]:
    """Divide rows into groups so that the sum of their padded tokens and of a cost per group is the least.

    Args:
        lengths: Tokens of each row. *Shape:* ``(rows,)``
        group_tokens: Cost of a group, in tokens, besides its rows, each as long as its longest.

    Returns:
        Row numbers of each group, the longest rows first.

    Example:
        >>> [group.tolist() for group in length_groups(np.array([5, 30, 6, 29]), 10)]
        [[1, 3], [2, 0]]
    """
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order].astype(np.int64)
    rows = np.arange(len(order))
    # Some best division is cut out of the sorted rows. least[i] is the cost of the first i of them, of which the last
    # group begins at starts[i]; a group is as long as its first row.
    least = np.zeros(len(order) + 1, np.int64)
    starts = [0]
    for stop in range(1, len(order) + 1):
        costs = least[:stop] + ordered[:stop] * (stop - rows[:stop])
        starts.append(int(costs.argmin()))
        least[stop] = costs[starts[stop]] + group_tokens
    groups = []
    stop = len(order)
    while stop:
        groups.append(order[starts[stop] : stop])
        stop = starts[stop]
    return groups[::-1]


def row_groups(lengths: Tensor, width: int) -> list[Tensor]:
    """Return the rows that a module reads in each of its passes: one pass on a GPU, which has cores to spare.

    Args:
        lengths: Tokens of each row. *Shape:* ``(rows,)``
        width: Width of the module's states.
    """
    if lengths.device.type != "cpu":
        return [torch.arange(len(lengths), device=lengths.device)]
    return [torch.from_numpy(rows) for rows in length_groups(lengths.numpy(), GROUP_COST // width**2)]


def encode_rows(model: nn.Module, features: dict[str, Any]) -> dict[str, Any]:
    """Encode a batch like ``model(features)``: on a CPU in :func:`row_groups`, with one look-up of the word embeddings.

    Embeddings and gradients are those of one pass up to rounding; dropout draws other numbers. One pass encodes what
    cannot be divided: a model that is wrapped (compiled, or distributed), and texts that are padded on the left, or not
    at all.

    Args:
        model: A ``SentenceTransformer``, possibly wrapped.
        features: A tokenized column, or several that were merged.

    Returns:
        The features with ``token_embeddings`` and ``sentence_embedding``.
    """
    table = _word_embeddings(model)
    if table is None or not _is_padded_right(features):
        return model(features)
    mask = features["attention_mask"]
    lengths = mask.sum(dim=1)
    groups = row_groups(lengths, table.embedding_dim)
    if len(groups) == 1:
        return model(features)
    # Each look-up's gradient is as large as the whole table: one for all groups.
    looked_up = {**features, "inputs_embeds": table(features["input_ids"])}
    del looked_up["input_ids"]
    outputs = []
    for rows in groups:
        width = max(1, int(lengths[rows].max()))
        outputs.append(model(cut_mini_batch(take_rows(looked_up, rows), 0, len(rows), width)))
    # From the order of the groups back into that of the batch.
    original_order = torch.cat(groups).argsort()
    states = [_pad_tokens(output["token_embeddings"], mask.shape[1]) for output in outputs]
    embeddings = [output["sentence_embedding"] for output in outputs]
    return {
        **features,
        "token_embeddings": torch.cat(states)[original_order],
        "sentence_embedding": torch.cat(embeddings)[original_order],
    }


def _word_embeddings(model: nn.Module) -> nn.Embedding | None:
    """Return the table of a model that can read rows of it in place of token ids; ``None`` of any other."""
    if not isinstance(model, SentenceTransformer) or any(isinstance(module, WordWeights) for module in model):
        return None
    transformer = model[0]
    if not isinstance(transformer, Transformer):
        return None
    encoder: Any = transformer.auto_model
    table = encoder.get_input_embeddings()
    reads_rows = "inputs_embeds" in inspect.signature(encoder.forward).parameters
    plain = isinstance(table, nn.Embedding) and table.max_norm is None and not table.scale_grad_by_freq
    return table if reads_rows and plain else None


def _is_padded_right(features: dict[str, Any]) -> bool:
    mask = features.get("attention_mask")
    if "input_ids" not in features or not isinstance(mask, Tensor) or mask.ndim != 2:
        return False
    tensors = [value for value in features.values() if isinstance(value, Tensor)]
    per_row = all(value.shape in (mask.shape, mask.shape[:1]) for value in tensors)
    return per_row and not bool((mask[:, 1:] > mask[:, :-1]).any())


def _pad_tokens(states: Tensor, width: int) -> Tensor:
    """Pad states of tokens with zeros. *Shape:* ``(rows, tokens, hidden)`` → ``(rows, width, hidden)``"""
    return F.pad(states, (0, 0, 0, width - states.shape[1]))
