"""Search in tasks, each shard of the sources with each shard of the targets: by any method, here or on a cluster.

Shards are ranges of rows that depend on sizes alone, so that the tasks are the same whatever runs them. A pair of rows
is in one task, and the best of all are among the best of the tasks: by exact cosine, then by index, in whatever order
tasks end. So the result is the same too, and a search that was killed lacks only the tasks that were running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from st_xling.mining.deduplication import SelectedRows
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import Neighbors, check_k
from st_xling.mining.search.top_k import NO_CANDIDATE, distinct_best, pack_keys
from st_xling.utils.console import progress_bar
from st_xling.utils.cosines import Embeddings, check_shapes
from st_xling.utils.io import file_sha256
from st_xling.utils.resumable import ResumableFolder

_FILE = "search.safetensors"

# Finished tasks are saved when they have taken so many times what saving takes.
_SAVE_SHARE = 20

#: Rows of a shard of an approximate search, at most. A cell's members grow with the shard, not the cells that a row is
#: compared with: two shards a side take twice as long as one, and find more. An index of so many vectors of dim 384 in
#: float32 takes 1.5 GiB.
APPROXIMATE_ROWS = 2**20

#: Rows of a shard of an exact search: reading them costs little next to comparing them. No more than 64 shards a side,
#: however large the corpora.
EXACT_ROWS, EXACT_SHARDS = 2**15, 64


class Task(NamedTuple):
    """Ranges of rows of both corpora that are searched in each other."""

    source: tuple[int, int]
    target: tuple[int, int]

    def __str__(self) -> str:
        (first, last), (start, stop) = self
        return f"shard of sources {first} to {last - 1} and targets {start} to {stop - 1}"


#: Finds the ``k`` nearest of the rows of a task in each other.
Search = Callable[[Embeddings, Embeddings, Task], tuple[Neighbors, Neighbors]]

#: Runs the tasks of these numbers, in any order: packed keys of both directions, as :func:`run_task` returns them.
Run = Callable[[Embeddings, Embeddings, Search, dict[int, Task]], Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]]


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


def sharded_neighbors(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    search: Search,
    tasks: list[Task],
    run: Run,
    *,
    k: int,
    name: str = "",
    state_folder: str | Path | None = None,
    progress: bool = False,
) -> tuple[Neighbors, Neighbors]:
    """Run ``search`` in each task, and merge the neighbors.

    Beyond the embeddings this process holds ``16 * k + 40`` bytes for each row of either corpus, and a few results.

    Args:
        source_embeddings: *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        search: Function that searches one task.
        tasks: From :func:`tasks_of`.
        run: :func:`run_here`, or a function that runs them elsewhere.
        k: Number of neighbors of each row.
        name: Name of ``search`` with all that its result depends on: a saved state of another is rejected.
        state_folder: Folder to save the neighbors of finished tasks in, and to resume from.
        progress: Show a progress bar on stderr.
    Raises:
        ValueError: As :func:`~st_xling.mining.find_neighbors`.
        OSError: For a full disk in a task, which is named; results of others are saved.
    """
    names = "source_embeddings", "target_embeddings"
    both = check_shapes(source_embeddings, target_embeddings, *names)
    matrices = [CorpusMatrix(rows, name, torch.device("cpu")) for rows, name in zip(both, names)]
    state = {side: torch.full((matrix.rows, k), NO_CANDIDATE) for side, matrix in zip(("source", "target"), matrices)}
    state["tasks"] = torch.zeros(len(tasks), dtype=torch.bool)
    with ExitStack() as stack:
        folder = None
        if state_folder is not None:
            folder = stack.enter_context(
                ResumableFolder(state_folder, name="state_folder", instead="name another folder")
            )
            prints = {"source": matrices[0].fingerprint, "target": matrices[1].fingerprint}
            folder.begin({"command": "search", "k": k, "search": f"{name}, {tasks[-1]}", **prints})
            if _FILE in folder.steps:
                digest = file_sha256(folder.path / _FILE)
                if folder.steps[_FILE].get("sha256", digest) != digest:
                    raise ValueError(f"{folder.path / _FILE} is damaged; delete it, and the search starts again.")
                try:
                    state = load_file(folder.path / _FILE)
                except SafetensorError as error:
                    raise ValueError(
                        f"{folder.path / _FILE} is damaged: {error}; delete it, and the search starts again."
                    ) from error
        del matrices
        todo = {number: task for number, task in enumerate(tasks) if not state["tasks"][number]}
        saved_at, cost = time.monotonic(), 0.0

        def save() -> None:
            nonlocal saved_at, cost
            if folder is not None:
                started = time.monotonic()
                with folder.writing(_FILE, _FILE) as temporary:
                    save_file(state, temporary)
                folder.listed[_FILE]["sha256"] = file_sha256(folder.path / _FILE)
                folder.write_record()
                saved_at = time.monotonic()
                cost = saved_at - started

        done = len(tasks) - len(todo)
        bar = progress_bar(total=len(tasks), initial=done, desc="search", unit="tasks", show=progress)
        stack.enter_context(bar)
        try:
            for number, keys in run(*both, search, todo):
                for rows, side, found in zip(tasks[number], ("source", "target"), keys):
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
    return Neighbors.from_keys(state["source"]), Neighbors.from_keys(state["target"])


def run_here(
    source: Embeddings, target: Embeddings, search: Search, tasks: dict[int, Task]
) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Run tasks in this process, one after the other."""
    return ((number, run_task(source, target, search, task)) for number, task in tasks.items())


def run_task(source: Embeddings, target: Embeddings, search: Search, task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Search one task; returns packed keys with indices into whole corpora. *Shapes:* ``(rows of the shard, k)``

    Raises:
        OSError: With the name of the task, as for a full disk.
    """
    try:
        forward, backward = search(_part(source, task.source), _part(target, task.target), task)
    except OSError as error:
        remedy = "; all workers must find the same files" if isinstance(error, FileNotFoundError) else ""
        words = f"{task}: {error.strerror or error}{remedy}"
        raise (type(error)(error.errno, words) if error.errno else type(error)(words)) from error
    one, other = (
        pack_keys(torch.from_numpy(found.similarities), torch.from_numpy(found.indices) + first).numpy()
        for found, first in ((forward, task.target[0]), (backward, task.source[0]))
    )
    return one, other


def _part(embeddings: Embeddings, rows: tuple[int, int]) -> Embeddings:
    """Select rows; rows in files are not read."""
    in_memory = isinstance(embeddings, (np.ndarray, Tensor))
    return embeddings[slice(*rows)] if in_memory else SelectedRows(embeddings, np.arange(*rows))
