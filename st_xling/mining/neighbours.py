"""Exact k nearest neighbours of two sets of sentences in each other, from one pass over the cosines."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.blocks import Blocks, block_sizes
from st_xling.mining.search.keys import MAX_ROWS, cosines_of, indices_of
from st_xling.mining.search.search import search
from st_xling.mining.search.search_state import SearchState
from st_xling.mining.search.side import Side
from st_xling.utils.cosines import Embeddings, check_shapes


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The ``k`` best matches of each sentence on the other side, best first, the lowest index first among equals.

    Attributes:
        similarities: Cosines, float32. *Shape:* ``(n, k)``
        indices: Rows of the other side, int64. *Shape:* ``(n, k)``
    """

    similarities: np.ndarray
    indices: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """Mean cosine of each sentence's neighbours, float64. *Shape:* ``(n,)``"""
        return self.similarities.mean(axis=1, dtype=np.float64)


def neighbours(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    block_rows: int | None = None,
    block_columns: int | None = None,
    progress: bool = False,
    state_folder: str | os.PathLike[str] | None = None,
    save_seconds: float = 60.0,
) -> tuple[Neighbours, Neighbours]:
    """Nearest targets of each source and nearest sources of each target, by cosine.

    Rounded products, each computed once for its row and its column, only decide which pairs are looked at: in bfloat16
    where the processor is faster in it, then in float32. Those pairs are scored and compared by the cosines of
    :mod:`st_xling.utils.cosines`, free of rounding until the last step, and by index among equals. So the result is
    exact, and the same to the last bit for any blocks, threads and device.

    Beyond the inputs, which may be memory maps larger than the memory and are read block by block, a search takes
    ``memory_mib``, ``12 * k`` bytes per target, ``8 * k`` per source, and 32 per row of either side.

    Args:
        source_embeddings: numpy or torch, any float dtype, normalised or not. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        device: Where to compute, such as ``"cuda"``; embeddings may lie elsewhere.
        memory_mib: Bound on the memory of one block, in MiB, on ``device``.
        block_rows: Sources compared at a time, instead of what ``memory_mib`` allows.
        block_columns: Targets compared at a time.
        progress: Show a bar on stderr.
        state_folder: Save what has been found there from time to time, and go on from what is found there.
        save_seconds: Least time between two saves.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: When ``k`` exceeds either side, dims differ, a side is empty, rows are zero or not finite, or
            ``state_folder`` holds another search.
    Example:
        >>> forward, backward = neighbours(np.eye(3), np.eye(3)[[1, 2, 0]], k=1)
        >>> forward.indices.ravel().tolist(), backward.indices.ravel().tolist()
        ([2, 0, 1], [1, 2, 0])
    """
    source_embeddings, target_embeddings = check_shapes(
        source_embeddings, target_embeddings, "source_embeddings", "target_embeddings"
    )
    (sources, dim), targets = source_embeddings.shape, target_embeddings.shape[0]
    _check_sizes(k, sources, targets, block_rows, block_columns)
    device = torch.device(device)
    blocks = block_sizes(sources, targets, dim, memory_mib=memory_mib, device=device.type)
    blocks = Blocks(min(block_rows or blocks.rows, sources), min(block_columns or blocks.columns, targets))
    source = Side(source_embeddings, "source_embeddings", device)
    target = Side(target_embeddings, "target_embeddings", device)
    folder = None if state_folder is None else Path(state_folder)
    state = SearchState(source, target, k=k, folder=folder, save_seconds=save_seconds)
    forward, backward = search(source, target, k=k, blocks=blocks, state=state, progress=progress)
    return _read(forward), _read(backward)


def _check_sizes(k: int, sources: int, targets: int, block_rows: int | None, block_columns: int | None) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1: got k={k}; 4 is the usual choice.")
    if k > min(sources, targets):
        raise ValueError(
            f"k must be smaller than the corpus, or equal to it, on both sides: got k={k} for {sources} source and "
            f"{targets} target sentences; lower k or mine more text."
        )
    if min(1 if size is None else size for size in (block_rows, block_columns)) < 1:
        raise ValueError(
            f"blocks must be at least 1 by 1: got block_rows={block_rows} and block_columns={block_columns}; "
            "leave them out for the defaults."
        )
    assert max(sources, targets) <= MAX_ROWS, "row numbers must fit 32 bits"


def _read(keys: Tensor) -> Neighbours:
    return Neighbours(cosines_of(keys).numpy(), indices_of(keys).numpy())
