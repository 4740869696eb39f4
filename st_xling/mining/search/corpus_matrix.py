"""A matrix of sentence embeddings as the search reads it: rounded products to choose by, exact cosines to decide by.

Products of float32 or bfloat16 unit vectors are fast, and their distance from the exact cosine has a proven bound
(:func:`product_error`, :func:`bfloat16_error`). Exact cosines come from fixed-point vectors, see
:mod:`st_xling.utils.cosines`, and are the same on every machine. The search rules pairs out by the first and scores
what is left by the second, so that its result does not depend on the precision of any product.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from st_xling.utils.cosines import FRACTION_BITS, Embeddings, check_rows, fixed_point, lengths

# Outside this range float32 arithmetic could lose small coordinates; such rows are read as fixed-point vectors.
_SHORTEST, _LONGEST = 1e-20, 1e20

# Rows handled at a time: at common widths they stay in a processor's second-level cache.
_ROWS_AT_ONCE = 256

# Products grow with source rows times target rows, exact re-scoring with their sum: the ratio of the two from which on
# products dominate, so that bfloat16 is worth trying; and what it must save, as more pairs are re-scored. Below that
# ratio it is worth trying where a row has few candidates: of 3,400 rows each, 13 of made-up vectors of dim 1024 (1.5x
# faster), 34 of multilingual-e5-small's (0.84x).
_LEAST_ROWS, _LEAST_GAIN, _LEAST_ROWS_A_CANDIDATE = 2500, 1.4, 75


class CorpusMatrix:
    """Checked embeddings with their lengths; the vectors themselves stay where they are.

    Args:
        embeddings: numpy (a memory map too), torch or rows on disk, any float dtype. *Shape:* ``(n, dim)``
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
        # NaN fails both comparisons, so that faulty rows are among the unusual ones.
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
            part = out[first - start : last - start]
            if self.any_unusual and self.unusual[first:last].any():
                part.copy_(torch.from_numpy(fixed_point(self.embeddings, first, last) * 2.0**-FRACTION_BITS).float())
                continue
            rows = _as_tensor(self.embeddings[first:last]).to(out.device)
            rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
            rows = rows * torch.from_numpy(self._reciprocals[first:last, None]).to(out.device)
            part.copy_(rows.float())  # to bfloat16 by way of float32, whatever the rows were

    def unit_rows(self, rows: Tensor) -> Tensor:
        """The rows at these indices (int64, on the CPU) as float32 unit vectors. *Shape:* ``(m, dim)``"""
        if self.any_unusual and self.unusual[rows.numpy()].any():
            return self.fixed_point_rows(rows).mul_(2.0**-FRACTION_BITS).float()
        reciprocals = torch.from_numpy(self._reciprocals[rows.numpy()])[:, None].to(self.device)
        return self.select(rows).float().mul_(reciprocals)

    def fixed_point_rows(self, rows: Tensor) -> Tensor:
        """The rows at these indices as fixed-point vectors: whole multiples of ``2 ** -26``.

        Args:
            rows: int64, on the CPU. *Shape:* ``(m,)``
        Returns:
            Integers held in float64. *Shape:* ``(m, dim)``
        """
        vectors = self.select(rows)
        # A length in units of 2^-26: scaling by a power of two changes no digit of the quotient, and saves a pass.
        units = torch.from_numpy(self.lengths[rows.numpy()] * 2.0**-FRACTION_BITS)[:, None].to(self.device)
        vectors = (vectors / units).round_()
        if self.any_unusual:
            for place in np.flatnonzero(self.unusual[rows.numpy()]).tolist():
                row = int(rows[place])
                vectors[place] = torch.from_numpy(fixed_point(self.embeddings, row, row + 1)[0])
        return vectors

    def select(self, rows: Tensor) -> Tensor:
        """A copy of the rows at these indices (int64, on the CPU), as they are."""
        if isinstance(self.embeddings, Tensor):
            return self.embeddings.index_select(0, rows.to(self.embeddings.device)).to(self.device)
        return _as_tensor(self.embeddings[rows.numpy()]).to(self.device)

    def add_to(self, digest: Any) -> None:
        """Update a digest of :mod:`hashlib` with all lengths and about a thousand exact rows."""
        digest.update(self.lengths.tobytes())
        rows = np.unique(np.linspace(0, self.rows - 1, min(self.rows, 1024)).astype(np.int64))
        digest.update(self.fixed_point_rows(torch.from_numpy(rows)).cpu().numpy().tobytes())

    def rounding(self, dtype: torch.dtype) -> float:
        """The farthest that rounding to ``dtype`` moves a unit vector (and a little more)."""
        farthest = 0.0
        exact = torch.empty((_ROWS_AT_ONCE, self.dim), dtype=torch.float32, device=self.device)
        for start in range(0, self.rows, _ROWS_AT_ONCE):
            self.unit(start, min(start + _ROWS_AT_ONCE, self.rows), exact)
            moved = torch.linalg.vector_norm(exact - exact.to(dtype).float(), dim=1)
            farthest = max(farthest, float(moved.max()))
        return farthest * 1.001  # the norm is itself a float32 sum


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


def to_cosines(products: Tensor) -> Tensor:
    """Exact float64 products of fixed-point vectors as float32 cosines, equal to those of ``exact_cosines``."""
    products = products.mul_(2.0 ** (-2 * FRACTION_BITS)).clamp_(-1.0, 1.0)
    return products.add_(0.0).float()  # -0.0 becomes 0.0


def pair_cosines(
    first: CorpusMatrix, second: CorpusMatrix, rows: Tensor, others: Tensor, *, exact: bool = True
) -> Tensor:
    """Cosines of single pairs.

    Args:
        first: One matrix.
        second: The other.
        rows: Of ``first``, int64, on the CPU, in runs of equal rows. *Shape:* ``(pairs,)``
        others: Of ``second``, int64, on the CPU. *Shape:* ``(pairs,)``
        exact: By fixed-point vectors; else by float32 ones, up to :func:`product_error`, in a third of the time.
    Returns:
        float32. *Shape:* ``(pairs,)``
    """
    vectors_of = CorpusMatrix.fixed_point_rows if exact else CorpusMatrix.unit_rows
    # One result for all: small ones in between would keep the memory of large ones from being used again.
    cosines = torch.empty(len(rows), dtype=torch.float32, device=first.device)
    in_memory = first.device.type == "cpu" and isinstance(second.embeddings, (np.ndarray, Tensor))
    step = _ROWS_AT_ONCE if in_memory else 32 * _ROWS_AT_ONCE  # of a store: few reads of each of its files
    for start in range(0, len(rows), step):
        distinct, place = torch.unique_consecutive(rows[start : start + step], return_inverse=True)
        vectors = vectors_of(second, others[start : start + step])
        vectors.mul_(vectors_of(first, distinct).index_select(0, place.to(first.device)))
        # Fixed point: whole numbers below 2^53, partial sums too, which float64 adds without rounding in any order.
        sums = vectors.sum(dim=1)
        cosines[start : start + step] = to_cosines(sums) if exact else sums
    return cosines


def product_error(dim: int) -> float:
    r"""Bound on the distance between a float32 product of two unit vectors and their exact cosine.

    With :math:`u = 2^{-24}`: reading a coordinate, taking the reciprocal length and multiplying cost at most :math:`3u`
    relative in either vector. A sum of ``dim`` products in any order, with or without fused operations, costs at most
    :math:`\gamma_{dim} = dim\,u / (1 - dim\,u)` of the sum of their absolute values, which is at most 1 by
    Cauchy-Schwarz. Fixed point (:mod:`st_xling.utils.cosines`) moves the cosine by at most
    :math:`\sqrt{dim}\,2^{-26}`, and its rounding to float32 by :math:`u / 2`. The rest of the constant 16 covers the
    comparisons with bounds, themselves in float32.

    Source:
        Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    steps = (dim + 16) * 2.0**-24
    assert steps < 0.5, "float32 sums of so many products say nothing"
    return steps / (1 - steps) + (dim**0.5 + 1) * 2.0**-FRACTION_BITS


def bfloat16_error(source: CorpusMatrix, target: CorpusMatrix) -> float:
    r"""Bound on the distance between a bfloat16 product of two unit vectors and their exact cosine.

    Let rounding move the vectors of the two matrices by at most :math:`\delta_s` and :math:`\delta_t`, as measured. By
    Cauchy-Schwarz that moves a product by at most :math:`\delta_s + \delta_t + \delta_s \delta_t`. The sum is taken in
    float32, whose bound grows with the vectors' lengths; at last it is rounded to 8 digits, by at most
    :math:`2^{-9}` below 1. Above 1 the next number is :math:`1 + 2^{-7}`: what lies nearer to 1 is rounded towards the
    cosine, and nothing lies farther away while the rest of the error is below :math:`2^{-8}`.
    """
    one, other = source.rounding(torch.bfloat16), target.rounding(torch.bfloat16)
    moved = one + other + one * other
    error = moved + product_error(source.dim) * (1 + one) * (1 + other)
    return error + (2.0**-9 if error < 2.0**-8 else 2.0**-8 * (1 + error))


@dataclass(frozen=True)
class Precision:
    """How a block is multiplied.

    Attributes:
        dtype: Of the vectors; products arrive in float32.
        error: Bound on the distance between a product and the exact cosine.
    """

    dtype: torch.dtype
    error: float


def precisions(source: CorpusMatrix, target: CorpusMatrix, k: int = 4) -> list[Precision]:
    """What to try on a block, cheapest first; the last is float32.

    A processor with bfloat16 arithmetic multiplies matrices two to three times faster in it than in float32. Its
    products are off by more, so more pairs are re-scored; a block where too many would be is multiplied again.
    """
    single = Precision(torch.float32, product_error(source.dim))
    rows = source.rows * target.rows / (source.rows + target.rows)
    fewest = min(_LEAST_ROWS, _LEAST_ROWS_A_CANDIDATE * k)
    if source.device.type != "cpu" or rows < fewest or not bfloat16_pays():
        return [single]
    half = Precision(torch.bfloat16, bfloat16_error(source, target))
    if rows < _LEAST_ROWS and rows < _LEAST_ROWS_A_CANDIDATE * _candidates(source, target, k, half.error):
        return [single]
    return [half, single]


def _candidates(source: CorpusMatrix, target: CorpusMatrix, k: int, error: float) -> float:
    """Pairs of a row that products with this error cannot tell from its ``k`` best: the mean of a few rows."""
    few, many = sorted((source, target), key=lambda matrix: matrix.rows)
    sample = torch.arange(0, many.rows, -(-many.rows // 32))
    products = many.unit_rows(sample) @ few.unit_rows(torch.arange(few.rows)).T
    least = products.topk(min(k, few.rows), dim=1).values[:, -1:] - 2 * error
    return float((products >= least).sum(dim=1).float().mean())


@cache
def bfloat16_pays() -> bool:
    """Whether this processor multiplies matrices faster in bfloat16, found by doing so for some milliseconds."""
    single = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    half = single.bfloat16()
    # In turns, so that other work on the machine meets both; the best of each, for it can only delay.
    rounds = [(_seconds(lambda: single @ single.T), _seconds(lambda: half @ half.T)) for _ in range(4)]
    slow, fast = (min(times) for times in zip(*rounds))
    return slow > _LEAST_GAIN * fast


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
