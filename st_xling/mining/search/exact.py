"""Find the exact k nearest neighbors of two corpora in each other, in one pass over blocks of their products.

Every product is computed once and serves its row and its column. A block is multiplied in low precision, and most
products fall below what the best candidates of their row and column are known to reach, by more than their error. The
cosines of the others are computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.options import check_neighbors
from st_xling.mining.search.corpus_matrix import (
    MAX_ROWS,
    NO_CANDIDATE,
    CorpusMatrix,
    best_of_rows,
    cosines_of,
    indices_of,
    merge_keys,
    output_rounding,
    pack_keys,
    pair_cosines,
    precisions,
)
from st_xling.utils.cosines import Embeddings, check_shapes
from st_xling.utils.terminal import progress_bar

# Beyond these, larger blocks gain nothing: a processor's cache is full, a GPU is busy.
_LARGEST = {"cpu": (4096, 4096), "cuda": (16384, 16384)}

# Groups that each row's products are parted into, per neighbor requested; their maxima prune the others.
_GROUPS_PER_NEIGHBOR = 64

# Products of a block that cost as much as the cosine of one pair.
_PAIRS_PER_CANDIDATE = 64

# Cosines of a block with too many candidates that are computed at a time.
_COSINES_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The ``k`` best matches of each sentence in the other corpus, best first, the lowest index first among equals.

    Attributes:
        similarities: Cosines, float32. *Shape:* ``(n, k)``
        indices: Rows of the other corpus, int64. *Shape:* ``(n, k)``
        corpus_means: Mean cosines of the neighbors in a larger corpus, if these here are only the best of a part of it;
            see :mod:`st_xling.mining.first_stage`. float64. *Shape:* ``(n,)``
    """

    similarities: np.ndarray
    indices: np.ndarray
    corpus_means: np.ndarray | None = None

    @classmethod
    def from_keys(cls, keys: Tensor) -> Neighbors:
        """Unpack the candidates of :mod:`st_xling.mining.search.corpus_matrix`. *Shape:* ``(n, k)``"""
        return cls(cosines_of(keys).numpy(), indices_of(keys).numpy())

    @property
    def means(self) -> np.ndarray:
        """Mean cosine of each sentence's neighbors, float64. *Shape:* ``(n,)``"""
        if self.corpus_means is not None:
            return self.corpus_means
        return self.similarities.mean(axis=1, dtype=np.float64)


def check_k(k: int, sources: int, targets: int, kind: str = "") -> None:
    """Raise unless both corpora have ``k`` sentences, of a ``kind`` such as ``"distinct "``."""
    check_neighbors(k)
    if k > min(sources, targets):
        raise ValueError(
            f"k must be smaller than the corpus, or equal to it, on both sides: got k={k} for {sources} {kind}source "
            f"and {targets} {kind}target sentences; lower k or mine more text."
        )


def corpus_matrices(
    source_embeddings: Embeddings, target_embeddings: Embeddings, k: int, device: str | torch.device = "cpu"
) -> tuple[CorpusMatrix, CorpusMatrix]:
    """Check the embeddings of both corpora, and that both have ``k`` rows."""
    source, target = check_shapes(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
    check_k(k, source.shape[0], target.shape[0])
    device = torch.device(device)
    return CorpusMatrix(source, "source_embeddings", device), CorpusMatrix(target, "target_embeddings", device)


def exact_neighbors(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> tuple[Neighbors, Neighbors]:
    """Search all rows exactly; see :func:`~st_xling.mining.find_neighbors` for arguments, results and errors.

    Rounded products, each computed once for its row and its column, only decide which pairs are compared: in bfloat16
    if the CPU is faster in it, then in float32. These pairs are compared by the cosines of
    :mod:`st_xling.utils.cosines`, in float64, and by index among equals.

    Beyond the inputs, a search takes ``memory_mib``, and ``16 * k + 8`` bytes per row of either corpus.
    """
    source, target = corpus_matrices(source_embeddings, target_embeddings, k, device)
    forward, backward = _search(source, target, k=k, memory_mib=memory_mib, progress=progress)
    return Neighbors.from_keys(forward), Neighbors.from_keys(backward)


def exact_rows(queries: CorpusMatrix, corpus: CorpusMatrix, rows: np.ndarray, *, k: int, memory_mib: int) -> Tensor:
    """Search some rows of the queries only, among all rows of the corpus: to complete a search, or to measure it.

    Returns:
        On the CPU. *Shape:* ``(rows, k)``
    """
    if not len(rows):
        return torch.empty((0, k), dtype=torch.int64)
    indices: Any = rows
    if isinstance(queries.embeddings, Tensor):
        indices = torch.from_numpy(rows).to(queries.embeddings.device)
    selected = CorpusMatrix(queries.embeddings[indices], "rows", queries.device)
    keys, _ = _search(selected, corpus, k=k, memory_mib=memory_mib, both_ways=False)
    return keys


def nearest_rows(
    queries: Embeddings,
    store: Embeddings,
    *,
    k: int,
    memory_mib: int = 256,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Neighbors:
    """Find the ``k`` rows of the store nearest to each query by exact cosine, lowest row first among equals.

    Beyond the queries this takes ``memory_mib`` and 8 bytes per row of the store, which may be larger than the memory.

    Args:
        queries: Few, or many. *Shape:* ``(queries, dim)``
        store: *Shape:* ``(rows, dim)``
        k: At most the rows of the store.
        memory_mib: Bound on one block of products, in MiB.
        device: Where to compute.
        progress: Show a bar on stderr.

    Raises:
        ValueError: When dims differ, a matrix is empty, ``k`` is out of range, or rows are zero or not finite.
    """
    queries, store = check_shapes(queries, store, "queries", "store")
    if not 1 <= k <= store.shape[0]:
        raise ValueError(f"k must lie between 1 and the rows of the store: got k={k} for {store.shape[0]} rows.")
    query_matrix = CorpusMatrix(queries, "queries", torch.device(device))
    store_matrix = CorpusMatrix(store, "store", torch.device(device))
    keys, _ = _search(query_matrix, store_matrix, k=k, memory_mib=memory_mib, both_ways=False, progress=progress)
    return Neighbors.from_keys(keys)


def block_sizes(sources: int, targets: int, dim: int, *, memory_mib: int, device: str) -> tuple[int, int]:
    """Choose how many sources and targets to compare at a time, so that the working memory stays below a budget.

    A block of r by c takes about ``8 * r * c`` bytes for the products, their group maxima and what is selected from
    them, and ``6 * dim * (r + c)`` for the unit vectors; where all pairs are compared another ``8 * dim * (r + c)``.

    Raises:
        ValueError: When the budget does not even hold 64 by 64 sentences.
    """
    most_rows, most_columns = _LARGEST.get(device, _LARGEST["cuda"])
    rows = min(most_rows, sources)
    columns = min(most_columns, targets)
    while 8 * rows * columns + 14 * dim * (rows + columns) > memory_mib * 2**20:
        if max(rows, columns) <= 64:
            raise ValueError(
                f"memory_mib must hold blocks of 64 by 64 sentences of dim {dim}: got {memory_mib}; "
                f"allow {(8 * 64 * 64 + 14 * dim * 128) // 2**20 + 1} or more."
            )
        if columns >= rows:
            columns = -(-columns // 2)
        else:
            rows = -(-rows // 2)
    return rows, columns


def _search(
    source: CorpusMatrix,
    target: CorpusMatrix,
    *,
    k: int,
    memory_mib: int,
    both_ways: bool = True,
    progress: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the packed candidates of both corpora, or with ``both_ways=False`` of the source alone, on the CPU."""
    assert max(source.rows, target.rows) <= MAX_ROWS, "row numbers must fit 32 bits"
    target_count = target.rows if both_ways else 0
    source_keys = torch.full((source.rows, k), NO_CANDIDATE, device=source.device)
    target_keys = torch.full((target_count, k), NO_CANDIDATE, device=source.device)
    sizes = block_sizes(source.rows, target.rows, source.dim, memory_mib=memory_mib, device=source.device.type)
    products = _Products(source, target, sizes)
    bar = progress_bar(total=source.rows * target.rows, unit="pairs", desc="search", show=progress)
    with torch.inference_mode(), full_precision(), bar:
        for start in range(0, source.rows, sizes[0]):
            rows = range(start, min(start + sizes[0], source.rows))
            for first in range(0, target.rows, sizes[1]):
                columns = range(first, min(first + sizes[1], target.rows))
                keys = [source_keys[rows.start : rows.stop]]
                if both_ways:
                    keys.append(target_keys[columns.start : columns.stop])
                products.compare(rows, columns, keys)
                bar.update(len(rows) * len(columns))
    return source_keys.cpu(), target_keys.cpu()


class _Products:
    """Reused buffers for one block of products and its operands."""

    def __init__(self, source: CorpusMatrix, target: CorpusMatrix, sizes: tuple[int, int]) -> None:
        self.source = source
        self.target = target
        self.sizes = sizes
        self.precisions = precisions(source, target)
        self._buffers: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}
        self._loaded: dict[torch.dtype, range] = {}

    def compare(self, rows: range, columns: range, keys: Sequence[Tensor]) -> None:
        """Replace the keys of these rows, and of these columns if they are given, by better ones among their pairs."""
        for precision in list(self.precisions):
            dtype, error = precision
            products = self._multiply(dtype, rows, columns)
            pairs_of_sides = [_candidates(products, dim, best, error) for dim, best in zip((1, 0), keys)]
            if None not in pairs_of_sides:
                break
            if dtype != torch.float32:
                self.precisions.remove(precision)  # such text will be too much for other blocks too
                del self._buffers[dtype]
        else:
            self._compare_all(rows, columns, keys)
            return
        # Most candidates of a row are candidates of their columns too: each pair is compared once, for both.
        pairs = torch.unique(torch.cat([pairs for pairs in pairs_of_sides if pairs is not None]))
        sources = pairs // len(columns)
        targets = pairs % len(columns)
        source_rows = sources + rows.start
        target_rows = targets + columns.start
        cosines = pair_cosines(self.source, self.target, source_rows.cpu(), target_rows.cpu())
        sides = (sources, target_rows), (targets, source_rows)
        for best, (block_rows, partners) in zip(keys, sides):
            candidates = best_of_rows(block_rows, pack_keys(cosines, partners), best.shape[1], len(best))
            merge_keys(best, candidates)

    def _multiply(self, dtype: torch.dtype, rows: range, columns: range) -> Tensor:
        """Compute the products of a block."""
        if dtype not in self._buffers:
            device = self.source.device
            first, second = [torch.empty((size, self.source.dim), dtype=dtype, device=device) for size in self.sizes]
            out = torch.empty(self.sizes[0] * self.sizes[1], dtype=dtype, device=device)
            self._buffers[dtype] = first, second, out
        first, second, flat = self._buffers[dtype]
        first = first[: len(rows)]
        second = second[: len(columns)]
        if self._loaded.get(dtype) != rows:
            self.source.unit(rows.start, rows.stop, first)
            self._loaded[dtype] = rows
        self.target.unit(columns.start, columns.stop, second)
        products = flat[: len(rows) * len(columns)].view(len(rows), len(columns))
        torch.mm(first, second.T, out=products)
        return products

    def _compare_all(self, rows: range, columns: range, keys: Sequence[Tensor]) -> None:
        """Compare all pairs by float64 products, for text with too many near-equal sentences."""
        candidates = self.target.unit_rows(torch.arange(columns.start, columns.stop)).T
        partners = torch.arange(columns.start, columns.stop, device=candidates.device)
        step = max(1, _COSINES_AT_ONCE // len(columns))
        for start in range(rows.start, rows.stop, step):
            block_rows = torch.arange(start, min(start + step, rows.stop))
            cosines = self.source.unit_rows(block_rows) @ candidates
            best = keys[0][start - rows.start :][: len(block_rows)], *keys[1:]
            partners_of_sides = partners, block_rows.to(cosines.device)
            for side_keys, side_cosines, side_partners in zip(best, (cosines, cosines.T), partners_of_sides):
                count = min(side_keys.shape[1], len(side_partners))
                merge_keys(side_keys, pack_keys(side_cosines, side_partners).topk(count, dim=1).values)


def _candidates(products: Tensor, dim: int, keys: Tensor, error: float) -> Tensor | None:
    """Find pairs of a block whose product along ``dim`` may be among the best; ``None`` if comparing all is cheaper.

    Write :math:`s` for the cosine of a pair, :math:`a` for its product and :math:`e` for its largest error, so
    that :math:`|a - s| \\le e`. When ``k`` different candidates of a row are known to reach :math:`b`, one with
    :math:`a < b - e` has :math:`s < b` and cannot be among the best ``k``. Known are the cosines found before, and
    less exactly the largest products of groups of the block. Most groups have none above ``b - e`` and are skipped.

    Args:
        products: float32 or bfloat16. *Shape:* ``(sources, targets)``
        dim: 1 for the targets of each source, 0 for the sources of each target.
        keys: The best so far. *Shape:* ``(rows, k)``
        error: Largest error of the products before they were rounded to their type: proven for float32, estimated for
            bfloat16.

    Returns:
        Places of the pairs in the block, read row by row. *Shape:* ``(pairs,)``
    """
    k = keys.shape[1]
    dtype = products.dtype
    columns = products.shape[1]
    size = products.shape[dim]
    groups = min(_GROUPS_PER_NEIGHBOR * k, size)
    grouped = size // groups * groups  # candidates in groups of equal size; the others are looked at one by one
    maxima = _group_maxima(products.narrow(dim, 0, grouped).unflatten(dim, (-1, groups)), dim)
    if dim == 0:
        products = products.T
        maxima = maxima.T.contiguous()
    largest = maxima.topk(min(k, groups), dim=1).values
    reached = torch.cat([cosines_of(keys), largest - error - output_rounding(largest, dtype)], dim=1)
    floor = reached.topk(k, dim=1).values[:, -1:]
    floor = floor - error - output_rounding(floor, dtype)
    most = max(products.numel() // _PAIRS_PER_CANDIDATE, 2 * k * sum(products.shape))
    # No maximum of a group without positive products is known in bfloat16, see _group_maxima.
    group_floor = floor.masked_fill(floor <= 0, -math.inf) if dtype == torch.bfloat16 else floor
    row, group = (maxima >= group_floor).nonzero(as_tuple=True)
    if len(row) * (grouped // groups) > max(products.numel() // 4, most):
        return None
    members = products[:, :grouped].unflatten(1, (-1, groups))[row, :, group]
    member_row, member = (members >= floor[row]).nonzero(as_tuple=True)
    ungrouped_row, ungrouped = (products[:, grouped:] >= floor).nonzero(as_tuple=True)
    if len(member_row) + len(ungrouped) > most:
        return None
    rows = torch.cat([row[member_row], ungrouped_row])
    candidates = torch.cat([member * groups + group[member_row], ungrouped + grouped])
    return rows * columns + candidates if dim == 1 else candidates * columns + rows


def _group_maxima(groups: Tensor, dim: int) -> Tensor:
    """Return the largest product of each group, in float32; of a group of negative products, any of them.

    PyTorch compares 16-bit integers three times as fast as bfloat16. Those with the bits of positive numbers have their
    order, above all negative ones.
    """
    if groups.dtype == torch.bfloat16:
        return groups.view(torch.int16).amax(dim=dim).view(torch.bfloat16).float()
    return groups.amax(dim=dim)


@contextmanager
def full_precision() -> Iterator[None]:
    """Switch off TF32 and bfloat16 inside float32 products: the error bound counts on float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
