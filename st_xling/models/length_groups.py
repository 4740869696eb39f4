"""Passes over a padded batch in groups of rows of like length: little is computed on padding."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn

#: Cost of one more group, in tokens, times the square of the encoder's width: the calls of a layer take as long as
#: its products for so many tokens. Measured on a processor, 32 to 128 tokens at a width of 384 are equally good.
GROUP_COST = 64 * 384**2

_grouping: ContextVar[bool] = ContextVar("grouping", default=False)


def length_groups(lengths: np.ndarray, group_tokens: int) -> list[np.ndarray]:
    """Rows in groups, longest first, that cost as little as any division: their tokens with padding, and each group's.

    Args:
        lengths: Tokens of each row. *Shape:* ``(rows,)``
        group_tokens: Cost of a group, in tokens, besides its rows, each as long as its longest.
    Example:
        >>> [group.tolist() for group in length_groups(np.array([5, 30, 6, 29]), 10)]
        [[1, 3], [2, 0]]
    """
    order = np.argsort(-lengths, kind="stable")
    ordered, rows = lengths[order].astype(np.int64), np.arange(len(order))
    # Some best division is cut out of the sorted rows. least[i] is the cost of the first i of them, of which the last
    # group begins at starts[i]; a group is as long as its first row.
    least, starts = np.zeros(len(order) + 1, np.int64), [0]
    for stop in range(1, len(order) + 1):
        costs = least[:stop] + ordered[:stop] * (stop - rows[:stop])
        starts.append(int(costs.argmin()))
        least[stop] = costs[starts[stop]] + group_tokens
    groups, stop = [], len(order)
    while stop:
        groups.append(order[starts[stop] : stop])
        stop = starts[stop]
    return groups[::-1]


def row_groups(lengths: Tensor, width: int) -> list[Tensor]:
    """The rows of each pass of a module that is trained: of several on a CPU within :func:`grouped_by_length`, or one.

    Args:
        lengths: Tokens of each row. *Shape:* ``(rows,)``
        width: Width of the module's states.
    """
    if not _grouping.get() or lengths.device.type != "cpu":
        return [torch.arange(len(lengths), device=lengths.device)]
    return [torch.from_numpy(rows) for rows in length_groups(lengths.numpy(), GROUP_COST // width**2)]


@contextlib.contextmanager
def grouped_by_length(model: nn.Module) -> Iterator[None]:
    """Within it, the model's transformers read each batch in :func:`row_groups`, while they are trained.

    Outputs and gradients are those of one pass but for rounding; dropout draws other numbers. Batches that are padded
    on the left, or not at all, are read in one pass, and so are all on a GPU.

    Args:
        model: A model of sentence-transformers, with ``Transformer`` modules.
    """
    transformers: list[Any] = [module for module in model.modules() if isinstance(module, Transformer)]
    for transformer in transformers:
        transformer.forward = MethodType(_forward, transformer)  # whose copies are the copied module's own
    token = _grouping.set(True)
    try:
        yield
    finally:
        _grouping.reset(token)
        for transformer in transformers:
            del transformer.forward


def _forward(transformer: Any, features: dict[str, Any], **options: Any) -> dict[str, Any]:
    plain, mask = partial(type(transformer).forward, transformer, **options), features.get("attention_mask")
    if not transformer.training or mask is None or mask.device.type != "cpu" or not _is_padded_right(features, mask):
        return plain(features)
    lengths = mask.sum(dim=1)
    groups = row_groups(lengths, transformer.get_embedding_dimension())
    if len(groups) == 1:
        return plain(features)
    with _one_look_up(transformer.auto_model.get_input_embeddings(), features["input_ids"]):
        parts = [plain(_cut(features, rows, max(1, int(lengths[rows].max())))) for rows in groups]
    outputs, back = (name for name in parts[0] if name not in features), torch.cat(groups).argsort()
    return {**features, **{name: _joined([part[name] for part in parts], back, mask.shape[1]) for name in outputs}}


def _is_padded_right(features: dict[str, Any], mask: Tensor) -> bool:
    tensors = [value for value in features.values() if isinstance(value, Tensor)]
    alike = "input_ids" in features and all(value.shape in (mask.shape, mask.shape[:1]) for value in tensors)
    return alike and mask.ndim == 2 and not bool((mask[:, 1:] > mask[:, :-1]).any())


def _cut(features: dict[str, Any], rows: Tensor, width: int) -> dict[str, Any]:
    cut = {name: value[rows] for name, value in features.items() if isinstance(value, Tensor)}
    return {**features, **{name: value[:, :width] if value.ndim > 1 else value for name, value in cut.items()}}


def _joined(values: Sequence[Any], back: Tensor, width: int) -> Any:
    """An output of all groups, in the rows' order; states of tokens are padded with zeros."""
    if isinstance(values[0], (tuple, list)):  # of all layers
        return [_joined(layer, back, width) for layer in zip(*values)]
    if not isinstance(values[0], Tensor):
        return values[0]
    padded = (F.pad(part, (0, 0, 0, width - part.shape[1])) if part.ndim == 3 else part for part in values)
    return torch.cat(list(padded))[back]


@contextlib.contextmanager
def _one_look_up(table: Any, ids: Tensor) -> Iterator[None]:
    """A batch's distinct tokens are looked up once for all groups, for each look-up's gradient is a whole table."""
    if type(table) is not nn.Embedding or table.max_norm is not None or table.scale_grad_by_freq:
        yield
        return
    distinct = ids.unique()
    rows, places = table(distinct), torch.zeros(table.num_embeddings, dtype=torch.long)
    places[distinct] = torch.arange(len(distinct))
    table.forward = lambda tokens: F.embedding(places[tokens], rows)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del table.forward
