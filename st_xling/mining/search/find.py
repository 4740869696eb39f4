"""Nearest neighbours of two corpora by the method and the engine that are requested."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch

from st_xling.mining.ray import import_ray, run_on_ray
from st_xling.mining.search.approximate import FAISS, RECALL_SAMPLE, approximate_neighbours, check_factory, measured
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import Neighbours, neighbours
from st_xling.mining.search.shards import Task, run_here, sharded_neighbours, tasks_of
from st_xling.utils.cosines import Embeddings, check_shapes

logger = logging.getLogger(__name__)

#: Names that ``method`` may take; ``auto`` chooses by the size of the corpora.
METHODS = ("exact", "approximate", "auto")

#: Names that ``engine`` may take: this process, or the workers of a ray cluster.
ENGINES = ("local", "ray")

#: Multiplications up to which ``auto`` is exact: a quarter of an hour of one core of 2024, 280,000 sentences a corpus
#: of dim 256, or 160,000 of dim 768.
MOST_EXACT = 2 * 10**13


def check_search(method: str, engine: str) -> None:
    """Raise unless there is such a search."""
    if method not in METHODS and not method.startswith(FAISS):
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or {FAISS} and a factory string, such as "
            f"'{FAISS}IVF4096,Flat': got {method!r}; {METHODS[0]!r} is usual."
        )
    if method.startswith(FAISS):
        check_factory(method.removeprefix(FAISS))
    check_engine(engine)


def check_engine(engine: str) -> None:
    """Raise unless there is such an engine, installed."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}: got {engine!r}; {ENGINES[0]!r} is usual.")
    if engine == "ray":
        import_ray()


def choose_method(method: str, sources: int, targets: int, dim: int) -> str:
    """What ``method`` comes to: ``"auto"`` is exact up to :data:`MOST_EXACT` multiplications.

    Args:
        method: As for :func:`find_neighbours`; any but ``"auto"`` stays as it is.
        sources: Rows of the source corpus.
        targets: Rows of the target corpus.
        dim: Of the embeddings.
    """
    if method != "auto":
        return method
    cost = sources * targets * dim
    chosen = "exact" if cost <= MOST_EXACT else "approximate"
    why = f"{cost:.1e} multiplications, exact up to {MOST_EXACT:.0e}"
    logger.info(f"auto: {chosen} search of {sources:,} x {targets:,} sentences of dim {dim} ({why})")
    return chosen


def find_neighbours(
    source: Embeddings,
    target: Embeddings,
    *,
    k: int = 4,
    method: str = "exact",
    engine: str = "local",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    index_folder: str | Path | None = None,
    shard_rows: int | None = None,
    state_folder: str | os.PathLike[str] | None = None,
    save_seconds: float = 60.0,
    progress: bool = False,
    **blocks: Any,
) -> tuple[Neighbours, Neighbours]:
    """Nearest targets of each source and nearest sources of each target.

    Whatever the method, every list has ``k`` different rows with their exact cosines, best first. An approximate search
    may miss some of the best: how many is measured on a sample, and logged with ``progress``.

    Args:
        source: Embeddings of the source corpus. *Shape:* ``(sources, dim)``
        target: Those of the target corpus. *Shape:* ``(targets, dim)``
        k: Neighbours of each sentence.
        method: ``"exact"``, ``"approximate"`` (:func:`~st_xling.mining.approximate_neighbours`), ``"faiss:FACTORY"``
            for another index of FAISS with its search parameters, such as ``"faiss:IVF4096,Flat?nprobe=64"``, or
            ``"auto"`` for what :func:`choose_method` says.
        engine: ``"local"``, or ``"ray"`` for the workers of a cluster: the same result.
        device: Where to search, such as ``"cuda"``; workers of a cluster search on their processors.
        memory_mib: Bound on the memory of one block of the search, in MiB, in each worker.
        index_folder: Where indexes are kept for another search; by default in ``state_folder``.
        shard_rows: Each task searches at most so many sources among as many targets; see
            :func:`~st_xling.mining.search.shards.tasks_of`. What an approximate search finds depends on it; an exact
            search in this process has no tasks.
        state_folder: Save what has been found there, and resume from what is saved there.
        save_seconds: Time between two saves.
        progress: Show a bar on stderr.
        blocks: ``block_rows`` and ``block_columns`` of :func:`~st_xling.mining.neighbours`, for an exact local search.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: On another method or engine, and as :func:`~st_xling.mining.neighbours`.
    """
    check_search(method, engine)
    if unknown := blocks.keys() - {"block_rows", "block_columns"}:
        raise TypeError(f"got unexpected options of a search: {', '.join(sorted(unknown))}")
    source, target = check_shapes(source, target, "source_embeddings", "target_embeddings")
    sources, targets, dim = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    method = choose_method(method, sources, targets, dim)
    options: dict[str, Any] = {"k": k, "memory_mib": memory_mib, "device": "cpu" if engine == "ray" else device}
    state: dict[str, Any] = {"state_folder": state_folder, "save_seconds": save_seconds, "progress": progress}
    if method != "exact":
        options["factory"] = method.removeprefix(FAISS) if method.startswith(FAISS) else None
        folder = index_folder or state_folder
        options["index_folder"] = None if folder is None else Path(folder).absolute()
    elif engine == "local":
        return neighbours(source, target, **options, **state, **blocks)
    tasks = tasks_of(sources, targets, k=k, method=method, shard_rows=shard_rows)
    if engine == "local" and len(tasks) == 1:
        found = approximate_neighbours(source, target, progress=progress, **options)
    else:
        run = run_on_ray if engine == "ray" else run_here
        search = partial(_exact if method == "exact" else _approximate, **options)
        both = sharded_neighbours(source, target, search, tasks, run, k=k, name=method, **state)
        if method == "exact" or not progress:
            return both
        matrices = [CorpusMatrix(rows, "rows", torch.device("cpu")) for rows in (source, target)]
        words = f"{len(tasks)} tasks of {method}"
        found = measured(matrices, both, words, rows=RECALL_SAMPLE, seed=0, k=k, memory_mib=memory_mib)
    if progress:
        logger.info("%s: %s", method, found)
    return found.forward, found.backward


def _exact(source: Embeddings, target: Embeddings, task: Task, **options: Any) -> tuple[Neighbours, Neighbours]:
    return neighbours(source, target, **options)


def _approximate(source: Embeddings, target: Embeddings, task: Task, **options: Any) -> tuple[Neighbours, Neighbours]:
    names = "source-{}-{}".format(*task.source), "target-{}-{}".format(*task.target)
    found = approximate_neighbours(source, target, index_names=names, recall_sample=0, **options)
    return found.forward, found.backward
