"""A search that compares each row with those in near cells, by one product of matrices for each cell."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.mining.approximate.cell_shortlist import CellShortlist
from st_xling.mining.approximate.cells import Cells, by_cell
from st_xling.mining.search.precision import Precision, precisions
from st_xling.mining.search.search import full_precision
from st_xling.mining.search.side import Side

# Each row's nearest cells are compared in turns: the first gives bounds that most products of the others stay below.
_TURNS = (0, 1)

# Rows and members in one product: as many keep it in a processor's cache while both sides look at it.
_EDGE = 1024


def search_cells(
    source: Side,
    target: Side,
    *,
    k: int,
    cells: tuple[Cells, Cells],
    probes: int,
    memory_mib: int,
    progress: bool,
) -> tuple[Tensor, Tensor]:
    """Keys of the ``k`` best of each row on either side among the pairs that are compared.

    Those are the pairs of which either row is in one of the other's ``probes`` nearest cells. Every product serves
    both of its rows.

    Args:
        source: One side.
        target: The other.
        k: Neighbours.
        cells: How the source and the target side are parted.
        probes: Cells of the other side that each row is compared with.
        memory_mib: Bound on the working memory, in MiB.
        progress: Show a bar on stderr.
    Returns:
        int64, see :mod:`st_xling.mining.search.keys`; ``NOTHING`` where a row was compared with fewer than ``k``.
        *Shapes:* ``(sources, k)``, ``(targets, k)``
    """
    tried = precisions(source, target)
    lists = (CellShortlist(source, target, k=k), CellShortlist(target, source, k=k))
    bar = tqdm(total=source.rows + target.rows, unit="row", desc="search", disable=not progress)
    with torch.inference_mode(), full_precision(), bar:
        for own, other, homes in ((lists[0], lists[1], cells[1]), (lists[1], lists[0], cells[0])):
            work = _Pass(own, other, homes, probes, tried, memory_mib)
            for start in range(0, own.own.rows, work.rows_at_once):
                stop = min(start + work.rows_at_once, own.own.rows)
                work.compare(start, stop)
                bar.update(stop - start)
        for shortlist in lists:
            shortlist.settle()
    return lists[0].keys.cpu(), lists[1].keys.cpu()


class _Pass:
    """Rows of one side, some at a time, compared with the members of near cells on the other.

    Args:
        own: Shortlist of the rows.
        other: Shortlist of the members.
        cells: Of the members.
        probes: Cells that each row is compared with.
        tried: How to multiply, the first first.
        memory_mib: Bound on the working memory, in MiB.
    """

    def __init__(
        self,
        own: CellShortlist,
        other: CellShortlist,
        cells: Cells,
        probes: int,
        tried: Sequence[Precision],
        memory_mib: int,
    ) -> None:
        self.own, self.other, self.cells, self.probes, self.tried = own, other, cells, probes, tried
        side = own.own
        # A quarter for products and what is picked from them, the rest for rows, their cells and the sorting of these.
        budget = memory_mib * 2**18
        self._edge = max(64, min(_EDGE, int((budget / 8) ** 0.5)))
        self.rows_at_once = min(side.rows, max(1024, 3 * budget // (4 * side.dim + 32 * probes)))
        self._vectors = torch.empty((self.rows_at_once, side.dim), device=side.device)
        self._picked = torch.empty((self._edge, side.dim), device=side.device)
        self._products = torch.empty(self._edge**2, device=side.device)

    def compare(self, start: int, stop: int) -> None:
        """Compare rows ``start:stop``."""
        self.own.own.unit(start, stop, self._vectors)
        nearest = self.cells.nearest(self._vectors[: stop - start], self.probes)
        for first, last in zip(_TURNS, (*_TURNS[1:], self.probes)):
            turn = nearest[:, first:last]
            places = by_cell(turn.flatten(), len(self.cells))
            for members, here in zip(self.cells.members, places):
                if len(members) and len(here):
                    self._compare(here // turn.shape[1], start, members)
            self.own.settle()

    def _compare(self, places: Tensor, start: int, members: Tensor) -> None:
        places = places.to(self._vectors.device)
        for others in members.split(self._edge):
            candidates = self.other.own.unit_rows(others).T
            others = others.to(places.device)
            for some in places.split(self._edge):
                picked = torch.index_select(self._vectors, 0, some, out=self._picked[: len(some)])
                self._offer(picked, candidates, some + start, others)

    def _offer(self, picked: Tensor, candidates: Tensor, rows: Tensor, others: Tensor) -> None:
        """Offer the products of rows and members to both sides, in float32 where rounder ones tell too few apart."""
        block = self._products[: len(rows) * len(others)].view(len(rows), -1)
        own_takes = other_takes = False
        for precision in self.tried:
            if precision.dtype == torch.float32:
                torch.mm(picked, candidates, out=block)
            else:
                block.copy_(picked.to(precision.dtype) @ candidates.to(precision.dtype))
            own_takes = own_takes or self.own.offer_pairs(rows, others, block, precision)
            other_takes = other_takes or self.other.offer_pairs(others, rows, block, precision, dim=1)
            if own_takes and other_takes:
                return
        if not own_takes:
            self.own.settle_all(rows, others)
        if not other_takes:
            self.other.settle_all(others, rows)
