"""Mini-batches of a padded batch: rows of like length together, so that little is computed on padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Features = dict[str, Any]


@dataclass(frozen=True)
class MiniBatchSize:
    """How much is encoded at a time.

    Attributes:
        rows: Rows of the batch, where ``tokens`` is ``None``.
        tokens: Tokens of all columns, padding included; a row that is longer is a mini-batch by itself.
    """

    rows: int
    tokens: int | None = None

    def split(self, lengths: Sequence[int], *, columns: int = 1, unit: int = 1) -> list[tuple[int, int]]:
        """Split sorted rows into mini-batches.

        Args:
            lengths: Tokens of each row's longest column, descending from one unit to the next.
            columns: Columns that are encoded together, each padded to the longest of them.
            unit: Rows that stay together: mini-batches begin at a multiple of it.

        Returns:
            Begin and end of each mini-batch.

        Example:
            >>> MiniBatchSize(rows=32, tokens=12).split([6, 6, 4, 3, 3, 2])
            [(0, 2), (2, 5), (5, 6)]
        """
        ranges: list[tuple[int, int]] = []
        complete = len(lengths) // unit * unit
        begin = 0
        while begin < complete:
            rows = self.rows
            if self.tokens is not None:
                width = max(lengths[begin : begin + unit])
                rows = self.tokens // max(width * columns, 1)
            rows = max(rows // unit * unit, unit)
            end = min(begin + rows, complete)
            ranges.append((begin, end))
            begin = end
        if complete < len(lengths):  # an incomplete unit, whose rows may be of any length
            ranges.append((complete, len(lengths)))
        return ranges


def is_padded(features: Features) -> bool:
    """Return whether all tensors of a column have one row a text, and an attention mask tells the tokens.

    Batches without padding (``cu_seq_lens_q``) and bags of tokens (``offsets``) have not.
    """
    mask = features.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return False
    tensors = [value for value in features.values() if isinstance(value, Tensor)]
    return all(value.ndim > 0 and len(value) == len(mask) for value in tensors)


def row_lengths(features: Features) -> Tensor:
    """Return the width that each row of a padded column needs. *Shape:* ``(batch,)``

    Padding before the tokens counts: the encoder may count positions from the left.
    """
    mask = features["attention_mask"].bool()
    positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (mask * positions).amax(dim=1) if mask.shape[1] else mask.sum(dim=1)


def order_by_length(lengths: Tensor, *, unit: int = 1) -> Tensor:
    """Return row numbers, the longest rows first, so that the first mini-batch needs the most memory.

    Args:
        lengths: Tokens of each row. *Shape:* ``(batch,)``
        unit: Rows that stay next to each other and in their order. A last unit that is incomplete stays last.

    Returns:
        *Shape:* ``(batch,)``

    Example:
        >>> order_by_length(torch.tensor([3, 9, 4, 8])).tolist()
        [1, 3, 2, 0]
        >>> order_by_length(torch.tensor([3, 4, 2, 8, 9]), unit=2).tolist()
        [2, 3, 0, 1, 4]
    """
    complete = len(lengths) // unit * unit
    longest = lengths[:complete].view(-1, unit).amax(dim=1)
    units = longest.argsort(descending=True, stable=True)
    rows = torch.arange(len(lengths), device=lengths.device)
    ordered = rows[:complete].view(-1, unit)[units].flatten()
    return torch.cat([ordered, rows[complete:]])


def take_rows(features: Features, rows: Tensor) -> Features:
    """Return these rows of a padded column, in this order."""
    return {key: value[rows] if isinstance(value, Tensor) else value for key, value in features.items()}


def cut_mini_batch(features: Features, begin: int, end: int, width: int) -> Features:
    """Return the rows from ``begin`` to ``end`` of a padded column, without the padding behind ``width`` tokens."""
    full_width = features["attention_mask"].shape[1]
    cut: Features = {}
    for key, value in features.items():
        if not isinstance(value, Tensor):
            cut[key] = value
        elif value.ndim > 1 and value.shape[1] == full_width:
            cut[key] = value[begin:end, :width]
        else:
            cut[key] = value[begin:end]
    return cut
