"""One side's embeddings, read piece by piece: unit vectors to search with, exact ones to judge by."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from st_xling.utils.cosines import GRID_BITS, Embeddings, check_rows, lengths, on_grid

# Outside this range float32 arithmetic could lose small coordinates; such rows take the slower way over the grid.
_SHORTEST, _LONGEST = 1e-20, 1e20

# Rows handled at a time: at common widths they stay in a processor's second-level cache.
_ROWS_AT_ONCE = 256


def filter_error(dim: int) -> float:
    r"""Bound on the distance between a float32 product of two unit vectors and their exact cosine.

    With :math:`u = 2^{-24}`: reading a coordinate, taking the reciprocal length and multiplying cost at most :math:`3u`
    relative on either side. A sum of ``dim`` products in any order, with or without fused operations, costs at most
    :math:`\gamma_{dim} = dim\,u / (1 - dim\,u)` of the sum of their absolute values, which is at most 1 by
    Cauchy-Schwarz. The grid of :mod:`st_xling.utils.cosines` moves the cosine by at most
    :math:`\sqrt{dim}\,2^{-26}`, and its rounding to float32 by :math:`u / 2`. The rest of the constant 16 covers the
    comparisons with bounds, themselves in float32.

    Source:
        Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    steps = (dim + 16) * 2.0**-24
    assert steps < 0.5, "float32 sums of so many products say nothing"
    return steps / (1 - steps) + (dim**0.5 + 1) * 2.0**-GRID_BITS


class Side:
    """Checked embeddings with their lengths; the vectors themselves stay where they are.

    Args:
        embeddings: numpy (a memory map too), torch or rows elsewhere, any float dtype. *Shape:* ``(n, dim)``
        name: What to call them in an error.
        device: Where blocks are wanted.
    Raises:
        ValueError: When rows are zero or not finite.
    """

    def __init__(self, embeddings: Embeddings, name: str, device: torch.device) -> None:
        # numpy and memory-mapped arrays are seen as tensors at once, other rows piece by piece.
        self.embeddings = _as_tensor(embeddings) if isinstance(embeddings, (np.ndarray, Tensor)) else embeddings
        self.device = device
        self.rows, self.dim = int(embeddings.shape[0]), int(embeddings.shape[1])
        self.lengths = np.empty(self.rows)
        for start in range(0, self.rows, _ROWS_AT_ONCE):
            self.lengths[start : start + _ROWS_AT_ONCE] = lengths(self.embeddings, start, start + _ROWS_AT_ONCE)
        # NaN fails both comparisons.
        self.unusual = ~((self.lengths >= _SHORTEST) & (self.lengths <= _LONGEST))
        self.any_unusual = bool(self.unusual.any())
        if self.any_unusual:
            check_rows(self.embeddings, name, np.flatnonzero(self.unusual).tolist())
            self.lengths[self.unusual] = 1.0
        self._reciprocals = (1.0 / self.lengths).astype(np.float32)

    def unit(self, start: int, stop: int, out: Tensor) -> None:
        """Write rows ``start:stop`` as unit vectors into the first rows of ``out`` and zero the others."""
        out[stop - start :] = 0
        for first in range(start, stop, _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, stop)
            self._unit(first, last, out[first - start : last - start])

    def _unit(self, start: int, stop: int, out: Tensor) -> None:
        if self.any_unusual and self.unusual[start:stop].any():
            out.copy_(torch.from_numpy(on_grid(self.embeddings, start, stop) * 2.0**-GRID_BITS).float())
            return
        rows = _as_tensor(self.embeddings[start:stop]).to(out.device)
        rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
        rows = rows * torch.from_numpy(self._reciprocals[start:stop, None]).to(out.device)
        out.copy_(rows.float())  # to bfloat16 by way of float32, whatever the rows were

    def unit_rows(self, rows: Tensor) -> Tensor:
        """The rows at these indices (int64, on the CPU) as float32 unit vectors. *Shape:* ``(m, dim)``"""
        if self.any_unusual and self.unusual[rows.numpy()].any():
            return self.grid(rows).mul_(2.0**-GRID_BITS).float()
        return (
            self._picked(rows).float().mul_(torch.from_numpy(self._reciprocals[rows.numpy()])[:, None].to(self.device))
        )

    def rounding(self, dtype: torch.dtype) -> float:
        """The farthest that rounding to ``dtype`` moves a unit vector (and a little more)."""
        farthest = 0.0
        exact = torch.empty((_ROWS_AT_ONCE, self.dim), dtype=torch.float32, device=self.device)
        for start in range(0, self.rows, _ROWS_AT_ONCE):
            self.unit(start, min(start + _ROWS_AT_ONCE, self.rows), exact)
            moved = torch.linalg.vector_norm(exact - exact.to(dtype).float(), dim=1)
            farthest = max(farthest, float(moved.max()))
        return farthest * 1.001  # the norm is itself a float32 sum

    def grid(self, rows: Tensor) -> Tensor:
        """The rows at these indices on the exact grid: whole multiples of ``2 ** -26``.

        Args:
            rows: int64, on the CPU. *Shape:* ``(m,)``
        Returns:
            Integers held in float64. *Shape:* ``(m, dim)``
        """
        vectors = self._picked(rows)
        # A length in units of the grid: scaling by a power of two changes no digit of the quotient, and saves a pass.
        units = torch.from_numpy(self.lengths[rows.numpy()] * 2.0**-GRID_BITS)[:, None].to(self.device)
        vectors = (vectors / units).round_()
        if self.any_unusual:
            for place in np.flatnonzero(self.unusual[rows.numpy()]).tolist():
                row = int(rows[place])
                vectors[place] = torch.from_numpy(on_grid(self.embeddings, row, row + 1)[0])
        return vectors

    def _picked(self, rows: Tensor) -> Tensor:
        """A copy of the rows at these indices, as they are."""
        if isinstance(self.embeddings, Tensor):
            return self.embeddings.index_select(0, rows.to(self.embeddings.device)).to(self.device)
        return _as_tensor(self.embeddings[rows.numpy()]).to(self.device)


def _as_tensor(embeddings: np.ndarray | Tensor) -> Tensor:
    """The same memory as a tensor; a copy only where torch lacks the dtype or the memory order."""
    if isinstance(embeddings, Tensor):
        return embeddings.detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a read-only memory map: we never write
        try:
            return torch.from_numpy(embeddings)
        except (TypeError, ValueError):
            return torch.from_numpy(np.ascontiguousarray(embeddings, dtype=np.float64))


def on_scale(products: Tensor) -> Tensor:
    """Exact float64 products of grid vectors as float32 cosines, equal to those of ``exact_cosines``."""
    products = products.mul_(2.0 ** (-2 * GRID_BITS)).clamp_(-1.0, 1.0)
    return products.add_(0.0).float()  # -0.0 becomes 0.0


def pair_cosines(own: Side, other: Side, own_rows: Tensor, other_rows: Tensor) -> Tensor:
    """Exact cosines of single pairs.

    Args:
        own: One side.
        other: The other.
        own_rows: int64, on the CPU, in runs of equal rows. *Shape:* ``(pairs,)``
        other_rows: int64, on the CPU. *Shape:* ``(pairs,)``
    Returns:
        float32. *Shape:* ``(pairs,)``
    """
    # Whole numbers below 2^53, partial sums too: float64 adds them without rounding, in any order.
    return _pairwise(own, other, own_rows, other_rows, Side.grid, on_scale)


def pair_products(own: Side, other: Side, own_rows: Tensor, other_rows: Tensor) -> Tensor:
    """As :func:`pair_cosines`, up to :func:`filter_error`, in a third of the time."""
    return _pairwise(own, other, own_rows, other_rows, Side.unit_rows, Tensor.float)


def _pairwise(
    own: Side,
    other: Side,
    own_rows: Tensor,
    other_rows: Tensor,
    vectors_of: Callable[[Side, Tensor], Tensor],
    cosines_of: Callable[[Tensor], Tensor],
) -> Tensor:
    # One result for all: small ones in between would keep the memory of large ones from being used again.
    cosines = torch.empty(len(own_rows), dtype=torch.float32, device=own.device)
    step = _ROWS_AT_ONCE if own.device.type == "cpu" else 32 * _ROWS_AT_ONCE
    for start in range(0, len(own_rows), step):
        rows, place = torch.unique_consecutive(own_rows[start : start + step], return_inverse=True)
        vectors = vectors_of(other, other_rows[start : start + step])
        vectors.mul_(vectors_of(own, rows).index_select(0, place.to(own.device)))
        cosines[start : start + step] = cosines_of(vectors.sum(dim=1))
    return cosines
