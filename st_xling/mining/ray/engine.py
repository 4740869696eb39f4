"""Exact neighbours on a ray cluster: each task compares some sources with all targets, and what they find is merged."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.mining.find import check_k
from st_xling.mining.neighbours import Neighbours, neighbours
from st_xling.mining.ray.cluster import cluster_cpus, ray_cluster
from st_xling.mining.ray.rows import RowRange, pack, unpack
from st_xling.mining.search.keys import NOTHING, cosines_of, indices_of, to_keys
from st_xling.utils.cosines import Embeddings, check_pair, check_shapes

# Sources of a task: as many amortise reading the targets, and fewer keep all workers busy to the end.
_MOST_SOURCES, _TASKS_PER_CPU = 65_536, 4


def ray_neighbours(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    task_rows: int | None = None,
    memory_mib: int = 256,
    progress: bool = False,
) -> tuple[Neighbours, Neighbours]:
    """As :func:`~st_xling.mining.neighbours`, to the last bit, by the workers of a cluster.

    Every worker finds the exact best among its rows, and the best of all are among the best of the parts: by exact
    cosine, then by index, whoever finds them and in whatever order. Stores and memory maps are sent by name and read
    where they are needed; arrays in memory are sent once. Results of tasks are merged as they come, so that this
    process holds ``8 * k`` bytes for each row of either side, and a few results.

    Args:
        source_embeddings: As for ``neighbours``. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        task_rows: Sources that a task compares with all targets, at least ``k``; by default four tasks a processor.
        memory_mib: Bound on the memory of one block, in MiB, in each worker.
        progress: Show a bar on stderr.
    Returns:
        Source → target, and target → source.
    Raises:
        ValueError: As ``neighbours``, or when ray is not installed.
    """
    source_embeddings, target_embeddings = check_shapes(
        source_embeddings, target_embeddings, "source_embeddings", "target_embeddings"
    )
    sources, targets = int(source_embeddings.shape[0]), int(target_embeddings.shape[0])
    check_k(k, sources, targets)
    if task_rows is not None and task_rows < k:
        raise ValueError(f"task_rows must be at least k, which is {k}: got {task_rows}; leave it out for the default.")
    forward = torch.full((sources, k), NOTHING, dtype=torch.int64)
    backward = torch.full((targets, k), NOTHING, dtype=torch.int64)
    with ray_cluster() as ray, tqdm(total=sources, unit="row", desc="search", disable=not progress) as bar:
        cpus = cluster_cpus(ray)
        rows = task_rows or max(k, min(_MOST_SOURCES, -(-sources // (_TASKS_PER_CPU * cpus))))
        packed = ray.put(pack(source_embeddings)), ray.put(pack(target_embeddings))
        task = ray.remote(num_cpus=1)(_search)
        spans = iter(_spans(sources, rows, k))
        running: dict[Any, tuple[int, int]] = {}
        while True:
            for span in islice(spans, 2 * cpus - len(running)):
                running[task.remote(*packed, *span, k, memory_mib)] = span
            if not running:
                break
            done = ray.wait(list(running))[0][0]
            start, stop = running.pop(done)
            try:
                found = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, ValueError):  # rows to be named by their numbers on the whole side
                    check_pair(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
                raise
            _merge(found, start, stop, forward, backward)
            bar.update(stop - start)
    return _read(forward), _read(backward)


def _spans(rows: int, step: int, least: int) -> list[tuple[int, int]]:
    """Ranges of ``step`` rows, none below ``least``: the last takes a remainder that is."""
    starts = [start for start in range(0, rows, step) if rows - start >= least]
    return list(zip(starts, [*starts[1:], rows]))


def _search(source: Any, target: Any, start: int, stop: int, k: int, memory_mib: int) -> tuple[np.ndarray, ...]:
    """A task: neighbours between some sources and all targets, as arrays that ray shares without copying."""
    torch.set_num_threads(1)
    forward, backward = neighbours(RowRange(unpack(source), start, stop), unpack(target), k=k, memory_mib=memory_mib)
    return forward.similarities, forward.indices, backward.similarities, backward.indices


def _merge(found: tuple[np.ndarray, ...], start: int, stop: int, forward: Tensor, backward: Tensor) -> None:
    cosines, indices, back_cosines, back_indices = (torch.from_numpy(array.copy()) for array in found)
    forward[start:stop] = to_keys(cosines, indices)
    keys = to_keys(back_cosines, back_indices + start)
    backward.copy_(torch.cat([backward, keys], dim=1).topk(backward.shape[1], dim=1).values)


def _read(keys: Tensor) -> Neighbours:
    return Neighbours(cosines_of(keys).numpy(), indices_of(keys).numpy())
