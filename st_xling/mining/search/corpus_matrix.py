"""Matrices of sentence embeddings as the search reads them, their cosines, and candidates packed into single numbers.

Products of float32 or bfloat16 unit vectors are fast. Their distance from the cosine has a proven bound in float32
(:func:`product_error`) and is estimated generously in bfloat16 (:func:`bfloat16_error`). The search skips pairs by
these products and compares the others by cosines in float64.

A candidate is one int64 key, its cosine above its reversed index: a larger key is a better candidate, equal cosines are
ordered by the lower index, and no two candidates of a row have the same key. Cosines are rounded to multiples of
``2 ** -24``, which float32 holds exactly, so that equal pairs have equal keys in whatever order they were summed.
"""

from __future__ import annotations

import hashlib
import warnings

import numpy as np
import torch
from torch import Tensor

from st_xling.utils.cosines import STEPS, Embeddings, checked_lengths
from st_xling.utils.precision import prefers_bfloat16

# Rows handled at a time: at common widths they stay in a processor's second-level cache.
_ROWS_AT_ONCE = 256

# float64 numbers of a matrix that stay in that cache.
_CACHED_NUMBERS = 2**17

# Rows of each matrix by which the error of bfloat16 products is estimated.
_SAMPLED_ROWS = 512

# Products grow with source rows times target rows, cosines of pairs with their sum: the ratio of the two from which on
# products dominate, so that bfloat16 pays although more pairs are compared.
_LEAST_ROWS = 2500

_LOW_BITS = 2**32 - 1

# Cosines lie between -1 and 1, in steps of 2 ** -24.
_COSINE_BITS = 26

#: Below the key of every candidate; its cosine is -128.
NO_CANDIDATE = -(2**63)

#: Row numbers must be smaller.
MAX_ROWS = _LOW_BITS

# Rows whose candidates from either corpus are merged at a time.
_MERGED_AT_ONCE = 2**18


class CorpusMatrix:
    """Checked embeddings with their lengths; the vectors are not copied.

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
        self.rows = int(embeddings.shape[0])
        self.dim = int(embeddings.shape[1])
        self.lengths = checked_lengths(self.embeddings, name)

    def unit(self, start: int, stop: int, out: Tensor) -> None:
        """Write rows ``start:stop`` into ``out`` as unit vectors of its dtype, by way of float64."""
        for first in range(start, stop, _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, stop)
            rows = _as_tensor(self.embeddings[first:last]).to(out.device)
            out[first - start : last - start] = self._divided(rows, slice(first, last))

    def unit_rows(self, rows: Tensor) -> Tensor:
        """Return the rows at these indices (int64, on the CPU) as float64 unit vectors. *Shape:* ``(m, dim)``"""
        return self._divided(self.select(rows), rows.numpy())

    def sample(self, count: int) -> Tensor:
        """Return ``count`` rows at equal distances, or all of fewer, as float64 unit vectors."""
        rows = np.unique(np.linspace(0, self.rows - 1, min(self.rows, count)).astype(np.int64))
        return self.unit_rows(torch.from_numpy(rows))

    def select(self, rows: Tensor) -> Tensor:
        """Copy the rows at these indices (int64, on the CPU), as they are."""
        if isinstance(self.embeddings, Tensor):
            return self.embeddings.index_select(0, rows.to(self.embeddings.device)).to(self.device)
        return _as_tensor(self.embeddings[rows.numpy()]).to(self.device)

    def _divided(self, rows: Tensor, at: slice | np.ndarray) -> Tensor:
        return rows.double() * torch.from_numpy(1 / self.lengths[at, None]).to(rows.device)

    @property
    def fingerprint(self) -> str:
        """Hash of the shape, all lengths and about a thousand rows."""
        digest = hashlib.sha256(str((self.rows, self.dim)).encode())
        digest.update(self.lengths.tobytes())
        digest.update(self.sample(1024).cpu().numpy().tobytes())
        return digest.hexdigest()


def _as_tensor(embeddings: np.ndarray | Tensor) -> Tensor:
    """Return the same memory as a tensor; a copy only if torch lacks the dtype or the memory order."""
    if isinstance(embeddings, Tensor):
        return embeddings.detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a read-only memory map: we never write
        try:
            return torch.from_numpy(embeddings)
        except (TypeError, ValueError):
            return torch.from_numpy(np.ascontiguousarray(embeddings, dtype=np.float64))


def pair_cosines(first: CorpusMatrix, second: CorpusMatrix, rows: Tensor, others: Tensor) -> Tensor:
    """Compute the cosines of single pairs.

    Args:
        first: One matrix.
        second: The other.
        rows: Of ``first``, int64, on the CPU. *Shape:* ``(pairs,)``
        others: Of ``second``, int64, on the CPU. *Shape:* ``(pairs,)``
    Returns:
        float32, rounded as in :mod:`st_xling.utils.cosines`. *Shape:* ``(pairs,)``
    """
    cosines = torch.empty(len(rows), dtype=torch.float32, device=first.device)
    in_memory = first.device.type == "cpu" and isinstance(second.embeddings, (np.ndarray, Tensor))
    # In memory, as many as a processor's cache holds; of a store, many: few reads of each of its files.
    step = max(_ROWS_AT_ONCE, _CACHED_NUMBERS // first.dim) if in_memory else 32 * _ROWS_AT_ONCE
    for start in range(0, len(rows), step):
        first_rows = rows[start : start + step]
        second_rows = others[start : start + step]
        products = second.select(second_rows).double().mul_(first.select(first_rows)).sum(dim=1)
        lengths = torch.from_numpy(first.lengths[first_rows.numpy()] * second.lengths[second_rows.numpy()])
        cosines[start : start + step] = (products / lengths.to(products.device)).mul_(STEPS).round_().div_(STEPS)
    return cosines


def product_error(dim: int) -> float:
    r"""Bound the distance between a float32 product of two unit vectors and their cosine.

    With :math:`u = 2^{-24}`: rounding a coordinate costs at most :math:`u` relative in either vector. A sum of ``dim``
    products in any order, with or without fused operations, costs at most
    :math:`\gamma_{dim} = dim\,u / (1 - dim\,u)` of the sum of their absolute values, which is at most 1 by
    Cauchy-Schwarz. Cosines are rounded by at most :math:`u / 2`. The rest of the constant 16 covers the comparisons
    with bounds, themselves in float32.

    Source:
        Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    steps = (dim + 16) * 2.0**-24
    assert steps < 0.5, "float32 sums of so many products say nothing"
    return steps / (1 - steps)


def bfloat16_error(source: CorpusMatrix, target: CorpusMatrix) -> float:
    """Estimate how far rounding unit vectors to bfloat16 moves their products: four times the most of a sample.

    The bound of Cauchy-Schwarz is some fifty times what rounding does to real vectors, and would let far more pairs
    through. Rounding of the products themselves comes on top, see :func:`output_rounding`.
    """
    source_rows = source.sample(_SAMPLED_ROWS)
    target_rows = target.sample(_SAMPLED_ROWS)
    # float32 products are faster than those of float64, and their own error is far below that of the rounding.
    rounded = source_rows.bfloat16().float() @ target_rows.bfloat16().float().T
    largest_error = float((rounded - source_rows.float() @ target_rows.float().T).abs().max())
    return 4 * largest_error + product_error(source.dim)


def output_rounding(products: Tensor, dtype: torch.dtype) -> Tensor | float:
    """Bound how far products are moved when they are rounded to bfloat16, of 8 binary digits."""
    return (products.abs() * 2.0**-8).clamp(max=2.0**-9) if dtype == torch.bfloat16 else 0.0


def precisions(source: CorpusMatrix, target: CorpusMatrix) -> list[tuple[torch.dtype, float]]:
    """Return the dtypes to multiply a block in, cheapest first, with error bounds of their products; float32 is last.

    Some processors multiply matrices several times faster in bfloat16 than in float32, others slower, whatever their
    flags say: it is measured. The products are off by more, so more pairs are compared; a block where too many would
    be is multiplied again. The result is the same.
    """
    single = torch.float32, product_error(source.dim)
    rows = source.rows * target.rows / (source.rows + target.rows)
    if source.device.type != "cpu" or rows < _LEAST_ROWS or not prefers_bfloat16():
        return [single]
    return [(torch.bfloat16, bfloat16_error(source, target)), single]


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
        keys: Those of one row come in the order of their candidates' indices. *Shape:* ``(keys,)``
        k: Keys of a row in the result.
        count: Number of rows.

    Returns:
        *Shape:* ``(count, k)``
    """
    # By row, then by falling cosine; a stable sort keeps equal cosines in the order of indices.
    order = torch.argsort((rows << _COSINE_BITS) - (keys >> 32), stable=True)
    ordered = rows[order]
    is_best = torch.ones_like(ordered, dtype=torch.bool)
    is_best[k:] = ordered[k:] != ordered[:-k]
    order = order[is_best]
    ordered = ordered[is_best]
    rank = torch.arange(len(ordered), device=rows.device) - torch.searchsorted(ordered, ordered)
    table = torch.full((count, k), NO_CANDIDATE, device=rows.device)
    table[ordered, rank] = keys[order]
    return table


def merge_keys(keys: Tensor, others: Tensor) -> None:
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
    k = keys.shape[1]
    partners = indices_of(others)  # rows of this corpus
    merged = torch.empty_like(keys)
    for start in range(0, len(keys), _MERGED_AT_ONCE):
        block = keys[start : start + _MERGED_AT_ONCE]
        is_in_block = (partners >= start) & (partners < start + len(block))
        other_rows, ranks = is_in_block.nonzero(as_tuple=True)
        pair_keys = pack_keys(cosines_of(others[other_rows, ranks]), other_rows)
        table = best_of_rows(partners[other_rows, ranks] - start, pair_keys, k, len(block))
        merged[start : start + len(block)] = distinct_best(torch.cat([block, table], dim=1), k)
    return merged
