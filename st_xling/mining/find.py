"""Nearest neighbours of two sides by the method and the engine that are asked for."""

from __future__ import annotations

import os

import torch

from st_xling.mining.cosines import Embeddings
from st_xling.mining.neighbours import Neighbours, neighbours

#: Names that ``method`` may take; ``auto`` chooses by the size of the sides.
METHODS = ("exact", "approximate", "auto")

#: Names that ``engine`` may take: this process, or the workers of a ray cluster.
ENGINES = ("local", "ray")


def check_search(method: str, engine: str) -> None:
    """Raise unless there is such a search."""
    for name, value, allowed in (("method", method, METHODS), ("engine", engine, ENGINES)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}: got {value!r}; {allowed[0]!r} is usual.")
    if method != "exact":
        raise ValueError(f"method must be 'exact': got {method!r}, which this version does not have yet.")
    if engine != "local":
        raise ValueError(f"engine must be 'local': got {engine!r}, which this version does not have yet.")


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
    progress: bool = False,
    save_seconds: float = 60.0,
) -> tuple[Neighbours, Neighbours]:
    """Nearest targets of each source and nearest sources of each target.

    Whatever the method, every list has ``k`` different rows with their exact cosines, best first.

    Args:
        source: Embeddings of the source side. *Shape:* ``(sources, dim)``
        target: Those of the target side. *Shape:* ``(targets, dim)``
        k: Neighbours kept for each sentence.
        method: ``"exact"``.
        engine: ``"local"``.
        state_folder: Where the search saves what it has found, and goes on from.
        device: Where to search, such as ``"cuda"``.
        memory_mib: Bound on the memory of one block of the search, in MiB.
        progress: Show a bar on stderr.
        save_seconds: Least time between two saves.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: On another method or engine, and as :func:`~st_xling.mining.neighbours`.
    """
    check_search(method, engine)
    return neighbours(
        source,
        target,
        k=k,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
        state_folder=state_folder,
        save_seconds=save_seconds,
    )
