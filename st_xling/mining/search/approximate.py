"""Nearest neighbours for corpora too large to compare all with all: candidates from near cells, scored exactly.

Both corpora are parted into cells by k-means. Rows are compared with the members of their nearest cells, one product of
matrices for each cell and some rows, and :class:`~st_xling.mining.search.top_k.TopK` scores exactly what may be among
the best. So whatever is compared is ranked as an exact search would rank it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.mining.search.corpus_matrix import CorpusMatrix, Precision, precisions, to_cosines
from st_xling.mining.search.exact import Neighbours, check_k, exact_rows, full_precision
from st_xling.mining.search.top_k import NO_CANDIDATE, TopK, cosines_of, indices_of, overflow, pack_keys
from st_xling.utils.cosines import Embeddings, check_shapes

#: Sentences of both corpora that share a cell, on average: fewer cost more cells to look at, more cost products.
ROWS_PER_CELL = 600

#: Cells that each sentence is compared with.
PROBES = 40

#: Rows of each corpus that are searched exactly too.
RECALL_SAMPLE = 256

#: Vectors that cells are learnt from, per cell, and rounds of k-means: more of either barely moves the recall.
SAMPLE_PER_CELL, ROUNDS = 32, 8

# Numbers in a block of vectors, or of their similarities to cells.
_AT_ONCE = 2**22

# Each row's nearest cells are compared in turns: the first gives bounds that most products of the others stay below.
_TURNS = (0, 1)

# Rows and members in one product: as many stay in a processor's cache while both corpora look at it.
_EDGE = 1024

# Shapes of rounded products are multiples of this.
_STEP = 128


@dataclass(frozen=True, eq=False)
class ApproximateSearch:
    """What an approximate search found, and how much it may have missed.

    Attributes:
        forward: Source → target.
        backward: Target → source.
        recall: Share of the true ``k`` nearest that were found for a sample of each corpus, source first; ``None``
            where no sample was requested.
        sampled: Rows of each sample.
        completed: Rows of each corpus that were compared with fewer than ``k`` and then searched exactly.
    """

    forward: Neighbours
    backward: Neighbours
    recall: tuple[float, float] | None
    sampled: tuple[int, int]
    completed: tuple[int, int]

    def __str__(self) -> str:
        if self.recall is None:
            return "recall not measured"
        shares = (f"{share:.4f} of {rows} rows" for share, rows in zip(self.recall, self.sampled))
        return "recall of exact neighbours: source side {}, target side {}".format(*shares)


def approximate_neighbours(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    probes: int = PROBES,
    cells: int | None = None,
    recall_sample: int = RECALL_SAMPLE,
    seed: int = 0,
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> ApproximateSearch:
    """As :func:`~st_xling.mining.neighbours`, but only pairs in near cells are compared.

    Both corpora are parted into the same cells by k-means. A pair is compared when either sentence is in one of the
    other's ``probes`` nearest cells. Of what is compared the result is exact: the same cosines to the last
    bit as an exact search has, best first, the lowest index first among equals. No neighbour is missing: a row that
    was compared with fewer than ``k`` is searched exactly. One seed and number of threads always give the same result.

    Embeddings may be memory maps; beyond them a search takes ``memory_mib``, some 120 MiB of candidates that are held
    for their exact cosines, and ``12 * k + 48`` bytes per row of either corpus.

    Args:
        source_embeddings: As for an exact search. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours of each sentence.
        probes: Cells that each sentence is compared with: more find more and take longer. With all it is exact.
        cells: Cells, at most; by default one for 600 sentences of both corpora together.
        recall_sample: Rows of each corpus whose exact neighbours are searched too, to measure the recall; 0 for none.
        seed: For the cells and the sample.
        device: Where to compute; embeddings may lie elsewhere.
        memory_mib: Bound on the working memory, in MiB, on ``device``.
        progress: Show bars on stderr.
    Returns:
        Neighbours in both directions with the measured recall.
    Raises:
        ValueError: As :func:`~st_xling.mining.neighbours`, and when ``probes``, ``cells`` or ``recall_sample`` is out
            of range.
    Example:
        >>> found = approximate_neighbours(np.eye(3), np.eye(3)[[1, 2, 0]], k=1)
        >>> found.forward.indices.ravel().tolist(), found.recall
        ([2, 0, 1], (1.0, 1.0))
    """
    source_embeddings, target_embeddings = check_shapes(
        source_embeddings, target_embeddings, "source_embeddings", "target_embeddings"
    )
    check_k(k, source_embeddings.shape[0], target_embeddings.shape[0])
    for name, value, least in (("probes", probes, 1), ("cells", cells, 1), ("recall_sample", recall_sample, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}: got {value}; leave it out for the default.")
    source = CorpusMatrix(source_embeddings, "source_embeddings", torch.device(device))
    target = CorpusMatrix(target_embeddings, "target_embeddings", torch.device(device))
    cells = cells or max(1, (source.rows + target.rows) // ROWS_PER_CELL)
    parts = part_into_cells(source, target, cells=cells, seed=seed)
    options: dict[str, Any] = {"k": k, "memory_mib": memory_mib, "progress": progress}
    keys = _search_cells(source, target, cells=parts, probes=min(probes, len(parts[0].members)), **options)
    completed, recalls, sampled = [], [], []
    for number, (own, other, own_keys) in enumerate(zip((source, target), (target, source), keys)):
        lacking = (own_keys[:, -1] == NO_CANDIDATE).nonzero().squeeze(1)
        own_keys[lacking] = exact_rows(own, other, lacking.numpy(), **options)
        random = np.random.default_rng(seed + number)
        sample = np.sort(random.choice(own.rows, min(recall_sample, own.rows), replace=False))
        true, some = exact_rows(own, other, sample, **options), own_keys[torch.from_numpy(sample)]
        # Equal keys are equal in cosine and index.
        recalls.append(float((true[:, :, None] == some[:, None, :]).any(dim=2).double().mean()))
        completed.append(len(lacking))
        sampled.append(len(sample))
    return ApproximateSearch(
        Neighbours.from_keys(keys[0]),
        Neighbours.from_keys(keys[1]),
        recall=(recalls[0], recalls[1]) if recall_sample else None,
        sampled=(sampled[0], sampled[1]),
        completed=(completed[0], completed[1]),
    )


@dataclass(frozen=True)
class Cells:
    """The rows of one corpus, parted by the nearest of some centroids.

    Attributes:
        members: Rows of each cell, ascending, int64, on the CPU; some cells may have none.
        means: Mean unit vector of each cell's rows, zero for an empty one. *Shape:* ``(cells, dim)``
    """

    members: list[Tensor]
    means: Tensor

    def nearest(self, vectors: Tensor, probes: int) -> Tensor:
        """The cells whose members have the highest mean cosine with each unit vector, best first, int32, on the CPU.

        *Shape:* ``(n, probes)``
        """
        parts = vectors.split(max(1, _AT_ONCE // len(self.members)))
        return torch.cat([(part @ self.means.T).topk(probes, dim=1).indices.int().cpu() for part in parts])


def part_into_cells(source: CorpusMatrix, target: CorpusMatrix, *, cells: int, seed: int) -> tuple[Cells, Cells]:
    """Both corpora parted by the same centroids, those of k-means on a sample of both.

    Each corpus is centred first: languages differ by an offset that would else part them from each other. Centroids
    that nothing is nearest to are dropped, among duplicates say. The same seed gives the same cells for one number of
    threads; another may change last bits of products, and with them the cell of a vector that is as near to two.

    Args:
        source: One corpus.
        target: The other.
        cells: At most so many.
        seed: For the sample and the first centroids.
    """
    random = np.random.default_rng(seed)
    samples = []
    for matrix in (source, target):
        most = min(max(1, SAMPLE_PER_CELL * cells // 2), matrix.rows)
        rows = torch.from_numpy(np.sort(random.choice(matrix.rows, most, replace=False)))
        samples.append(torch.cat([matrix.unit_rows(some) for some in rows.split(4096)]))
    offsets = [vectors.mean(dim=0) for vectors in samples]
    sample = torch.cat([vectors.sub_(offset) for vectors, offset in zip(samples, offsets)])
    first = random.choice(len(sample), min(cells, len(sample)), replace=False)
    centroids = sample[torch.from_numpy(first).to(sample.device)]
    for _ in range(ROUNDS):
        homes = torch.cat([_nearest(part, centroids) for part in sample.split(max(1, _AT_ONCE // len(centroids)))])
        counts = torch.bincount(homes, minlength=len(centroids))
        sums = torch.zeros_like(centroids).index_add_(0, homes, sample)
        centroids = (sums / counts[:, None])[counts > 0]
    return _parted(source, centroids, offsets[0]), _parted(target, centroids, offsets[1])


def _nearest(vectors: Tensor, centroids: Tensor) -> Tensor:
    """Number of the nearest centroid: the highest product less half the centroid's squared length."""
    return torch.addmm(centroids.square().sum(dim=1).mul(-0.5), vectors, centroids.T).argmax(dim=1)


def _parted(matrix: CorpusMatrix, centroids: Tensor, offset: Tensor) -> Cells:
    homes = torch.empty(matrix.rows, dtype=torch.int32)
    sums = torch.zeros_like(centroids)
    step = min(matrix.rows, max(1, _AT_ONCE // max(len(centroids), matrix.dim)))
    vectors = torch.empty((step, matrix.dim), device=matrix.device)
    for start in range(0, matrix.rows, step):
        stop = min(start + step, matrix.rows)
        matrix.unit(start, stop, vectors)
        here = vectors[: stop - start]
        home = _nearest(here - offset, centroids)
        sums.index_add_(0, home, here)
        homes[start:stop] = home.cpu()
    members = _by_cell(homes, len(centroids))
    counts = torch.tensor([max(1, len(rows)) for rows in members], device=sums.device)
    return Cells(members, sums / counts[:, None])


def _by_cell(cell_of: Tensor, cells: int) -> list[Tensor]:
    """Places of each cell's number in a list of such numbers, ascending."""
    order = torch.sort(cell_of, stable=True).indices  # stable: the blocks are the same every time
    return list(order.split(torch.bincount(cell_of, minlength=cells).tolist()))


def _search_cells(
    source: CorpusMatrix,
    target: CorpusMatrix,
    *,
    k: int,
    cells: tuple[Cells, Cells],
    probes: int,
    memory_mib: int,
    progress: bool,
) -> tuple[Tensor, Tensor]:
    """Packed candidates of either corpus among the pairs compared; ``NO_CANDIDATE`` where those were fewer than ``k``.

    Pairs are compared when either row is in one of the other's ``probes`` nearest cells; a product serves both rows.
    """
    tried = precisions(source, target)
    both = (CellTopK(source, target, k=k), CellTopK(target, source, k=k))
    bar = tqdm(total=source.rows + target.rows, unit="row", desc="search", disable=not progress)
    with torch.inference_mode(), full_precision(), bar:
        for own, other, homes in ((both[0], both[1], cells[1]), (both[1], both[0], cells[0])):
            work = _Pass(own, other, homes, probes, tried, memory_mib)
            for start in range(0, own.own.rows, work.rows_at_once):
                stop = min(start + work.rows_at_once, own.own.rows)
                work.compare(start, stop)
                bar.update(stop - start)
        for best in both:
            best.finalize()
    return both[0].keys.cpu(), both[1].keys.cpu()


class CellTopK(TopK):
    """A :class:`~st_xling.mining.search.top_k.TopK` that takes rows and candidates from anywhere, in any order.

    What it ends with is exact among the pairs it was offered, ties by index included: products only decide what is
    scored exactly. A pair may be offered twice, once from either corpus, and counts once.
    """

    def __init__(self, own: CorpusMatrix, other: CorpusMatrix, *, k: int) -> None:
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
            Whether they were taken: not from a block that overflows.
        """
        if len(others) >= self.k:
            # Rows without a bound get that of the block's k best, different candidates; others would gain too little.
            new = torch.isinf(self.bounds[rows, -1]).nonzero().squeeze(1)
            if len(new):
                best = block.index_select(dim, new).topk(self.k, dim=1 - dim).values
                kth = best.select(1 - dim, self.k - 1) - precision.error
                self.bounds[rows[new]] = kth[:, None].expand(-1, self.k)
        floor = (self.bounds[rows, -1] - precision.error).clamp_(min=torch.finfo(torch.float32).min)
        worth = _true_places(block >= floor.unsqueeze(1 - dim))
        if not len(worth):
            return True
        if len(worth) > max(overflow(block.numel(), self.k), 4 * self.k * len(rows)):
            return False
        first, second = worth // block.shape[1], worth % block.shape[1]
        row, other = (first, second) if dim == 0 else (second, first)
        self._rounded |= precision.dtype != torch.float32
        self._hold(rows[row], others[other], block[first, second] + precision.error)
        return True

    def _worth_scoring(self) -> tuple[Tensor, Tensor]:
        """Pairs held that are not ruled out and not among the best already, each once, by row, then by candidate."""
        rows, others, _ = self._survivors()
        pairs, order = torch.sort(rows * self.other.rows + others)
        fresh = torch.ones_like(pairs, dtype=torch.bool)
        fresh[1:] = pairs[1:] != pairs[:-1]
        order = order[fresh]
        rows, others = rows[order], others[order]
        unknown = (indices_of(self.keys[rows]) != others[:, None]).all(dim=1)
        return rows[unknown], others[unknown]

    def score_all(self, rows: Tensor, others: Tensor) -> None:
        """Exact cosines of all these pairs, for text with so many near-equal sentences that products cannot choose."""
        candidates = self.other.fixed_point_rows(others.cpu()).T
        for some in rows.split(max(1, 2**20 // len(others))):
            keys = pack_keys(to_cosines(self.own.fixed_point_rows(some.cpu()) @ candidates), others)
            best = keys.topk(min(self.k, len(others)), dim=1).values
            self.keys[some] = distinct_best(torch.cat([self.keys[some], best], dim=1), self.k)
            self.bounds[some] = torch.maximum(self.bounds[some], cosines_of(self.keys[some]))


class _Pass:
    """Rows of ``own``, some at a time, compared with the members of near cells of ``other``."""

    def __init__(
        self, own: CellTopK, other: CellTopK, cells: Cells, probes: int, tried: Sequence[Precision], memory_mib: int
    ) -> None:
        self.own, self.other, self.cells, self.probes, self.tried = own, other, cells, probes, tried
        matrix = own.own
        # A quarter for products and what is selected from them, the rest for rows, their cells and sorting these.
        budget = memory_mib * 2**18
        self._edge = max(64, min(_EDGE, int((budget / 8) ** 0.5)))
        self.rows_at_once = min(matrix.rows, max(1024, 3 * budget // (4 * matrix.dim + 32 * probes)))
        self._vectors = torch.empty((self.rows_at_once, matrix.dim), device=matrix.device)
        self._selected = torch.empty((self._edge, matrix.dim), device=matrix.device)
        self._products = torch.empty(self._edge**2, device=matrix.device)

    def compare(self, start: int, stop: int) -> None:
        """Compare rows ``start:stop``."""
        self.own.own.unit(start, stop, self._vectors)
        nearest = self.cells.nearest(self._vectors[: stop - start], self.probes)
        for first, last in zip(_TURNS, (*_TURNS[1:], self.probes)):
            turn = nearest[:, first:last]
            places = _by_cell(turn.flatten(), len(self.cells.members))
            for members, here in zip(self.cells.members, places):
                if len(members) and len(here):
                    self._compare_with(members, here // turn.shape[1], start)
            self.own.finalize()

    def _compare_with(self, members: Tensor, places: Tensor, start: int) -> None:
        """Offer the products of rows and members to both corpora, in float32 where rounder ones tell too few apart."""
        places = places.to(self._vectors.device)
        for others in members.split(self._edge):
            candidates = self.other.own.unit_rows(others)
            rounded = {one.dtype: _padded(candidates, one.dtype).T for one in self.tried if one.dtype != torch.float32}
            others = others.to(places.device)
            for some in places.split(self._edge):
                vectors = torch.index_select(self._vectors, 0, some, out=self._selected[: len(some)])
                rows = some + start
                block = self._products[: len(rows) * len(others)].view(len(rows), -1)
                own_takes = other_takes = False
                for precision in self.tried:
                    if precision.dtype == torch.float32:
                        torch.mm(vectors, candidates.T, out=block)
                    else:
                        products = _padded(vectors, precision.dtype) @ rounded[precision.dtype]
                        block.copy_(products[: len(rows), : len(others)])
                    own_takes = own_takes or self.own.offer_pairs(rows, others, block, precision)
                    other_takes = other_takes or self.other.offer_pairs(others, rows, block, precision, dim=1)
                    if own_takes and other_takes:
                        break
                if not own_takes:
                    self.own.score_all(rows, others)
                if not other_takes:
                    self.other.score_all(others, rows)


def _padded(vectors: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded vectors and rows of zeros, so that there are few shapes of products.

    oneDNN compiles a product for its shape, and keeps the last thousand: with the shapes of cells, almost a GiB.
    """
    result = vectors.new_zeros((-(-len(vectors) // _STEP) * _STEP, vectors.shape[1]), dtype=dtype)
    result[: len(vectors)] = vectors
    return result


def _true_places(mask: Tensor) -> Tensor:
    """Places of what is true, flattened, ascending; eight at a time, as nearly nothing is."""
    mask = mask.flatten()
    whole = len(mask) // 8 * 8
    eights = mask[:whole].view(torch.int64).nonzero() * 8 + torch.arange(8, device=mask.device)
    places = torch.cat([eights.flatten(), torch.arange(whole, len(mask), device=mask.device)])
    return places[mask[places]]


def distinct_best(keys: Tensor, k: int) -> Tensor:
    """The ``k`` largest different keys of each row, then ``NO_CANDIDATE``. *Shape:* ``(rows, k)``"""
    keys = keys.sort(dim=1, descending=True).values
    keys[:, 1:].masked_fill_(keys[:, 1:] == keys[:, :-1], NO_CANDIDATE)
    return keys.topk(k, dim=1).values
