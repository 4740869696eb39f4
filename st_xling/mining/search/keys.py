"""Candidates as whole numbers: cosine above, reversed index below; larger is better, none are equal."""

from __future__ import annotations

import torch
from torch import Tensor

_LOW_BITS = 2**32 - 1

#: Below the key of every candidate.
NOTHING = -(2**63)

#: Row numbers must be smaller.
MAX_ROWS = _LOW_BITS


def to_keys(cosines: Tensor, indices: Tensor) -> Tensor:
    """One int64 per candidate: a higher cosine is a larger key, and of equal cosines the lower index.

    Args:
        cosines: float32, without NaN or negative zeros.
        indices: Rows of the other side, int64, broadcast against ``cosines``.
    """
    bits = cosines.contiguous().view(torch.int32)
    # IEEE bits of non-negative floats order like integers; those of negative ones in reverse.
    order = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64) << 32
    return order.bitwise_or_(_LOW_BITS - indices)


def cosines_of(keys: Tensor) -> Tensor:
    """float32 cosines; minus infinity for :data:`NOTHING`."""
    order = (keys >> 32).to(torch.int32)
    cosines = (order ^ ((order >> 31) & 0x7FFFFFFF)).view(torch.float32)
    return cosines.masked_fill_(keys == NOTHING, -torch.inf)


def indices_of(keys: Tensor) -> Tensor:
    """Rows of the other side, int64."""
    return _LOW_BITS - (keys & _LOW_BITS)
