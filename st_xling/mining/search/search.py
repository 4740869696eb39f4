"""The search itself: one pass over blocks of products, serving rows and columns at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.mining.search.blocks import Blocks, padded
from st_xling.mining.search.precision import precisions
from st_xling.mining.search.search_state import SearchState
from st_xling.mining.search.shortlist import Shortlist
from st_xling.mining.search.side import Side


def search(
    source: Side, target: Side, *, k: int, blocks: Blocks, state: SearchState, progress: bool
) -> tuple[Tensor, Tensor]:
    """Keys of the ``k`` nearest of each row on either side; see :func:`~st_xling.mining.neighbours`.

    Args:
        source: Rows are finished block by block.
        target: Columns are finished at the end.
        k: Neighbours, at most the rows of either side.
        blocks: Rows of either side compared at a time.
        state: Where to begin, and what to tell when a block of rows is finished.
        progress: Show a bar on stderr.
    Returns:
        int64, see :mod:`st_xling.mining.search.keys`. *Shapes:* ``(sources, k)``, ``(targets, k)``
    """
    columns = Shortlist(target, source, k=k, first=0, rows=target.rows)
    if state.done:
        columns.restore(state.target_keys.to(target.device))
    bar = tqdm(total=source.rows, initial=state.done, unit="row", desc="search", disable=not progress)
    work = _Workspace(source, target, blocks, k)
    with torch.inference_mode(), full_precision(), bar:
        for start in range(state.done, source.rows, blocks.rows):
            stop = min(start + blocks.rows, source.rows)
            rows = Shortlist(source, target, k=k, first=start, rows=stop - start)
            work.load_rows(start, stop)
            for column in range(0, target.rows, blocks.columns):
                work.compare(rows, columns, column, min(column + blocks.columns, target.rows))
            rows.settle()
            bar.update(stop - start)
            state.source_keys[start:stop] = rows.keys.cpu()
            if stop == source.rows or state.is_due():
                columns.settle()
                state.finish(stop, columns.keys.cpu())
    return state.source_keys, state.target_keys


class _Workspace:
    """Buffers for one block of products and its operands, used again and again."""

    def __init__(self, source: Side, target: Side, blocks: Blocks, k: int) -> None:
        self.source, self.target, self.k = source, target, k
        self.precisions = precisions(source, target)
        self._most = padded(blocks.rows, k)[1], padded(blocks.columns, k)[1]
        self._products = torch.empty(self._most[0] * self._most[1], dtype=torch.float32, device=source.device)
        self._buffers: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}
        self._loaded: set[torch.dtype] = set()
        self._span = range(0)

    def load_rows(self, start: int, stop: int) -> None:
        """Choose the rows that blocks begin with; they are read when they are needed."""
        self._span = range(start, stop)
        self._row_groups, self._n_rows = padded(stop - start, self.k)
        self._loaded.clear()

    def compare(self, rows: Shortlist, columns: Shortlist, start: int, stop: int) -> None:
        """Offer the products of the loaded rows and columns ``start:stop`` to both sides."""
        column_groups, n_columns = padded(stop - start, self.k)
        pending = [rows, columns]
        for precision in list(self.precisions):
            flat = self._multiply(precision.dtype, start, stop, n_columns)
            block = flat.view(self._n_rows, n_columns)
            n, m = len(self._span), stop - start
            block[n:] = -torch.inf
            block[:, m:] = -torch.inf
            if rows in pending:
                peaks = block.view(self._n_rows, -1, column_groups).amax(dim=1)[:n]
                if rows.offer(flat, peaks, (n_columns, 1), self._span.start, range(start, stop), precision):
                    pending.remove(rows)
            if columns in pending:
                peaks = block.view(-1, self._row_groups, n_columns).amax(dim=0)[:, :m].T.contiguous()
                if columns.offer(flat, peaks, (1, n_columns), start, self._span, precision):
                    pending.remove(columns)
            if not pending:
                return
            if precision is not self.precisions[-1]:
                self.precisions.remove(precision)  # such text will crowd other blocks too
        for shortlist in pending:
            others = range(start, stop) if shortlist is rows else self._span
            shortlist.settle_crowd(self._span if shortlist is rows else range(start, stop), others)

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
