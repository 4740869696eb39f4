"""Nearest neighbours of two sides by the method and the engine that are asked for."""

from __future__ import annotations

import os
import sys

import torch
from tqdm import tqdm

from st_xling.mining.neighbours import Neighbours, neighbours
from st_xling.mining.ray.cluster import import_ray
from st_xling.utils.cosines import Embeddings, check_shapes

#: Names that ``method`` may take; ``auto`` chooses by the size of the sides.
METHODS = ("exact", "approximate", "auto")

#: Names that ``engine`` may take: this process, or the workers of a ray cluster.
ENGINES = ("local", "ray")

#: Multiplications up to which ``auto`` is exact: a quarter of an hour of one core of 2024, 280,000 sentences a side of
#: dim 256, or 160,000 of dim 768.
MOST_EXACT = 2 * 10**13


def check_search(method: str, engine: str) -> None:
    """Raise unless there is such a search."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}: got {method!r}; {METHODS[0]!r} is usual.")
    if method == "approximate" and engine == "ray":
        raise ValueError(
            "method 'approximate' runs in this process: got engine 'ray'; choose engine 'local', or method 'exact'."
        )
    check_engine(engine)


def check_engine(engine: str) -> None:
    """Raise unless there is such an engine, installed."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}: got {engine!r}; {ENGINES[0]!r} is usual.")
    if engine == "ray":
        import_ray()


def method_for(engine: str, sources: int, targets: int, dim: int) -> str:
    """What ``"auto"`` stands for: exact on a cluster, and up to :data:`MOST_EXACT` multiplications for the cosines."""
    return "exact" if engine == "ray" or sources * targets * dim <= MOST_EXACT else "approximate"


def choose_method(method: str, engine: str, source: Embeddings, target: Embeddings, *, progress: bool = False) -> str:
    """``"exact"`` or ``"approximate"``: what ``"auto"`` stands for here, anything else as it is.

    Args:
        method: As for :func:`find_neighbours`.
        engine: As for :func:`find_neighbours`.
        source: Embeddings of the source side. *Shape:* ``(sources, dim)``
        target: Those of the target side. *Shape:* ``(targets, dim)``
        progress: Say on stderr what was chosen, and why.
    """
    if method != "auto":
        return method
    chosen = method_for(engine, source.shape[0], target.shape[0], source.shape[1])
    if progress:
        shape = f"{source.shape[0]:,} x {target.shape[0]:,} sentences of dim {source.shape[1]}"
        cost = source.shape[0] * target.shape[0] * source.shape[1]
        why = "on a cluster" if engine == "ray" else f"{cost:.1e} multiplications, exact up to {MOST_EXACT:.0e}"
        tqdm.write(f"auto: {chosen} search of {shape} ({why})", file=sys.stderr)
    return chosen


def check_k(k: int, sources: int, targets: int) -> None:
    """Raise if there are not ``k`` distinct sentences on both sides: embedding them would be in vain."""
    if k < 1:
        raise ValueError(f"k must be at least 1: got k={k}; 4 is the usual choice.")
    if k > min(sources, targets):
        raise ValueError(
            f"k must be smaller than the corpus, or equal to it, on both sides: got k={k} for {sources} distinct "
            f"source and {targets} distinct target sentences; lower k or mine more text."
        )


def find_neighbours(
    source: Embeddings,
    target: Embeddings,
    *,
    k: int = 4,
    method: str = "exact",
    engine: str = "local",
    state_folder: str | os.PathLike[str] | None = None,
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    block_rows: int | None = None,
    block_columns: int | None = None,
    progress: bool = False,
    save_seconds: float = 60.0,
) -> tuple[Neighbours, Neighbours]:
    """Nearest targets of each source and nearest sources of each target.

    Whatever the method, every list has ``k`` different rows with their exact cosines, best first. An approximate search
    may miss some of the best: how many is measured on a sample, and said with ``progress``.

    Args:
        source: Embeddings of the source side. *Shape:* ``(sources, dim)``
        target: Those of the target side. *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        method: ``"exact"``, ``"approximate"`` (:func:`~st_xling.mining.approximate_neighbours`), or
            ``"auto"`` for what :func:`choose_method` says.
        engine: ``"local"``, or ``"ray"`` for :func:`~st_xling.mining.ray.engine.ray_neighbours`: the same result.
        state_folder: Where an exact local search saves what it has found, and goes on from; others begin again.
        device: Where to search, such as ``"cuda"``.
        memory_mib: Bound on the memory of one block of the search, in MiB.
        block_rows: As for :func:`~st_xling.mining.neighbours`; an exact local search heeds it.
        block_columns: The same.
        progress: Show a bar on stderr.
        save_seconds: Least time between two saves.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: On another method or engine, and as :func:`~st_xling.mining.neighbours`.
    """
    check_search(method, engine)
    source, target = check_shapes(source, target, "source_embeddings", "target_embeddings")
    if choose_method(method, engine, source, target, progress=progress) == "approximate":
        from st_xling.mining.approximate.approximate_neighbours import approximate_neighbours

        found = approximate_neighbours(source, target, k=k, device=device, memory_mib=memory_mib, progress=progress)
        if progress:
            tqdm.write(f"approximate: {found}", file=sys.stderr)
        return found.forward, found.backward
    if engine == "ray":
        from st_xling.mining.ray.engine import ray_neighbours

        return ray_neighbours(source, target, k=k, memory_mib=memory_mib, progress=progress)
    return neighbours(
        source,
        target,
        k=k,
        device=device,
        memory_mib=memory_mib,
        block_rows=block_rows,
        block_columns=block_columns,
        progress=progress,
        state_folder=state_folder,
        save_seconds=save_seconds,
    )
