"""Exact k nearest neighbours of two sets of sentences in each other, from one pass over the cosines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from st_xling.evaluation.cosines import Embeddings, check_pair, exact_cosines, on_grid

_LOW_BITS = 2**32 - 1


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
    block_rows: int = 1024,
    block_columns: int = 2048,
) -> tuple[Neighbours, Neighbours]:
    """Nearest targets of each source and nearest sources of each target, by cosine.

    Each block of cosines is computed once and serves its rows and its columns. The result does not depend on the block
    sizes: cosines are those of :mod:`st_xling.evaluation.cosines`, free of rounding until the last step, and candidates
    are compared as whole numbers that join the float32 cosine and the index, no two of which are equal.

    Memory beyond the inputs: about 50 bytes per cosine of one block (100 MB by default) and ``8 * k`` bytes per target.

    Args:
        source_embeddings: numpy or torch, any float dtype, normalised or not. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        block_rows: Sources compared at a time.
        block_columns: Targets compared at a time.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: When ``k`` exceeds either side, dims differ, a side is empty, or rows are zero or not finite.
    Example:
        >>> forward, backward = neighbours(np.eye(3), np.eye(3)[[1, 2, 0]], k=1)
        >>> forward.indices.ravel().tolist(), backward.indices.ravel().tolist()
        ([2, 0, 1], [1, 2, 0])
    """
    check_pair(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
    sources, targets = source_embeddings.shape[0], target_embeddings.shape[0]
    _check_sizes(k, sources, targets, block_rows, block_columns)
    source_best = torch.empty((sources, k), dtype=torch.int64)
    target_best: list[Tensor | None] = [None] * -(-targets // block_columns)
    for start in range(0, sources, block_rows):
        source_block = on_grid(source_embeddings, start, start + block_rows)
        best: Tensor | None = None
        for number, column in enumerate(range(0, targets, block_columns)):
            target_block = on_grid(target_embeddings, column, column + block_columns)
            cosines = torch.from_numpy(exact_cosines(source_block, target_block))
            best = _merge(best, _keys(cosines, column), k)
            # The transposed view: the same cosines, now a row per target.
            target_best[number] = _merge(target_best[number], _keys(cosines.T, start), k)
        assert best is not None
        source_best[start : start + len(best)] = best
    return _read(source_best), _read(torch.cat([block for block in target_best if block is not None]))


def _check_sizes(k: int, sources: int, targets: int, block_rows: int, block_columns: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1: got k={k}; 4 is the usual choice.")
    if k > min(sources, targets):
        raise ValueError(
            f"k must be smaller than the corpus, or equal to it, on both sides: got k={k} for {sources} source and "
            f"{targets} target sentences; lower k or mine more text."
        )
    if min(block_rows, block_columns) < 1:
        raise ValueError(
            f"blocks must be at least 1 by 1: got block_rows={block_rows} and block_columns={block_columns}; "
            "leave them out for the defaults."
        )
    assert max(sources, targets) <= _LOW_BITS, "row numbers must fit 32 bits"


def _keys(cosines: Tensor, first_index: int) -> Tensor:
    """One int64 per cosine: its order above, its column's reversed index below, so that larger is better.

    Args:
        cosines: float32, without negative zeros. *Shape:* ``(rows, columns)``
        first_index: Index of column 0 on its side.
    """
    bits = cosines.contiguous().view(torch.int32)
    # IEEE bits of non-negative floats order like integers; those of negative ones in reverse.
    order = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64) << 32
    reversed_index = _LOW_BITS - first_index - torch.arange(cosines.shape[1])
    return order.bitwise_or_(reversed_index)


def _merge(best: Tensor | None, keys: Tensor, k: int) -> Tensor:
    """The ``k`` largest keys of each row so far, in descending order. *Shape:* ``(rows, at most k)``"""
    found = keys.topk(min(k, keys.shape[1]), dim=1).values
    if best is None:
        return found
    merged = torch.cat([best, found], dim=1)
    return merged.topk(min(k, merged.shape[1]), dim=1).values


def _read(keys: Tensor) -> Neighbours:
    """Inverse of :func:`_keys`."""
    order = (keys >> 32).to(torch.int32)
    similarities = (order ^ ((order >> 31) & 0x7FFFFFFF)).view(torch.float32)
    return Neighbours(similarities.numpy(), (_LOW_BITS - (keys & _LOW_BITS)).numpy())
