"""Nearest neighbors of two corpora: exact, by a FAISS index, in this process or on a Ray cluster.

A search that is saved or runs on a cluster is parted into tasks: each shard of the sources with each shard of the
targets. Shards are ranges of rows that depend on sizes alone. A pair of rows is in one task, and the best of all are
among the best of the tasks: by exact cosine, then by index, in whatever order tasks end. So the result is the same
wherever they run, and a search that was killed lacks only the tasks that were running.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from st_xling.mining.deduplication import SelectedRows
from st_xling.mining.options import FAISS, check_method
from st_xling.mining.ray import check_engine, run_on_ray
from st_xling.mining.search.approximate import approximate_neighbors, measure_recall
from st_xling.mining.search.corpus_matrix import NO_CANDIDATE, distinct_best, pack_keys
from st_xling.mining.search.exact import Neighbors, check_k, corpus_matrices, exact_neighbors
from st_xling.utils.cosines import Embeddings, check_shapes
from st_xling.utils.options import Engine, check_number, helpful_arguments
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.terminal import progress_bar

logger = logging.getLogger(__name__)

#: Multiplications up to which ``auto`` is exact: a quarter of an hour of one core of 2024, 280,000 sentences a corpus
#: of dim 256, or 160,000 of dim 768.
MOST_EXACT = 2 * 10**13

#: Rows of a shard of an approximate search, at most. A cell's members grow with the shard, not the cells that a row is
#: compared with: two shards a side take twice as long as one, and find more. An index of so many vectors of dim 384 in
#: float32 takes 1.5 GiB.
APPROXIMATE_ROWS = 2**20

#: Rows of a shard of an exact search: reading them costs little next to comparing them. No more than 64 shards a side,
#: however large the corpora.
EXACT_ROWS, EXACT_SHARDS = 2**15, 64

_FILE, _SIDES = "search.safetensors", ("source", "target")
_CHECKSUM = "crc32"

# Finished tasks are saved when they have taken so many times what saving takes.
_SAVE_SHARE = 20


class Task(NamedTuple):
    """Ranges of rows of both corpora that are searched in each other."""

    source: tuple[int, int]
    target: tuple[int, int]

    def __str__(self) -> str:
        (first, last), (start, stop) = self
        return f"shard of sources {first} to {last - 1} and targets {start} to {stop - 1}"


#: Finds the ``k`` nearest of some rows in each other.
Search = Callable[[Embeddings, Embeddings], tuple[Neighbors, Neighbors]]

#: Packed candidates of the rows of a task in both directions. *Shapes:* ``(rows of the shard, k)``
Keys = tuple[np.ndarray, np.ndarray]


def check_search(method: str, engine: Engine) -> None:
    """Raise unless there is such a search."""
    check_method(method)
    check_engine(engine)


def choose_method(method: str, sources: int, targets: int, dim: int) -> str:
    """Resolve ``"auto"``, which is exact up to :data:`MOST_EXACT` multiplications, or where FAISS is not installed.

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
    if chosen == "approximate" and find_spec("faiss") is None:
        chosen = "exact"
        why += '; approximate search, which is faster, needs faiss: pip install "st-xling[faiss]"'
    logger.info(f"auto: {chosen} search of {sources:,} x {targets:,} sentences of dim {dim} ({why})")
    return chosen


@helpful_arguments
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
    state_folder: str | Path | None = None,
    progress: bool = False,
) -> tuple[Neighbors, Neighbors]:
    """Find the nearest targets of each source and the nearest sources of each target, by cosine.

    Every method returns ``k`` different rows in each list, with their exact cosines, best first, and the lowest index
    first among equals. An approximate search may miss some of the nearest; how many is measured on a sample, and logged
    with ``progress``.

    Embeddings may be memory maps larger than the memory, which are read block by block. A search in tasks holds
    ``16 * k + 40`` bytes for each row of either corpus, and a few results.

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
            see :func:`tasks_of`. The result of an approximate search depends on it.
        state_folder: Folder to save the search and its indexes in, and to resume it from.
        progress: Show a progress bar on stderr.
    Returns:
        Source → target, with ``sources`` rows, and target → source, with ``targets`` rows.
    Raises:
        ValueError: For an unknown method or engine, ``k`` above the size of either corpus, unequal dims, an empty
            corpus, rows that are zero or not finite, or a ``state_folder`` with another search.
        OSError: For a full disk in a task, which is named; results of others are saved.
    Example:
        >>> import numpy as np
        >>> forward, backward = find_neighbors(np.eye(3), np.eye(3)[[1, 2, 0]], k=1)
        >>> forward.indices.ravel().tolist(), backward.indices.ravel().tolist()
        ([2, 0, 1], [1, 2, 0])
    """
    check_search(method, engine)
    check_number("memory_mib", memory_mib, least=1)
    source, target = check_shapes(source_embeddings, target_embeddings, "source_embeddings", "target_embeddings")
    sources, targets, dim = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    method = choose_method(method, sources, targets, dim)
    options: dict[str, Any] = {"k": k, "device": "cpu" if engine == "ray" else device, "memory_mib": memory_mib}
    if method == "exact" and engine == "local" and state_folder is None:
        return exact_neighbors(source, target, progress=progress, **options)
    search: Search = partial(exact_neighbors, **options)
    if method != "exact":
        options["factory"] = method.removeprefix(FAISS) if method.startswith(FAISS) else None
        options["index_folder"] = None if state_folder is None else Path(state_folder).absolute()
        search = partial(approximate_neighbors, **options)
    tasks = tasks_of(sources, targets, k=k, method=method, shard_rows=shard_rows)
    matrices = dict(zip(_SIDES, corpus_matrices(source, target, k)))
    state = {side: torch.full((matrix.rows, k), NO_CANDIDATE) for side, matrix in matrices.items()}
    state["tasks"] = torch.zeros(len(tasks), dtype=torch.bool)
    prints = {side: matrix.fingerprint for side, matrix in matrices.items()} if state_folder else {}
    del matrices
    with ExitStack() as stack:
        folder = None
        if state_folder is not None:
            folder = ResumableFolder(state_folder, name="state_folder", instead="name another folder")
            task = {"command": "search", "k": k, "search": f"{method}, {tasks[-1]}", **prints}
            stack.enter_context(folder).begin(task)
            if _FILE in folder.steps:
                state = _load_state(folder.path / _FILE, state)
        todo = {number: task for number, task in enumerate(tasks) if not state["tasks"][number]}
        saved_at, cost = time.monotonic(), 0.0

        def save() -> None:
            nonlocal saved_at, cost
            if folder is not None:
                started = time.monotonic()
                with folder.writing(_FILE, _FILE) as temporary:
                    save_file(state, temporary, metadata={_CHECKSUM: _checksum(state)})
                saved_at = time.monotonic()
                cost = saved_at - started

        done = len(tasks) - len(todo)
        bar = progress_bar(total=len(tasks), initial=done, desc="search", unit="tasks", show=progress)
        stack.enter_context(bar)
        run = run_on_ray if engine == "ray" else run_here
        try:
            for number, keys in run(partial(run_task, search), source, target, todo):
                for rows, side, found in zip(tasks[number], _SIDES, keys):
                    known = state[side][slice(*rows)]
                    # Different keys: what is interrupted here is saved, and merged again when the task runs again.
                    known.copy_(distinct_best(torch.cat([known, torch.tensor(found)], dim=1), k))
                state["tasks"][number] = True
                if state["tasks"].all() or time.monotonic() - saved_at >= _SAVE_SHARE * cost:
                    save()
                bar.update()
        except BaseException:
            with suppress(OSError):  # finished tasks are kept, unless the disk is full
                save()
            raise
    both = Neighbors.from_keys(state["source"]), Neighbors.from_keys(state["target"])
    if progress and method != "exact":
        recall = measure_recall(source, target, both, memory_mib=memory_mib)
        logger.info("%s: recall of exact neighbors: source side %.4f, target side %.4f", method, *recall)
    return both


def _load_state(path: Path, fresh: dict[str, Tensor]) -> dict[str, Tensor]:
    """Read the state of a search, of the names, shapes and types of a fresh one.

    Raises:
        ValueError: If it is damaged: a wrong bit would give other neighbors.
    """
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in fresh}
            checksum = (file.metadata() or {}).get(_CHECKSUM)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged: {error}; delete it, and the search starts again.") from error
    alike = all(
        state[name].dtype == tensor.dtype and state[name].shape == tensor.shape for name, tensor in fresh.items()
    )
    if not alike or checksum != _checksum(state):
        raise ValueError(f"{path} is damaged: its checksum is wrong; delete it, and the search starts again.")
    return state


def _checksum(state: dict[str, Tensor]) -> str:
    """Return the CRC-32 of all numbers of a state.

    It is in the file of the state itself: a record next to it could be of the state before, after a kill.
    """
    checksum = 0
    for name in sorted(state):
        checksum = zlib.crc32(state[name].numpy().reshape(-1).view(np.uint8).data, checksum)
    return str(checksum)


def tasks_of(sources: int, targets: int, *, k: int, method: str, shard_rows: int | None = None) -> list[Task]:
    """Combine all shards of the sources with all shards of the targets.

    Args:
        sources: Rows.
        targets: Rows.
        k: Neighbors, which every shard must have.
        method: Of the search; its default is another for ``"exact"``.
        shard_rows: Rows of a shard at most; a corpus is parted into as many equal ones as that takes.
    Raises:
        ValueError: When ``shard_rows`` is too small for ``k``.
    """
    check_k(k, sources, targets)
    if shard_rows is not None and shard_rows < 2 * k:
        raise ValueError(
            f"shard_rows must be at least 2 * k = {2 * k}: got {shard_rows}; leave it out for the default."
        )
    if shard_rows is None:
        many = max(EXACT_ROWS, -(-max(sources, targets) // EXACT_SHARDS))
        shard_rows = max(2 * k, many if method == "exact" else APPROXIMATE_ROWS)
    shards = []
    for rows in (sources, targets):
        count = -(-rows // shard_rows)
        edges = [rows * number // count for number in range(count + 1)]
        shards.append(list(pairwise(edges)))
    return [Task(source, target) for source in shards[0] for target in shards[1]]


def run_here(
    run: Callable[[Embeddings, Embeddings, Task], Keys], source: Embeddings, target: Embeddings, tasks: dict[int, Task]
) -> Iterator[tuple[int, Keys]]:
    """Run tasks in this process, one after the other."""
    return ((number, run(source, target, task)) for number, task in tasks.items())


def run_task(search: Search, source: Embeddings, target: Embeddings, task: Task) -> Keys:
    """Search one task; its candidates have indices into whole corpora.

    Raises:
        OSError: With the name of the task, as for a full disk.
    """
    try:
        forward, backward = search(_part(source, task.source), _part(target, task.target))
    except OSError as error:
        remedy = "; all workers must find the same files" if isinstance(error, FileNotFoundError) else ""
        words = f"{task}: {error.strerror or error}{remedy}"
        raise (type(error)(error.errno, words) if error.errno else type(error)(words)) from error

    def packed(found: Neighbors, first: int) -> np.ndarray:
        return pack_keys(torch.from_numpy(found.similarities), torch.from_numpy(found.indices) + first).numpy()

    return packed(forward, task.target[0]), packed(backward, task.source[0])


def _part(embeddings: Embeddings, rows: tuple[int, int]) -> Embeddings:
    """Select rows; rows in files are not read."""
    in_memory = isinstance(embeddings, (np.ndarray, Tensor))
    return embeddings[slice(*rows)] if in_memory else SelectedRows(embeddings, np.arange(*rows))
