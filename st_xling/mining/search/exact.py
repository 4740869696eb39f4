"""Exact k nearest neighbours of two corpora in each other, from one pass over blocks of their products.

Every product is computed once and serves its row and its column. A block is multiplied, parted into groups, and the
maxima of the groups are compared with what each row's best candidates are known to reach: most groups fall below it
and are never looked at again. What is left is scored exactly, see :class:`~st_xling.mining.search.top_k.TopK`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.corpus_matrix import CorpusMatrix, precisions
from st_xling.mining.search.search_state import SearchState
from st_xling.mining.search.top_k import MAX_ROWS, TopK, cosines_of, indices_of
from st_xling.utils.console import progress_bar
from st_xling.utils.cosines import Embeddings, check_shapes

# Beyond these, larger blocks gain nothing: a processor's cache is full, a GPU is busy.
_LARGEST = {"cpu": (4096, 2048), "cuda": (16384, 16384)}

# Groups that each row's products are parted into, per neighbour requested; their maxima prune the others.
_GROUPS_PER_NEIGHBOUR = 64

# Rows of a corpus that nearest_rows searches at a time.
_CORPUS_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The ``k`` best matches of each sentence in the other corpus, best first, the lowest index first among equals.

    Attributes:
        similarities: Cosines, float32. *Shape:* ``(n, k)``
        indices: Rows of the other corpus, int64. *Shape:* ``(n, k)``
    """

    similarities: np.ndarray
    indices: np.ndarray

    @classmethod
    def from_keys(cls, keys: Tensor) -> Neighbours:
        """From the packed candidates of :mod:`st_xling.mining.search.top_k`, whose memory becomes that of the indices.

        *Shape:* ``(n, k)``
        """
        similarities, indices = np.empty(keys.shape, dtype=np.float32), keys.numpy()
        for start in range(0, len(keys), _CORPUS_ROWS):
            block = slice(start, start + _CORPUS_ROWS)
            similarities[block], indices[block] = cosines_of(keys[block]).numpy(), indices_of(keys[block]).numpy()
        return cls(similarities, indices)

    @property
    def means(self) -> np.ndarray:
        """Mean cosine of each sentence's neighbours, float64. *Shape:* ``(n,)``"""
        return self.similarities.mean(axis=1, dtype=np.float64)


def check_k(k: int, sources: int, targets: int, kind: str = "") -> None:
    """Raise unless both corpora have ``k`` sentences, of a ``kind`` such as ``"distinct "``."""
    if k < 1:
        raise ValueError(f"k must be at least 1: got k={k}; 4 is the usual choice.")
    if k > min(sources, targets):
        raise ValueError(
            f"k must be smaller than the corpus, or equal to it, on both sides: got k={k} for {sources} {kind}source "
            f"and {targets} {kind}target sentences; lower k or mine more text."
        )


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
    ``memory_mib``, ``12 * k`` bytes per target, ``8 * k`` per source, and 32 per row of either corpus.

    Args:
        source_embeddings: numpy or torch, any float dtype, normalised or not. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours of each sentence.
        device: Where to compute, such as ``"cuda"``; embeddings may lie elsewhere.
        memory_mib: Bound on the memory of one block, in MiB, on ``device``.
        block_rows: Sources compared at a time, instead of what ``memory_mib`` allows.
        block_columns: Targets compared at a time.
        progress: Show a bar on stderr.
        state_folder: Save what has been found there from time to time, and resume from what is saved there.
        save_seconds: Least time between two saves.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: When ``k`` exceeds either corpus, dims differ, a corpus is empty, rows are zero or not finite, or
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
    check_k(k, sources, targets)
    if min(1 if size is None else size for size in (block_rows, block_columns)) < 1:
        raise ValueError(
            f"blocks must be at least 1 by 1: got block_rows={block_rows} and block_columns={block_columns}; "
            "leave them out for the defaults."
        )
    assert max(sources, targets) <= MAX_ROWS, "row numbers must fit 32 bits"
    device = torch.device(device)
    blocks = block_sizes(sources, targets, dim, memory_mib=memory_mib, device=device.type)
    blocks = Blocks(min(block_rows or blocks.rows, sources), min(block_columns or blocks.columns, targets))
    source = CorpusMatrix(source_embeddings, "source_embeddings", device)
    target = CorpusMatrix(target_embeddings, "target_embeddings", device)
    folder = None if state_folder is None else Path(state_folder)
    state = SearchState(source, target, k=k, folder=folder, save_seconds=save_seconds)
    forward, backward = _search(source, target, k=k, blocks=blocks, state=state, progress=progress)
    return Neighbours.from_keys(forward), Neighbours.from_keys(backward)


def exact_rows(
    own: CorpusMatrix, other: CorpusMatrix, rows: np.ndarray, *, k: int, memory_mib: int, progress: bool = False
) -> Tensor:
    """Packed candidates of some rows only, among all rows of ``other``: to complete a search, or to measure it.

    Returns:
        On the CPU. *Shape:* ``(rows, k)``
    """
    if not len(rows):
        return torch.empty((0, k), dtype=torch.int64)
    at = torch.from_numpy(rows).to(own.embeddings.device) if isinstance(own.embeddings, Tensor) else rows
    selected = CorpusMatrix(own.embeddings[at], "rows", own.device)
    blocks = block_sizes(len(rows), other.rows, own.dim, memory_mib=memory_mib, device=own.device.type)
    state = SearchState(selected, other, k=k, folder=None, save_seconds=0.0)
    return _search(selected, other, k=k, blocks=blocks, state=state, progress=progress)[0]


def nearest_rows(
    queries: Embeddings,
    store: Embeddings,
    *,
    k: int,
    memory_mib: int = 256,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Neighbours:
    """The ``k`` rows of the store nearest to each query by exact cosine, lowest row first among equals.

    Beyond the queries and one block of the store, which may be larger than the memory, this takes ``memory_mib`` and
    about ``12 * k`` bytes for each of 65,536 rows.

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
    rows = int(store.shape[0])
    if not 1 <= k <= rows:
        raise ValueError(f"k must lie between 1 and the rows of the store: got k={k} for {rows} rows.")
    own = CorpusMatrix(queries, "queries", torch.device(device))
    every = np.arange(own.rows)
    cosines: np.ndarray = np.empty((own.rows, 0), dtype=np.float32)
    indices: np.ndarray = np.empty((own.rows, 0), dtype=np.int64)
    for start in progress_bar(range(0, rows, _CORPUS_ROWS), desc="search", unit="blocks", show=progress):
        part = CorpusMatrix(store[start : start + _CORPUS_ROWS], f"store (from row {start})", own.device)
        of_part = Neighbours.from_keys(exact_rows(own, part, every, k=min(k, part.rows), memory_mib=memory_mib))
        cosines = np.concatenate([cosines, of_part.similarities], axis=1)
        indices = np.concatenate([indices, of_part.indices + start], axis=1)
        # Those found before have lower rows and come first: a stable sort leaves them there.
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        cosines, indices = (np.take_along_axis(best, order, axis=1) for best in (cosines, indices))
    return Neighbours(cosines, indices)


class Blocks(NamedTuple):
    """Sources and targets compared at a time."""

    rows: int
    columns: int


def block_sizes(sources: int, targets: int, dim: int, *, memory_mib: int, device: str) -> Blocks:
    """Blocks whose working memory stays below a budget.

    A block of r by c takes about ``8 * r * c`` bytes for the products, their group maxima and what is selected from
    them, and ``6 * dim * (r + c)`` for the unit vectors; one that overflows another ``8 * dim * (r + c)``.

    Raises:
        ValueError: When the budget does not even hold 64 by 64 sentences.
    """
    rows, columns = _LARGEST.get(device, _LARGEST["cuda"])
    rows, columns = min(rows, sources), min(columns, targets)
    while 8 * rows * columns + 14 * dim * (rows + columns) > memory_mib * 2**20:
        if max(rows, columns) <= 64:
            raise ValueError(
                f"memory_mib must hold blocks of 64 by 64 sentences of dim {dim}: got {memory_mib}; "
                f"allow {(8 * 64 * 64 + 14 * dim * 128) // 2**20 + 1} or more."
            )
        rows, columns = (rows, -(-columns // 2)) if columns >= rows else (-(-rows // 2), columns)
    return Blocks(rows, columns)


def _search(
    source: CorpusMatrix, target: CorpusMatrix, *, k: int, blocks: Blocks, state: SearchState, progress: bool
) -> tuple[Tensor, Tensor]:
    """Packed candidates of both corpora: rows are finished block by block, columns at the end."""
    columns = TopK(target, source, k=k, first=0, rows=target.rows)
    if state.done:
        columns.restore(state.target_keys.to(target.device))
    bar = progress_bar(total=source.rows, initial=state.done, unit="rows", desc="search", show=progress)
    products = _Products(source, target, blocks, k)
    with torch.inference_mode(), full_precision(), bar:
        for start in range(state.done, source.rows, blocks.rows):
            stop = min(start + blocks.rows, source.rows)
            rows = TopK(source, target, k=k, first=start, rows=stop - start)
            products.load_rows(start, stop)
            for column in range(0, target.rows, blocks.columns):
                products.compare(rows, columns, column, min(column + blocks.columns, target.rows))
            rows.finalize()
            bar.update(stop - start)
            state.source_keys[start:stop] = rows.keys.cpu()
            if stop == source.rows or state.is_due():
                columns.finalize()  # a saved state holds exact candidates only, free of how blocks were cut
                state.save(stop, columns.keys.cpu())
    return state.source_keys, state.target_keys


class _Products:
    """Buffers for one block of products and its operands, used again and again."""

    def __init__(self, source: CorpusMatrix, target: CorpusMatrix, blocks: Blocks, k: int) -> None:
        self.source, self.target, self.k = source, target, k
        self.precisions = precisions(source, target, k)
        self._most = self._padded(blocks.rows)[1], self._padded(blocks.columns)[1]
        self._products = torch.empty(self._most[0] * self._most[1], dtype=torch.float32, device=source.device)
        self._buffers: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}
        self._loaded: set[torch.dtype] = set()
        self._span = range(0)

    def _padded(self, size: int) -> tuple[int, int]:
        """Groups that ``size`` candidates are parted into, and the next size that they divide."""
        groups = min(_GROUPS_PER_NEIGHBOUR * self.k, size)
        return groups, -(-size // groups) * groups

    def load_rows(self, start: int, stop: int) -> None:
        """Choose the rows of the next blocks; they are read when they are needed."""
        self._span = range(start, stop)
        self._row_groups, self._n_rows = self._padded(stop - start)
        self._loaded.clear()

    def compare(self, rows: TopK, columns: TopK, start: int, stop: int) -> None:
        """Offer the products of the loaded rows and columns ``start:stop`` to both."""
        span = range(start, stop)
        column_groups, n_columns = self._padded(len(span))
        pending = [rows, columns]
        for precision in list(self.precisions):
            flat = self._multiply(precision.dtype, start, stop, n_columns)
            block = flat.view(self._n_rows, n_columns)
            n, m = len(self._span), len(span)
            block[n:] = -torch.inf
            block[:, m:] = -torch.inf
            if rows in pending:
                maxima = block.view(self._n_rows, -1, column_groups).amax(dim=1)[:n]
                if rows.offer(flat, maxima, (n_columns, 1), self._span.start, span, precision):
                    pending.remove(rows)
            if columns in pending:
                maxima = block.view(-1, self._row_groups, n_columns).amax(dim=0)[:, :m].T.contiguous()
                if columns.offer(flat, maxima, (1, n_columns), start, self._span, precision):
                    pending.remove(columns)
            if not pending:
                return
            if precision is not self.precisions[-1]:
                self.precisions.remove(precision)  # such text will overflow other blocks too
        if rows in pending:
            rows.score_block(self._span, span)
        if columns in pending:
            columns.score_block(span, self._span)

    def _multiply(self, dtype: torch.dtype, start: int, stop: int, n_columns: int) -> Tensor:
        """Products of a block, flattened, in float32."""
        if dtype not in self._buffers:
            shapes = [(most, self.source.dim) for most in self._most]
            out = self._products if dtype == torch.float32 else torch.empty_like(self._products, dtype=dtype)
            first, second = (torch.empty(shape, dtype=dtype, device=self.source.device) for shape in shapes)
            self._buffers[dtype] = first, second, out
        first, second, out = self._buffers[dtype]
        if dtype not in self._loaded:
            self.source.unit(self._span.start, self._span.stop, first[: self._n_rows])
            self._loaded.add(dtype)
        self.target.unit(start, stop, second[:n_columns])
        area = self._n_rows * n_columns
        torch.mm(first[: self._n_rows], second[:n_columns].T, out=out[:area].view(self._n_rows, n_columns))
        flat = self._products[:area]
        return flat if out is self._products else flat.copy_(out[:area])


@contextmanager
def full_precision() -> Iterator[None]:
    """Switch off TF32 and bfloat16 inside float32 products: the error bound counts on float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
