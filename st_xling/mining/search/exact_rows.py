"""Exact neighbours of a few rows only: to complete a search, or to measure it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.blocks import block_sizes
from st_xling.mining.search.search import search
from st_xling.mining.search.search_state import SearchState
from st_xling.mining.search.side import Side
from st_xling.utils.cosines import Embeddings


def exact_rows(own: Side, other: Side, rows: np.ndarray, *, k: int, memory_mib: int, progress: bool = False) -> Tensor:
    """Keys of the ``k`` nearest of some rows among all rows of the other side.

    Args:
        own: The side whose rows are served.
        other: The side searched.
        rows: Which, int64.
        k: Neighbours, at most the rows of ``other``.
        memory_mib: Bound on the memory of one block, in MiB.
        progress: Show a bar on stderr.
    Returns:
        int64, see :mod:`st_xling.mining.search.keys`, on the CPU. *Shape:* ``(rows, k)``
    """
    if not len(rows):
        return torch.empty((0, k), dtype=torch.int64)
    picked = Side(_picked(own.embeddings, rows), "rows", own.device)
    blocks = block_sizes(len(rows), other.rows, own.dim, memory_mib=memory_mib, device=own.device.type)
    state = SearchState(picked, other, k=k, folder=None, save_seconds=0.0)
    return search(picked, other, k=k, blocks=blocks, state=state, progress=progress)[0]


def _picked(embeddings: Embeddings, rows: np.ndarray) -> Embeddings:
    if isinstance(embeddings, Tensor):
        return embeddings[torch.from_numpy(rows).to(embeddings.device)]
    return embeddings[rows]
