"""The search itself: one pass over blocks of float32 products, serving rows and columns at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.mining.blocks import Blocks, padded
from st_xling.mining.search_state import SearchState
from st_xling.mining.shortlist import Shortlist
from st_xling.mining.side import Side, filter_error


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
        int64, see :mod:`st_xling.mining.keys`. *Shapes:* ``(sources, k)``, ``(targets, k)``
    """
    error = filter_error(source.dim)
    columns = Shortlist(target, source, k=k, error=error, first=0, rows=target.rows)
    if state.done:
        columns.restore(state.target_keys.to(target.device))
    bar = tqdm(total=source.rows, initial=state.done, unit="row", desc="search", disable=not progress)
    work = _Workspace(source, target, blocks, k)
    with torch.inference_mode(), _full_precision(), bar:
        for start in range(state.done, source.rows, blocks.rows):
            stop = min(start + blocks.rows, source.rows)
            rows = Shortlist(source, target, k=k, error=error, first=start, rows=stop - start)
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
        rows, columns = padded(blocks.rows, k)[1], padded(blocks.columns, k)[1]
        device = source.device
        self._rows = torch.empty((rows, source.dim), dtype=torch.float32, device=device)
        self._columns = torch.empty((columns, source.dim), dtype=torch.float32, device=device)
        self._products = torch.empty(rows * columns, dtype=torch.float32, device=device)
        self._span = range(0)

    def load_rows(self, start: int, stop: int) -> None:
        self._span = range(start, stop)
        self._row_groups, self._n_rows = padded(stop - start, self.k)
        self.source.unit(start, stop, self._rows[: self._n_rows])

    def compare(self, rows: Shortlist, columns: Shortlist, start: int, stop: int) -> None:
        """Offer the products of the loaded rows and columns ``start:stop`` to both sides."""
        column_groups, n_columns = padded(stop - start, self.k)
        self.target.unit(start, stop, self._columns[:n_columns])
        flat = self._products[: self._n_rows * n_columns]
        block = flat.view(self._n_rows, n_columns)
        torch.mm(self._rows[: self._n_rows], self._columns[:n_columns].T, out=block)
        n, m = len(self._span), stop - start
        block[n:] = -torch.inf
        block[:, m:] = -torch.inf
        peaks = block.view(self._n_rows, -1, column_groups).amax(dim=1)[:n]
        rows.offer(flat, peaks, (n_columns, 1), self._span.start, range(start, stop))
        peaks = block.view(-1, self._row_groups, n_columns).amax(dim=0)[:, :m].T.contiguous()
        columns.offer(flat, peaks, (1, n_columns), start, self._span)


@contextmanager
def _full_precision() -> Iterator[None]:
    """Switch off TF32 and bfloat16 inside float32 products: the error bound counts on float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
