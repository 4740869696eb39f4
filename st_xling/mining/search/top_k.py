"""Pack candidates of a search into single numbers, and find the best ``k`` of each row.

A candidate is one int64 key, its cosine above its reversed index: a larger key is a better candidate, equal cosines are
ordered by the lower index, and no two candidates of a row have the same key. Cosines are rounded to multiples of
``2 ** -24``, which float32 holds exactly, so that equal pairs have equal keys in whatever order they were summed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from st_xling.utils.cosines import STEPS

_LOW_BITS = 2**32 - 1

#: Below the key of every candidate; its cosine is -128.
NO_CANDIDATE = -(2**63)

#: Row numbers must be smaller.
MAX_ROWS = _LOW_BITS

# Rows whose candidates from either corpus are merged at a time.
_MERGED_AT_ONCE = 2**18


def pack_keys(cosines: Tensor, indices: Tensor) -> Tensor:
    """Pack each candidate into one int64: a higher cosine is a larger key, and of equal cosines the lower index.

    Args:
        cosines: float32 or float64, without NaN.
        indices: Candidates' rows, int64, broadcast against ``cosines``.
    """
    steps = cosines.double().mul(STEPS).round_().to(torch.int64)
    return (steps << 32).bitwise_or_(_LOW_BITS - indices)


def cosines_of(keys: Tensor) -> Tensor:
    """Unpack float32 cosines."""
    return (keys >> 32).float().div_(STEPS)


def indices_of(keys: Tensor) -> Tensor:
    """Unpack the candidates' rows, int64."""
    return _LOW_BITS - (keys & _LOW_BITS)


def best_of_rows(rows: Tensor, keys: Tensor, k: int, count: int) -> Tensor:
    """Find the ``k`` largest keys of each row, then ``NO_CANDIDATE``.

    Args:
        rows: Row of each key. *Shape:* ``(keys,)``
        keys: *Shape:* ``(keys,)``
        k: Keys of a row in the result.
        count: Number of rows.
    Returns:
        *Shape:* ``(count, k)``
    """
    order = torch.argsort(keys, descending=True)
    order = order[torch.argsort(rows[order], stable=True)]
    ordered = rows[order]
    rank = torch.arange(len(ordered), device=rows.device) - torch.searchsorted(ordered, ordered)
    kept = rank < k
    table = torch.full((count, k), NO_CANDIDATE, device=rows.device)
    table[ordered[kept], rank[kept]] = keys[order[kept]]
    return table


def merge(keys: Tensor, others: Tensor) -> None:
    """Replace the keys of each row by the best of them and of ``others``, which are of different candidates."""
    keys.copy_(torch.cat([keys, others], dim=1).topk(keys.shape[1], dim=1).values)


def distinct_best(keys: Tensor, k: int) -> Tensor:
    """Find the ``k`` largest different keys of each row, then ``NO_CANDIDATE``. *Shape:* ``(rows, k)``"""
    keys = keys.sort(dim=1, descending=True).values
    keys[:, 1:].masked_fill_(keys[:, 1:] == keys[:, :-1], NO_CANDIDATE)
    return keys.topk(k, dim=1).values


def merge_pairs(keys: Tensor, others: Tensor) -> Tensor:
    """Merge the candidates of each row with those found from the other corpus for the same row.

    Args:
        keys: Candidates of one corpus. *Shape:* ``(rows, k)``
        others: Those of the other corpus, which name the rows of this one. *Shape:* ``(other rows, k)``
    """
    rows, k = indices_of(others), keys.shape[1]
    merged = torch.empty_like(keys)
    for start in range(0, len(keys), _MERGED_AT_ONCE):
        part = keys[start : start + _MERGED_AT_ONCE]
        found, place = ((rows >= start) & (rows < start + len(part))).nonzero(as_tuple=True)
        pairs = pack_keys(cosines_of(others[found, place]), found)
        table = best_of_rows(rows[found, place] - start, pairs, k, len(part))
        merged[start : start + len(part)] = distinct_best(torch.cat([part, table], dim=1), k)
    return merged
