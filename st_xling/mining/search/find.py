"""Nearest neighbours of two corpora by the method and the engine that are requested."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from st_xling.mining.ray import import_ray, ray_neighbours
from st_xling.mining.search.approximate import FAISS, approximate_neighbours, check_factory
from st_xling.mining.search.exact import Neighbours, neighbours
from st_xling.utils.cosines import Embeddings, check_shapes

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
    if engine == "ray" and method not in ("exact", "auto"):
        raise ValueError(
            f"method {method!r} runs in this process: got engine 'ray'; choose engine 'local', or method 'exact'."
        )
    check_engine(engine)


def check_engine(engine: str) -> None:
    """Raise unless there is such an engine, installed."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}: got {engine!r}; {ENGINES[0]!r} is usual.")
    if engine == "ray":
        import_ray()


def choose_method(method: str, engine: str, sources: int, targets: int, dim: int, *, progress: bool = False) -> str:
    """What ``method`` comes to: ``"auto"`` is exact on a cluster, and up to :data:`MOST_EXACT` multiplications.

    Args:
        method: As for :func:`find_neighbours`; any but ``"auto"`` stays as it is.
        engine: As for :func:`find_neighbours`.
        sources: Rows of the source corpus.
        targets: Rows of the target corpus.
        dim: Of the embeddings.
        progress: Say on stderr what was chosen, and why.
    """
    if method != "auto":
        return method
    cost = sources * targets * dim
    chosen = "exact" if engine == "ray" or cost <= MOST_EXACT else "approximate"
    if progress:
        why = "on a cluster" if engine == "ray" else f"{cost:.1e} multiplications, exact up to {MOST_EXACT:.0e}"
        shape = f"{sources:,} x {targets:,} sentences of dim {dim}"
        tqdm.write(f"auto: {chosen} search of {shape} ({why})", file=sys.stderr)
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
    progress: bool = False,
    **exact_options: Any,
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
        engine: ``"local"``, or ``"ray"`` for :func:`~st_xling.mining.ray.ray_neighbours`: the same result.
        device: Where to search, such as ``"cuda"``.
        memory_mib: Bound on the memory of one block of the search, in MiB.
        index_folder: Where indexes are kept for another search; by default in ``state_folder``.
        progress: Show a bar on stderr.
        exact_options: ``block_rows``, ``block_columns``, ``state_folder`` and ``save_seconds`` of
            :func:`~st_xling.mining.neighbours`, for an exact local search. An approximate one keeps its indexes in
            ``state_folder`` and searches again.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: On another method or engine, and as :func:`~st_xling.mining.neighbours`.
    """
    check_search(method, engine)
    if unknown := exact_options.keys() - {"block_rows", "block_columns", "state_folder", "save_seconds"}:
        raise TypeError(f"got unexpected options of a search: {', '.join(sorted(unknown))}")
    source, target = check_shapes(source, target, "source_embeddings", "target_embeddings")
    options: dict[str, Any] = {"k": k, "memory_mib": memory_mib, "progress": progress}
    shape = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    method = choose_method(method, engine, *shape, progress=progress)
    if method != "exact":
        factory = method.removeprefix(FAISS) if method.startswith(FAISS) else None
        folder = index_folder or exact_options.get("state_folder")
        found = approximate_neighbours(source, target, factory=factory, index_folder=folder, device=device, **options)
        if progress:
            tqdm.write(f"{method}: {found}", file=sys.stderr)
        return found.forward, found.backward
    if engine == "ray":
        return ray_neighbours(source, target, **options)
    return neighbours(source, target, device=device, **options, **exact_options)
