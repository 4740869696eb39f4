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
from itertools import pairwise, product, starmap
from pathlib import Path
from typing import NamedTuple

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

#: Rows of a shard of an exact search: reading them costs little next to comparing them.
EXACT_ROWS = 2**15

#: Most shards of a side of an exact search, however large the corpora.
EXACT_SHARDS = 64

_FILE = "search.safetensors"
_CHECKSUM = "crc32"
_SIDES = ("source", "target")

# Finished tasks are saved when they have taken so many times what saving takes.
_SAVE_SHARE = 20


class ShardPair(NamedTuple):
    """A task of a search: ranges of rows of both corpora that are searched in each other."""

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
    sources, dim = map(int, source.shape)
    targets = int(target.shape[0])
    method = choose_method(method, sources, targets, dim)
    if engine == "ray":
        device = "cpu"
    if method == "exact" and engine == "local" and state_folder is None:
        return exact_neighbors(source, target, k=k, device=device, memory_mib=memory_mib, progress=progress)
    search: Search = partial(exact_neighbors, k=k, device=device, memory_mib=memory_mib)
    if method != "exact":
        search = partial(approximate_neighbors, k=k, device=device, memory_mib=memory_mib)
        if method.startswith(FAISS):
            search = partial(search, factory=method.removeprefix(FAISS))
        if state_folder is not None:
            search = partial(search, index_folder=Path(state_folder).absolute())
    tasks = tasks_of(sources, targets, k=k, method=method, shard_rows=shard_rows)
    state, fingerprints = _new_state(source, target, k, len(tasks), with_fingerprints=state_folder is not None)
    with ExitStack() as stack:
        folder = None
        if state_folder is not None:
            folder = ResumableFolder(state_folder, name="state_folder", instead="name another folder")
            record = {"command": "search", "k": k, "search": f"{method}, {tasks[-1]}", **fingerprints}
            stack.enter_context(folder).begin(record)
            if _FILE in folder.steps:
                state = _load_state(folder.path / _FILE, state)
        todo = {number: task for number, task in enumerate(tasks) if not state["tasks"][number]}
        done = len(tasks) - len(todo)
        bar = progress_bar(total=len(tasks), initial=done, desc="search", unit="tasks", show=progress)
        stack.enter_context(bar)
        saver = _StateSaver(folder)
        run = run_on_ray if engine == "ray" else run_here
        try:
            for number, keys in run(partial(run_task, search), source, target, todo):
                _merge_task(state, tasks[number], keys, k)
                state["tasks"][number] = True
                if state["tasks"].all() or saver.is_due():
                    saver.save(state)
                bar.update()
        except BaseException:
            with suppress(OSError):  # finished tasks are kept, unless the disk is full
                saver.save(state)
            raise
    both = Neighbors.from_keys(state["source"]), Neighbors.from_keys(state["target"])
    if progress and method != "exact":
        recall = measure_recall(source, target, both, memory_mib=memory_mib)
        logger.info("%s: recall of exact neighbors: source side %.4f, target side %.4f", method, *recall)
    return both


def _new_state(
    source: Embeddings, target: Embeddings, k: int, tasks: int, *, with_fingerprints: bool
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Check both corpora, and return a state without candidates and finished tasks, and their fingerprints by side."""
    state: dict[str, Tensor] = {}
    fingerprints: dict[str, str] = {}
    for side, matrix in zip(_SIDES, corpus_matrices(source, target, k)):
        state[side] = torch.full((matrix.rows, k), NO_CANDIDATE)
        if with_fingerprints:
            fingerprints[side] = matrix.fingerprint
    state["tasks"] = torch.zeros(tasks, dtype=torch.bool)
    return state, fingerprints


def _merge_task(state: dict[str, Tensor], task: ShardPair, keys: Keys, k: int) -> None:
    """Merge the candidates of a task into those of its rows."""
    for rows, side, task_keys in zip(task, _SIDES, keys):
        side_keys = state[side][slice(*rows)]
        # Different keys: what is interrupted here is saved, and merged again when the task runs again.
        side_keys.copy_(distinct_best(torch.cat([side_keys, torch.tensor(task_keys)], dim=1), k))


class _StateSaver:
    """Save the state of a search in its folder, not so often that saving would take long; without one, do nothing."""

    def __init__(self, folder: ResumableFolder | None) -> None:
        self._folder = folder
        self._saved_at = time.monotonic()
        self._seconds = 0.0  # that saving took

    def is_due(self) -> bool:
        return time.monotonic() - self._saved_at >= _SAVE_SHARE * self._seconds

    def save(self, state: dict[str, Tensor]) -> None:
        if self._folder is None:
            return
        started = time.monotonic()
        with self._folder.writing(_FILE, _FILE) as temporary:
            save_file(state, temporary, metadata={_CHECKSUM: _checksum(state)})
        self._saved_at = time.monotonic()
        self._seconds = self._saved_at - started


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


def tasks_of(sources: int, targets: int, *, k: int, method: str, shard_rows: int | None = None) -> list[ShardPair]:
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
        default_rows = APPROXIMATE_ROWS
        if method == "exact":
            default_rows = max(EXACT_ROWS, -(-max(sources, targets) // EXACT_SHARDS))
        shard_rows = max(2 * k, default_rows)
    source_shards = _split_rows(sources, shard_rows)
    target_shards = _split_rows(targets, shard_rows)
    return list(starmap(ShardPair, product(source_shards, target_shards)))


def _split_rows(rows: int, shard_rows: int) -> list[tuple[int, int]]:
    """Split rows into as few ranges of at most ``shard_rows`` as possible, of equal sizes but for one row."""
    count = -(-rows // shard_rows)
    edges = [rows * number // count for number in range(count + 1)]
    return list(pairwise(edges))


def run_here(
    run: Callable[[Embeddings, Embeddings, ShardPair], Keys],
    source: Embeddings,
    target: Embeddings,
    tasks: dict[int, ShardPair],
) -> Iterator[tuple[int, Keys]]:
    """Run tasks in this process, one after the other."""
    return ((number, run(source, target, task)) for number, task in tasks.items())


def run_task(search: Search, source: Embeddings, target: Embeddings, task: ShardPair) -> Keys:
    """Search one task; its candidates have indices into whole corpora.

    Raises:
        OSError: With the name of the task, as for a full disk.
    """
    try:
        forward, backward = search(_select_rows(source, task.source), _select_rows(target, task.target))
    except OSError as error:
        remedy = "; all workers must find the same files" if isinstance(error, FileNotFoundError) else ""
        message = f"{task}: {error.strerror or error}{remedy}"
        arguments = (error.errno, message) if error.errno else (message,)
        raise type(error)(*arguments) from error
    return _pack_neighbors(forward, task.target[0]), _pack_neighbors(backward, task.source[0])


def _pack_neighbors(neighbors: Neighbors, first_index: int) -> np.ndarray:
    """Pack neighbors in a shard that begins at an index of its corpus."""
    cosines = torch.from_numpy(neighbors.similarities)
    indices = torch.from_numpy(neighbors.indices) + first_index
    return pack_keys(cosines, indices).numpy()


def _select_rows(embeddings: Embeddings, rows: tuple[int, int]) -> Embeddings:
    """Select rows; rows in files are not read."""
    in_memory = isinstance(embeddings, (np.ndarray, Tensor))
    return embeddings[slice(*rows)] if in_memory else SelectedRows(embeddings, np.arange(*rows))
