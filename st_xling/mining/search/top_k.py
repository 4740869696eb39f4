"""The best ``k`` candidates of each row so far, exact although rounded products choose what is scored exactly.

Write :math:`s` for the exact cosine of a pair, :math:`a` for its product and :math:`e` for the bound of its
:class:`~st_xling.mining.search.corpus_matrix.Precision`, so that :math:`|a - s| \\le e`. When ``k`` different
candidates of a row are known to reach :math:`b` exactly, one with :math:`a < b - e` has :math:`s < b` and cannot be
among the best ``k``. Everything else is held back and scored exactly later. So the outcome depends on the exact cosines
alone, whatever the products' last bits.

A candidate is one int64 key, its cosine above its reversed index: a larger key is a better candidate, equal cosines are
ordered by the lower index, and no two candidates of a row have the same key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from st_xling.mining.search.corpus_matrix import CorpusMatrix, Precision, pair_cosines, product_error, to_cosines

_LOW_BITS = 2**32 - 1

#: Below the key of every candidate.
NO_CANDIDATE = -(2**63)

#: Row numbers must be smaller.
MAX_ROWS = _LOW_BITS

# Candidates that are held until their exact cosine is due; 24 bytes each.
_MOST_HELD = 2**20

# Rows whose candidates from either corpus are merged at a time.
_MERGED_AT_ONCE = 2**18

# Exact cosines of a block that overflowed, computed at a time.
_COSINES_AT_ONCE = 2**20


def pack_keys(cosines: Tensor, indices: Tensor) -> Tensor:
    """One int64 per candidate: a higher cosine is a larger key, and of equal cosines the lower index.

    Args:
        cosines: float32, without NaN or negative zeros.
        indices: Candidates' rows, int64, broadcast against ``cosines``.
    """
    bits = cosines.contiguous().view(torch.int32)
    # IEEE bits of non-negative floats order like integers; those of negative ones in reverse.
    order = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64) << 32
    return order.bitwise_or_(_LOW_BITS - indices)


def cosines_of(keys: Tensor) -> Tensor:
    """float32 cosines; minus infinity for :data:`NO_CANDIDATE`."""
    order = (keys >> 32).to(torch.int32)
    cosines = (order ^ ((order >> 31) & 0x7FFFFFFF)).view(torch.float32)
    return cosines.masked_fill_(keys == NO_CANDIDATE, -torch.inf)


def indices_of(keys: Tensor) -> Tensor:
    """Candidates' rows, int64."""
    return _LOW_BITS - (keys & _LOW_BITS)


def overflow(pairs: int, k: int) -> int:
    """Candidates that a block of so many pairs overflows with: scoring more exactly would cost more than it saves."""
    return max(pairs // 64, 64 * k + 4096)


class TopK:
    """Best candidates of the rows ``first:first + rows`` of ``own`` among the rows of ``other``.

    Args:
        own: Matrix whose rows are served.
        other: Matrix whose rows are the candidates.
        k: Candidates for each row.
        first: First row served.
        rows: Rows served.

    Attributes:
        keys: Best candidates among those scored exactly, best first. *Shape:* ``(rows, k)``
        bounds: Exact cosines that ``k`` different candidates of each row are known to reach, descending.
            *Shape:* ``(rows, k)``
    """

    def __init__(self, own: CorpusMatrix, other: CorpusMatrix, *, k: int, first: int, rows: int) -> None:
        self.own, self.other, self.k, self.first = own, other, k, first
        self.keys = torch.full((rows, k), NO_CANDIDATE, dtype=torch.int64, device=own.device)
        self.bounds = torch.full((rows, k), -torch.inf, dtype=torch.float32, device=own.device)
        self._held: list[tuple[Tensor, Tensor, Tensor]] = []
        self._n_held = 0
        self._rounded = False  # whether any of them came by products of less than float32

    def restore(self, keys: Tensor) -> None:
        """Resume from the ``keys`` of a search in which nothing was held back."""
        self.keys.copy_(keys)
        self.bounds = cosines_of(self.keys)

    def offer(
        self, block: Tensor, maxima: Tensor, strides: tuple[int, int], start: int, others: range, precision: Precision
    ) -> bool:
        """Take from a block of products what may be among the best; nothing, and say so, if that would be too much.

        Args:
            block: Products in float32, flattened; minus infinity where a padded row or column stands.
            maxima: Largest product of each of ``groups`` groups of a row's products; member ``p`` of group ``q`` stands
                at place ``p * groups + q``. *Shape:* ``(rows of the block, groups)``
            strides: Distance in ``block`` from one own row to the next, and from one candidate to the next.
            start: Own row of the block's first.
            others: The candidates' rows.
            precision: What the products are worth.
        Returns:
            Whether they were taken: not from a block that overflows.
        """
        here = slice(start - self.first, start - self.first + len(maxima))
        before = self.bounds[here].clone()
        floor = self._raise_bounds(here, maxima, precision.error)
        # Few groups have a maximum above the floor: only their members are looked at one by one.
        rows, groups = (maxima >= floor[:, None]).nonzero(as_tuple=True)
        members = torch.arange(-(-len(others) // maxima.shape[1]), device=block.device) * maxima.shape[1]
        area = len(maxima) * len(others)
        most_found = overflow(area, self.k)
        if len(rows) * len(members) <= max(area // 4, most_found):
            first = rows * strides[0] + groups * strides[1]
            products = block[first[:, None] + members * strides[1]]
            found, member = (products >= floor[rows, None]).nonzero(as_tuple=True)
            if len(found) <= most_found:
                most = products[found, member] + precision.error
                self._rounded |= precision.dtype != torch.float32
                self._hold(rows[found] + here.start, others.start + groups[found] + members[member], most)
                return True
        self.bounds[here] = before  # the block comes again, and a candidate must not count twice in a bound
        return False

    def _raise_bounds(self, here: slice, maxima: Tensor, error: float) -> Tensor:
        """Count the maxima, different candidates each, among what is known. Products below the result cannot matter."""
        if maxima.shape[1] % 4 == 0 and maxima.shape[1] >= 32 * self.k:
            maxima = maxima.view(len(maxima), 4, -1).amax(dim=1)  # fewer to sort; maxima of larger groups will do
        bounds = self.bounds[here]
        higher = (maxima.amax(dim=1) - error > bounds[:, -1]).nonzero().squeeze(1)
        if 2 * len(higher) > len(bounds):
            known = torch.cat([bounds, maxima - error], dim=1)
            bounds.copy_(known.topk(self.k, dim=1).values)
        else:
            known = torch.cat([bounds[higher], maxima[higher] - error], dim=1)
            bounds[higher] = known.topk(self.k, dim=1).values
        # The lowest finite number while fewer than k are known: padding, minus infinity, never passes.
        return (bounds[:, -1] - error).clamp_(min=torch.finfo(torch.float32).min)

    def _hold(self, rows: Tensor, others: Tensor, most: Tensor) -> None:
        """Hold pairs whose cosines are at ``most`` that, until they are scored exactly or ruled out."""
        self._held.append((rows, others, most))
        self._n_held += len(rows)
        if self._n_held > _MOST_HELD:
            # Bounds have risen meanwhile; where that rules out less than half, scoring what is left raises them more.
            rows, others, most = self._survivors()
            self._held, self._n_held = [(rows, others, most)], len(rows)
            if len(rows) > _MOST_HELD // 2:
                self.finalize()

    def finalize(self) -> None:
        """Give every pair that is held its exact cosine, or drop it where other candidates are surely better."""
        if not self._held:
            return
        rows, others = self._worth_scoring()
        if self._rounded:
            # Float32 products are cheaper than exact cosines, and rule out most of what bfloat16 left.
            products = pair_cosines(self.own, self.other, (rows + self.first).cpu(), others.cpu(), exact=False)
            error = product_error(self.own.dim)
            likely = products + error >= self._bounds_among(rows, products - error)
            rows, others = rows[likely], others[likely]
        self._held, self._n_held, self._rounded = [], 0, False
        for part in range(0, len(rows), _MOST_HELD):
            self._merge(rows[part : part + _MOST_HELD], others[part : part + _MOST_HELD])
        # Only exact cosines from here on: what was counted by its product may not be counted again by its cosine.
        self.bounds = cosines_of(self.keys)

    def _survivors(self) -> tuple[Tensor, Tensor, Tensor]:
        rows, others, most = (torch.cat(parts) for parts in zip(*self._held))
        possible = most >= self.bounds[rows, -1]
        return rows[possible], others[possible], most[possible]

    def _worth_scoring(self) -> tuple[Tensor, Tensor]:
        """Pairs held that are not ruled out, by row, then by candidate."""
        rows, others, _ = self._survivors()
        order = torch.argsort(rows * self.other.rows + others)
        return rows[order], others[order]

    def _bounds_among(self, rows: Tensor, least: Tensor) -> Tensor:
        """Each pair's bound, raised by what is held for its row: different candidates with cosines of at ``least``."""
        order, rank = _ranks(rows, least)
        kth = order[rank == self.k - 1]
        bounds = self.bounds[:, -1].clone()
        bounds[rows[kth]] = torch.maximum(bounds[rows[kth]], least[kth])
        return bounds[rows]

    def _merge(self, rows: Tensor, others: Tensor) -> None:
        """Score pairs exactly and keep the best of each row."""
        keys = pack_keys(pair_cosines(self.own, self.other, (rows + self.first).cpu(), others.cpu()), others)
        order, rank = _ranks(rows, keys)
        order, rank = order[rank < self.k], rank[rank < self.k]
        served, place = torch.unique_consecutive(rows[order], return_inverse=True)
        table = torch.full((len(served), self.k), NO_CANDIDATE, dtype=torch.int64, device=rows.device)
        table[place, rank] = keys[order]
        self.keys[served] = torch.cat([self.keys[served], table], dim=1).topk(self.k, dim=1).values

    def score_block(self, own: range, others: range) -> None:
        """Exact cosines of a whole block, for text with so many near-equal sentences that products cannot choose."""
        candidates = self.other.fixed_point_rows(torch.arange(others.start, others.stop)).T
        indices = torch.arange(others.start, others.stop, device=candidates.device)
        step = max(1, _COSINES_AT_ONCE // len(others))
        for start in range(own.start, own.stop, step):
            stop = min(start + step, own.stop)
            rows = slice(start - self.first, stop - self.first)
            vectors = self.own.fixed_point_rows(torch.arange(start, stop))
            keys = pack_keys(to_cosines(vectors @ candidates), indices)
            best = keys.topk(min(self.k, len(others)), dim=1).values
            self.keys[rows] = torch.cat([self.keys[rows], best], dim=1).topk(self.k, dim=1).values
            known = torch.cat([self.bounds[rows], cosines_of(best)], dim=1)
            self.bounds[rows] = known.topk(self.k, dim=1).values


def _ranks(rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The order by row, then by descending value; and the rank of each, in that order, among those of its row."""
    order = torch.argsort(values, descending=True)
    order = order[torch.argsort(rows[order], stable=True)]
    ordered = rows[order]
    return order, torch.arange(len(ordered), device=rows.device) - torch.searchsorted(ordered, ordered)


def distinct_best(keys: Tensor, k: int) -> Tensor:
    """The ``k`` largest different keys of each row, then ``NO_CANDIDATE``. *Shape:* ``(rows, k)``"""
    keys = keys.sort(dim=1, descending=True).values
    keys[:, 1:].masked_fill_(keys[:, 1:] == keys[:, :-1], NO_CANDIDATE)
    return keys.topk(k, dim=1).values


def merge_pairs(keys: Tensor, others: Tensor) -> Tensor:
    """The best of what was found for each row and of what was found from the other corpus for the same row.

    Args:
        keys: Candidates of one corpus. *Shape:* ``(rows, k)``
        others: Those of the other corpus, which name the rows of this one. *Shape:* ``(other rows, k)``
    """
    rows, k = indices_of(others), keys.shape[1]
    merged = torch.empty_like(keys)
    for start in range(0, len(keys), _MERGED_AT_ONCE):
        part = keys[start : start + _MERGED_AT_ONCE]
        found, place = ((rows >= start) & (rows < start + len(part))).nonzero(as_tuple=True)
        here = rows[found, place] - start
        pairs = pack_keys(cosines_of(others[found, place]), found)
        order, rank = _ranks(here, pairs)
        order, rank = order[rank < k], rank[rank < k]
        table = torch.full_like(part, NO_CANDIDATE)
        table[here[order], rank] = pairs[order]
        merged[start : start + len(part)] = distinct_best(torch.cat([part, table], dim=1), k)
    return merged
