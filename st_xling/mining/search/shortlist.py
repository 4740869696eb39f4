"""The best ``k`` of each row so far, kept exact while rounded products decide what is worth an exact look.

Write :math:`s` for the exact cosine of a pair, :math:`a` for its product and :math:`e` for the bound of its
:class:`~st_xling.mining.search.precision.Precision`, so that :math:`|a - s| \\le e`. When ``k`` different candidates
of a row are known to reach :math:`b` exactly, one with :math:`a < b - e` has :math:`s < b` and cannot be among the best
``k``. Everything else waits and is re-scored exactly later. So the outcome depends on the exact cosines alone, whatever
the products' last bits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from st_xling.mining.search.keys import NOTHING, cosines_of, to_keys
from st_xling.mining.search.precision import Precision
from st_xling.mining.search.side import Side, filter_error, on_scale, pair_cosines, pair_products

# Candidates that wait for their exact cosine; 24 bytes each.
_MOST_WAITING = 2**20

# Exact cosines of a crowded block that are held at a time.
_CROWD_AT_ONCE = 2**20


class Shortlist:
    """Best candidates of ``own`` rows ``first:first + rows`` among the rows of ``other``.

    Args:
        own: The side whose rows are served.
        other: The side whose rows are the candidates.
        k: Candidates kept for each row.
        first: First row served.
        rows: Rows served.

    Attributes:
        keys: Best exact candidates among those settled, best first. *Shape:* ``(rows, k)``
        bounds: Exact cosines that ``k`` different candidates of each row are known to reach, descending.
            *Shape:* ``(rows, k)``
    """

    def __init__(self, own: Side, other: Side, *, k: int, first: int, rows: int) -> None:
        self.own, self.other, self.k, self.first = own, other, k, first
        self.keys = torch.full((rows, k), NOTHING, dtype=torch.int64, device=own.device)
        self.bounds = torch.full((rows, k), -torch.inf, dtype=torch.float32, device=own.device)
        self._waiting: list[tuple[Tensor, Tensor, Tensor]] = []
        self._n_waiting = 0
        self._rounded = False  # whether any of them came by products of less than float32

    def restore(self, keys: Tensor) -> None:
        """Go on from the ``keys`` of a settled shortlist."""
        self.keys.copy_(keys)
        self.bounds = cosines_of(self.keys)

    def offer(
        self, block: Tensor, peaks: Tensor, strides: tuple[int, int], start: int, others: range, precision: Precision
    ) -> bool:
        """Take from a block of products what may be among the best; nothing, and say so, if that would be too much.

        Args:
            block: Products in float32, flattened; minus infinity where a padded row or column stands.
            peaks: Largest product of each of ``groups`` groups of a row's products; member ``p`` of group ``q`` stands
                at place ``p * groups + q``. *Shape:* ``(rows of the block, groups)``
            strides: Distance in ``block`` from one own row to the next, and from one candidate to the next.
            start: Own row of the block's first.
            others: The candidates' rows on their side.
            precision: What the products are worth.
        Returns:
            Whether they were taken: not from a crowded block.
        """
        here = slice(start - self.first, start - self.first + len(peaks))
        before = self.bounds[here].clone()
        floor = self._raise_bounds(here, peaks, precision.error)
        rows, groups = (peaks >= floor[:, None]).nonzero(as_tuple=True)
        members = torch.arange(-(-len(others) // peaks.shape[1]), device=block.device) * peaks.shape[1]
        area = len(peaks) * len(others)
        crowded = max(area // precision.crowd, 64 * self.k + 4096)
        if len(rows) * len(members) <= max(area // 4, crowded):
            first = rows * strides[0] + groups * strides[1]
            products = block[first[:, None] + members * strides[1]]
            found, member = (products >= floor[rows, None]).nonzero(as_tuple=True)
            if len(found) <= crowded:
                most = products[found, member] + precision.error
                self._rounded |= precision.dtype != torch.float32
                self._wait(rows[found] + here.start, others.start + groups[found] + members[member], most)
                return True
        self.bounds[here] = before  # the block's products must not bound twice
        return False

    def settle(self) -> None:
        """Give every waiting candidate its exact cosine, or drop it where others are surely better."""
        if not self._waiting:
            return
        rows, others = self._prune()
        self._waiting, self._n_waiting, self._rounded = [], 0, False
        for part in range(0, len(rows), _MOST_WAITING):
            self._merge(rows[part : part + _MOST_WAITING], others[part : part + _MOST_WAITING])
        self.bounds = cosines_of(self.keys)

    def _raise_bounds(self, here: slice, peaks: Tensor, error: float) -> Tensor:
        """Count the peaks, different candidates each, among what is known. Products below the result cannot matter."""
        if peaks.shape[1] % 4 == 0 and peaks.shape[1] >= 32 * self.k:
            peaks = peaks.view(len(peaks), 4, -1).amax(dim=1)  # fewer to sort; peaks of larger groups will do
        bounds = self.bounds[here]
        higher = (peaks.amax(dim=1) - error > bounds[:, -1]).nonzero().squeeze(1)
        if 2 * len(higher) > len(bounds):
            known = torch.cat([bounds, peaks - error], dim=1)
            bounds.copy_(known.topk(self.k, dim=1).values)
        else:
            known = torch.cat([bounds[higher], peaks[higher] - error], dim=1)
            bounds[higher] = known.topk(self.k, dim=1).values
        # The lowest finite number while fewer than k are known: padding, minus infinity, never passes.
        return (bounds[:, -1] - error).clamp_(min=torch.finfo(torch.float32).min)

    def _wait(self, rows: Tensor, others: Tensor, most: Tensor) -> None:
        """Hold pairs whose cosines are at ``most`` that."""
        self._waiting.append((rows, others, most))
        self._n_waiting += len(rows)
        if self._n_waiting > _MOST_WAITING:
            rows, others, most = self._survivors()
            self._waiting, self._n_waiting = [(rows, others, most)], len(rows)
            if len(rows) > _MOST_WAITING // 2:
                self.settle()

    def _survivors(self) -> tuple[Tensor, Tensor, Tensor]:
        rows, others, most = (torch.cat(parts) for parts in zip(*self._waiting))
        kept = most >= self.bounds[rows, -1]
        return rows[kept], others[kept], most[kept]

    def _prune(self) -> tuple[Tensor, Tensor]:
        """Waiting pairs that are still worth it, by row, then by candidate."""
        rows, others, _ = self._survivors()
        order = torch.argsort(rows * self.other.rows + others)
        return self._tightened(rows[order], others[order])

    def _tightened(self, rows: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Of waiting pairs, in runs of equal rows, those that float32 products do not rule out."""
        if not self._rounded:
            return rows, others
        products = pair_products(self.own, self.other, (rows + self.first).cpu(), others.cpu())
        error = filter_error(self.own.dim)
        kept = products + error >= self._bounds_among(rows, products - error)
        return rows[kept], others[kept]

    def _bounds_among(self, rows: Tensor, least: Tensor) -> Tensor:
        """Each pair's bound, raised by what waits for its row: different candidates, whose cosines reach ``least``."""
        order = torch.argsort(least, descending=True)
        order = order[torch.argsort(rows[order], stable=True)]
        ordered = rows[order]
        rank = torch.arange(len(ordered), device=rows.device) - torch.searchsorted(ordered, ordered)
        kth = rank == self.k - 1
        bounds = self.bounds[:, -1].clone()
        bounds[ordered[kth]] = torch.maximum(bounds[ordered[kth]], least[order][kth])
        return bounds[rows]

    def _merge(self, rows: Tensor, others: Tensor) -> None:
        cosines = pair_cosines(self.own, self.other, (rows + self.first).cpu(), others.cpu())
        keys = to_keys(cosines, others)
        order = torch.argsort(keys, descending=True)
        order = order[torch.argsort(rows[order], stable=True)]
        rows, keys = rows[order], keys[order]
        rank = torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
        best = rank < self.k
        served, place = torch.unique_consecutive(rows[best], return_inverse=True)
        table = torch.full((len(served), self.k), NOTHING, dtype=torch.int64, device=rows.device)
        table[place, rank[best]] = keys[best]
        self.keys[served] = torch.cat([self.keys[served], table], dim=1).topk(self.k, dim=1).values

    def settle_crowd(self, own: range, others: range) -> None:
        """Exact cosines of a whole block, for text with so many near-equal sentences that products cannot choose."""
        here = slice(own.start - self.first, own.stop - self.first)
        candidates = self.other.grid(torch.arange(others.start, others.stop)).T
        indices = torch.arange(others.start, others.stop, device=candidates.device)
        step = max(1, _CROWD_AT_ONCE // len(others))
        for start in range(here.start, here.stop, step):
            rows = slice(start, min(start + step, here.stop))
            vectors = self.own.grid(torch.arange(rows.start, rows.stop) + self.first)
            keys = to_keys(on_scale(vectors @ candidates), indices)
            best = keys.topk(min(self.k, len(others)), dim=1).values
            self.keys[rows] = torch.cat([self.keys[rows], best], dim=1).topk(self.k, dim=1).values
            known = torch.cat([self.bounds[rows], cosines_of(best)], dim=1)
            self.bounds[rows] = known.topk(self.k, dim=1).values
