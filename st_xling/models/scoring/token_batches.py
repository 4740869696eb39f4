"""Rows of pairs by the tokens that are computed together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# A processor gains nothing from more at a time and loses little by less, which pads less; a GPU wants to be filled:
# this many tokens are the host's 32 rows of 512.
_TOKENS = {"cpu": 2048, "cuda": 16_384}


def usual_budget(device: str) -> int:
    """Tokens of a batch where nobody says how many, by the kind of device, such as ``"cuda"``."""
    return _TOKENS.get(device, _TOKENS["cuda"])


def batches(lengths: np.ndarray, token_budget: int) -> Iterator[slice]:
    """Runs of rows whose number by their longest is at most the budget, or of one row.

    Args:
        lengths: Tokens, descending. *Shape:* ``(rows,)``
        token_budget: Tokens, padding included.
    Example:
        >>> [(run.start, run.stop) for run in batches(np.array([9, 4, 4, 2, 2]), 8)]
        [(0, 1), (1, 3), (3, 5)]
    """
    start = 0
    while start < len(lengths):
        stop = min(start + max(1, token_budget // int(lengths[start])), len(lengths))
        yield slice(start, stop)
        start = stop
