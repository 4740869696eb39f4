"""Nearest neighbors of two corpora: exact, by a FAISS index, in this process or on a Ray cluster."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import torch

from st_xling.mining.ray import check_engine, run_on_ray
from st_xling.mining.search.approximate import FAISS, approximate_neighbors, measure_recall, recall_words
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import Neighbors, exact_neighbors
from st_xling.mining.search.shards import Search, Task, run_here, sharded_neighbors, tasks_of
from st_xling.utils.cosines import Embeddings, check_shapes
from st_xling.utils.options import Engine

logger = logging.getLogger(__name__)

#: Values of ``method``; ``auto`` chooses by the size of the corpora.
METHODS = ("exact", "approximate", "auto")

#: Multiplications up to which ``auto`` is exact: a quarter of an hour of one core of 2024, 280,000 sentences a corpus
#: of dim 256, or 160,000 of dim 768.
MOST_EXACT = 2 * 10**13


def check_search(method: str, engine: Engine) -> None:
    """Raise unless there is such a search."""
    if method not in METHODS and not method.startswith(FAISS):
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or {FAISS} and a factory string, such as "
            f"'{FAISS}IVF4096,Flat': got {method!r}; {METHODS[0]!r} is usual."
        )
    check_engine(engine)


def choose_method(method: str, sources: int, targets: int, dim: int) -> str:
    """Resolve ``"auto"``, which is exact up to :data:`MOST_EXACT` multiplications.

    Args:
        method: As for :func:`find_neighbors`; returned as it is, unless ``"auto"``.
        sources: Rows of the source corpus.
        targets: Rows of the target corpus.
        dim: Dimension of the embeddings.
    """
    if method != "auto":
        return method
    cost = sources * targets * dim
    chosen = "exact" if cost <= MOST_EXACT else "approximate"
    why = f"{cost:.1e} multiplications, exact up to {MOST_EXACT:.0e}"
    logger.info(f"auto: {chosen} search of {sources:,} x {targets:,} sentences of dim {dim} ({why})")
    return chosen


def find_neighbors(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    method: str = "exact",
    engine: Engine = "local",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    shard_rows: int | None = None,
    index_folder: str | Path | None = None,
    state_folder: str | Path | None = None,
    progress: bool = False,
) -> tuple[Neighbors, Neighbors]:
    """Find the nearest targets of each source and the nearest sources of each target, by cosine.

    Every method returns ``k`` different rows in each list, with their exact cosines, best first, and the lowest index
    first among equals. An approximate search may miss some of the nearest; how many is measured on a sample, and logged
    with ``progress``.

    Embeddings may be memory maps larger than the memory, which are read block by block.

    Args:
        source_embeddings: numpy or torch, any float dtype, normalized or not. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Number of neighbors of each sentence.
        method: ``"exact"`` (:func:`~st_xling.mining.search.exact.exact_neighbors`), ``"approximate"``
            (:func:`~st_xling.mining.approximate_neighbors`), ``"faiss:FACTORY"`` for another FAISS index with its
            search parameters, such as ``"faiss:IVF4096,Flat?nprobe=64"``, or ``"auto"`` (see :func:`choose_method`).
        engine: ``"local"``, or ``"ray"`` to search with the workers of a Ray cluster; the result is the same.
        device: Device to search on, such as ``"cuda"``; the workers of a cluster search on their CPUs.
        memory_mib: Limit on the memory of one block of the search, in MiB, in each worker.
        shard_rows: Maximum number of rows of either corpus in a task of a search that is saved, by Ray or by FAISS;
            see :func:`~st_xling.mining.search.shards.tasks_of`. The result of an approximate search depends on it.
        index_folder: Folder to keep the indexes of an approximate search in; by default ``state_folder``.
        state_folder: Folder to save the search in and to resume it from.
        progress: Show a progress bar on stderr.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: For an unknown method or engine, ``k`` above the size of either corpus, unequal dims, an empty
            corpus, rows that are zero or not finite, or a ``state_folder`` with another search.
    Example:
        >>> import numpy as np
        >>> forward, backward = find_neighbors(np.eye(3), np.eye(3)[[1, 2, 0]], k=1)
        >>> forward.indices.ravel().tolist(), backward.indices.ravel().tolist()
        ([2, 0, 1], [1, 2, 0])
    """
    check_search(method, engine)
    source, target = check_shapes(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
    sources, targets, dim = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    method = choose_method(method, sources, targets, dim)
    device = "cpu" if engine == "ray" else device
    is_exact = method == "exact"
    if is_exact and engine == "local" and state_folder is None:
        return exact_neighbors(source, target, k=k, device=device, memory_mib=memory_mib, progress=progress)
    folder = index_folder or state_folder
    if is_exact:
        search: Search = partial(_search_exactly, k=k, device=device, memory_mib=memory_mib)
    else:
        search = partial(
            _search_index,
            k=k,
            factory=method.removeprefix(FAISS) if method.startswith(FAISS) else None,
            index_folder=None if folder is None else Path(folder).absolute(),
            device=device,
            memory_mib=memory_mib,
        )
    both = sharded_neighbors(
        source,
        target,
        search,
        tasks_of(sources, targets, k=k, method=method, shard_rows=shard_rows),
        run_on_ray if engine == "ray" else run_here,
        k=k,
        name=method,
        state_folder=state_folder,
        progress=progress,
    )
    if progress and not is_exact:
        matrices = [CorpusMatrix(rows, "rows", torch.device("cpu")) for rows in (source, target)]
        recall = measure_recall(matrices, both, k=k, memory_mib=memory_mib)
        logger.info("%s: %s", method, recall_words(recall))
    return both


def _search_exactly(
    source: Embeddings, target: Embeddings, task: Task, *, k: int, device: str | torch.device, memory_mib: int
) -> tuple[Neighbors, Neighbors]:
    return exact_neighbors(source, target, k=k, device=device, memory_mib=memory_mib)


def _search_index(source: Embeddings, target: Embeddings, task: Task, **options: Any) -> tuple[Neighbors, Neighbors]:
    names = "source-{}-{}".format(*task.source), "target-{}-{}".format(*task.target)
    found = approximate_neighbors(source, target, index_names=names, recall_sample=0, **options)
    return found.forward, found.backward
