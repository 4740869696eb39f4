"""The best ``k`` of each row among the pairs that were looked at, in whatever order and however often."""

from __future__ import annotations

import torch
from torch import Tensor

from st_xling.mining.search.keys import NOTHING, cosines_of, indices_of, to_keys
from st_xling.mining.search.precision import Precision
from st_xling.mining.search.shortlist import Shortlist
from st_xling.mining.search.side import Side, on_scale


class CellShortlist(Shortlist):
    """A :class:`~st_xling.mining.search.shortlist.Shortlist` that takes rows and candidates from anywhere.

    What it ends with is exact among the pairs it was offered, ties by index included: products only decide what is
    worth an exact look. A pair may be offered twice, once from either side, and counts once.
    """

    def __init__(self, own: Side, other: Side, *, k: int) -> None:
        super().__init__(own, other, k=k, first=0, rows=own.rows)

    def offer_pairs(self, rows: Tensor, others: Tensor, block: Tensor, precision: Precision, *, dim: int = 0) -> bool:
        """Take from a block of products what may be among the best; nothing, and say so, if that would be too much.

        Args:
            rows: Different own rows, int64. *Shape:* ``(n,)``
            others: Different candidates, int64. *Shape:* ``(m,)``
            block: Products in float32. *Shape:* ``(n, m)``, or ``(m, n)`` for ``dim=1``
            precision: What they are worth.
            dim: Where the own rows are.
        Returns:
            Whether they were taken: not from a crowded block.
        """
        if len(others) >= self.k:
            self._bound(rows, block, precision.error, dim)
        floor = (self.bounds[rows, -1] - precision.error).clamp_(min=torch.finfo(torch.float32).min)
        worth = _places(block >= floor.unsqueeze(1 - dim))
        if not len(worth):
            return True
        if len(worth) > max(block.numel() // precision.crowd, 64 * self.k + 4096, 4 * self.k * len(rows)):
            return False
        first, second = worth // block.shape[1], worth % block.shape[1]
        row, other = (first, second) if dim == 0 else (second, first)
        self._rounded |= precision.dtype != torch.float32
        self._wait(rows[row], others[other], block[first, second] + precision.error)
        return True

    def _bound(self, rows: Tensor, block: Tensor, error: float, dim: int) -> None:
        """Give rows without a bound that of the block's ``k`` best, different candidates; others gain too little."""
        new = torch.isinf(self.bounds[rows, -1]).nonzero().squeeze(1)
        if len(new):
            best = block.index_select(dim, new).topk(self.k, dim=1 - dim).values
            self.bounds[rows[new]] = (best.select(1 - dim, self.k - 1) - error)[:, None].expand(-1, self.k)

    def _prune(self) -> tuple[Tensor, Tensor]:
        """Waiting pairs that are still worth it, each once, by row, then by candidate."""
        rows, others, _ = self._survivors()
        pairs, order = torch.sort(rows * self.other.rows + others)
        fresh = torch.ones_like(pairs, dtype=torch.bool)
        fresh[1:] = pairs[1:] != pairs[:-1]
        order = order[fresh]
        rows, others = rows[order], others[order]
        kept = (indices_of(self.keys[rows]) != others[:, None]).all(dim=1)
        return self._tightened(rows[kept], others[kept])

    def settle_all(self, rows: Tensor, others: Tensor) -> None:
        """Exact cosines of all these pairs, for text with so many near-equal sentences that products cannot choose."""
        candidates = self.other.grid(others.cpu()).T
        step = max(1, 2**20 // len(others))
        for some in rows.split(step):
            keys = to_keys(on_scale(self.own.grid(some.cpu()) @ candidates), others)
            best = keys.topk(min(self.k, len(others)), dim=1).values
            self.keys[some] = distinct_best(torch.cat([self.keys[some], best], dim=1), self.k)
            self.bounds[some] = torch.maximum(self.bounds[some], cosines_of(self.keys[some]))


def _places(mask: Tensor) -> Tensor:
    """Places of what is true, flattened, ascending; eight at a time, as nearly nothing is."""
    mask = mask.flatten()
    whole = len(mask) // 8 * 8
    eights = mask[:whole].view(torch.int64).nonzero() * 8 + torch.arange(8, device=mask.device)
    places = torch.cat([eights.flatten(), torch.arange(whole, len(mask), device=mask.device)])
    return places[mask[places]]


def distinct_best(keys: Tensor, k: int) -> Tensor:
    """The ``k`` largest different keys of each row, then ``NOTHING``. *Shape:* ``(rows, k)``"""
    keys = keys.sort(dim=1, descending=True).values
    keys[:, 1:].masked_fill_(keys[:, 1:] == keys[:, :-1], NOTHING)
    return keys.topk(k, dim=1).values
