"""Nearest neighbours for sides too large to compare all with all: candidates from near cells, re-scored exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.approximate.cell_search import search_cells
from st_xling.mining.approximate.cells import part_into_cells
from st_xling.mining.find import check_k
from st_xling.mining.neighbours import Neighbours
from st_xling.mining.search.exact_rows import exact_rows
from st_xling.mining.search.keys import NOTHING, cosines_of, indices_of
from st_xling.mining.search.side import Side
from st_xling.utils.cosines import Embeddings, check_shapes

#: Sentences of both sides together that share a cell, on average: fewer cost more cells to look at, more cost products.
ROWS_PER_CELL = 600

#: Cells that each sentence is compared with.
PROBES = 40

#: Rows of each side that are searched exactly too.
RECALL_SAMPLE = 256


@dataclass(frozen=True, eq=False)
class ApproximateSearch:
    """What an approximate search found, and how much it may have missed.

    Attributes:
        forward: Source → target.
        backward: Target → source.
        recall: Share of the true ``k`` nearest that were found for a sample of each side, source side first; ``None``
            where no sample was asked for.
        sampled: Rows of each sample.
        completed: Rows of each side that were compared with fewer than ``k`` and then searched exactly.
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

    Both sides are parted into the same cells by k-means. A pair is compared when either sentence is in one of the
    other's ``probes`` nearest cells. Of what is compared the result is exact: the same cosines to the last
    bit as an exact search has, best first, the lowest index first among equals. No neighbour is missing: a row that
    was compared with fewer than ``k`` is searched exactly. One seed and number of threads always give the same result.

    Embeddings may be memory maps; beyond them a search takes ``memory_mib``, some 120 MiB of candidates that wait for
    their exact cosines, and ``12 * k + 48`` bytes per row of either side.

    Args:
        source_embeddings: As for an exact search. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        probes: Cells that each sentence is compared with: more find more and take longer. With all it is exact.
        cells: Cells, at most; by default one for 600 sentences of both sides together.
        recall_sample: Rows of each side whose exact neighbours are searched too, to measure the recall; 0 for none.
        seed: For the cells and the sample.
        device: Where to compute; embeddings may lie elsewhere.
        memory_mib: Bound on the working memory, in MiB, on ``device``.
        progress: Show bars on stderr.
    Returns:
        Neighbours of both sides with the measured recall.
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
    source = Side(source_embeddings, "source_embeddings", torch.device(device))
    target = Side(target_embeddings, "target_embeddings", torch.device(device))
    wanted = cells or max(1, (source.rows + target.rows) // ROWS_PER_CELL)
    parts = part_into_cells(source, target, cells=wanted, seed=seed)
    options: dict[str, Any] = {"k": k, "memory_mib": memory_mib, "progress": progress}
    keys = search_cells(source, target, cells=parts, probes=min(probes, len(parts[0])), **options)
    sides = ((source, target), (target, source))
    completed, recalls, sampled = [], [], []
    for number, ((own, other), found) in enumerate(zip(sides, keys)):
        lacking = (found[:, -1] == NOTHING).nonzero().squeeze(1)
        found[lacking] = exact_rows(own, other, lacking.numpy(), **options)
        sample = _sample(own.rows, recall_sample, seed + number)
        true = exact_rows(own, other, sample, **options)
        recalls.append(_share_found(found[torch.from_numpy(sample)], true))
        completed.append(len(lacking))
        sampled.append(len(sample))
    return ApproximateSearch(
        _read(keys[0]),
        _read(keys[1]),
        recall=(recalls[0], recalls[1]) if recall_sample else None,
        sampled=(sampled[0], sampled[1]),
        completed=(completed[0], completed[1]),
    )


def _read(keys: Tensor) -> Neighbours:
    return Neighbours(cosines_of(keys).numpy(), indices_of(keys).numpy())


def _sample(rows: int, most: int, seed: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(rows, min(most, rows), replace=False))


def _share_found(found: Tensor, true: Tensor) -> float:
    """Share of the true neighbours' keys that were found: cosine and index."""
    if not len(true):
        return float("nan")
    return float((true[:, :, None] == found[:, None, :]).any(dim=2).double().mean())
