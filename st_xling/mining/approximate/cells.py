"""Cells that part the space of embeddings, so that near sentences of either side share a cell or have near ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.side import Side

#: Vectors that cells are learnt from, per cell, and rounds of k-means: more of either barely moves the recall.
SAMPLE_PER_CELL, ROUNDS = 32, 8

# Numbers in a block of vectors, or of their similarities to cells.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class Cells:
    """The rows of one side, parted by the nearest of some centroids.

    Attributes:
        members: Rows of each cell, ascending, int64, on the CPU; some cells may have none.
        means: Mean unit vector of each cell's rows, zero for an empty one. *Shape:* ``(cells, dim)``
    """

    members: list[Tensor]
    means: Tensor

    def __len__(self) -> int:
        return len(self.members)

    def nearest(self, vectors: Tensor, probes: int) -> Tensor:
        """The cells whose members have the highest mean cosine with each vector, best first.

        Args:
            vectors: float32 unit vectors, of either side. *Shape:* ``(n, dim)``
            probes: Cells a vector.
        Returns:
            int32, on the CPU. *Shape:* ``(n, probes)``
        """
        parts = vectors.split(max(1, _AT_ONCE // len(self)))
        return torch.cat([(part @ self.means.T).topk(probes, dim=1).indices.int().cpu() for part in parts])


def part_into_cells(source: Side, target: Side, *, cells: int, seed: int) -> tuple[Cells, Cells]:
    """Both sides parted by the same centroids, those of k-means on a sample of both.

    Each side is centred first: languages differ by an offset that would else part them from each other. Centroids that
    nothing is nearest to are dropped, among duplicates say. The same seed gives the same cells for one number of
    threads; another may change last bits of products, and with them the cell of a vector that is as near to two.

    Args:
        source: One side.
        target: The other.
        cells: At most so many.
        seed: For the sample and the first centroids.
    """
    random = np.random.default_rng(seed)
    samples = [_sample(side, max(1, SAMPLE_PER_CELL * cells // 2), random) for side in (source, target)]
    offsets = [vectors.mean(dim=0) for vectors in samples]
    sample = torch.cat([vectors.sub_(offset) for vectors, offset in zip(samples, offsets)])
    first = random.choice(len(sample), min(cells, len(sample)), replace=False)
    centroids = sample[torch.from_numpy(first).to(sample.device)]
    for _ in range(ROUNDS):
        homes = torch.cat([_home(part, centroids) for part in sample.split(max(1, _AT_ONCE // len(centroids)))])
        counts = torch.bincount(homes, minlength=len(centroids))
        sums = torch.zeros_like(centroids).index_add_(0, homes, sample)
        centroids = (sums / counts[:, None])[counts > 0]
    source_cells, target_cells = (_parted(side, centroids, offset) for side, offset in zip((source, target), offsets))
    return source_cells, target_cells


def by_cell(cell_of: Tensor, cells: int) -> list[Tensor]:
    """Places of each cell in a list of cells, ascending.

    Args:
        cell_of: Numbers of cells. *Shape:* ``(n,)``
        cells: How many there are.
    """
    order = torch.sort(cell_of, stable=True).indices  # stable: the blocks are the same every time
    return list(order.split(torch.bincount(cell_of, minlength=cells).tolist()))


def _sample(side: Side, most: int, random: np.random.Generator) -> Tensor:
    rows = np.sort(random.choice(side.rows, min(most, side.rows), replace=False))
    return torch.cat([side.unit_rows(some) for some in torch.from_numpy(rows).split(4096)])


def _home(vectors: Tensor, centroids: Tensor) -> Tensor:
    """Number of the nearest centroid: the highest product less half the centroid's squared length."""
    return torch.addmm(centroids.square().sum(dim=1).mul(-0.5), vectors, centroids.T).argmax(dim=1)


def _parted(side: Side, centroids: Tensor, offset: Tensor) -> Cells:
    homes = torch.empty(side.rows, dtype=torch.int32)
    sums = torch.zeros_like(centroids)
    step = min(side.rows, max(1, _AT_ONCE // max(len(centroids), side.dim)))
    vectors = torch.empty((step, side.dim), device=side.device)
    for start in range(0, side.rows, step):
        stop = min(start + step, side.rows)
        side.unit(start, stop, vectors)
        here = vectors[: stop - start]
        home = _home(here - offset, centroids)
        sums.index_add_(0, home, here)
        homes[start:stop] = home.cpu()
    members = by_cell(homes, len(centroids))
    counts = torch.tensor([max(1, len(rows)) for rows in members], device=sums.device)
    return Cells(members, sums / counts[:, None])
