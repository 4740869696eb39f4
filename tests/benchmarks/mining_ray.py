"""Exact search by 1, 2 and 4 workers of a cluster on this machine, with all that belongs to it.

By one search without tasks, in seconds of the processor, those of all processes; the ratio on the clock is in the note.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import psutil

from tests.benchmarks.measure import Ratio, Run, Skipped, main
from tests.benchmarks.mining import K, embeddings


def measure(
    run: Run, *, rows: int = 16_384, dim: int = 768, memory_mib: int = 256, workers: tuple[int, ...] = (1, 2, 4)
) -> Iterator[Ratio]:
    try:
        import ray
    except ImportError:
        raise Skipped("needs ray: pip install 'st-xling[ray]'") from None

    from st_xling.mining import Neighbors, find_neighbors
    from st_xling.mining.search.find import run_here, sharded_neighbors, tasks_of
    from tests.mining.on_ray import HERE

    source, target = embeddings(rows, 0, dim), embeddings(rows, 1, dim)
    search = partial(find_neighbors, k=K, memory_mib=memory_mib)
    tasks = tasks_of(rows, rows, k=K, method="exact", shard_rows=max(2 * K, rows // 4))

    def task(some: np.ndarray, others: np.ndarray) -> tuple[Neighbors, Neighbors]:
        return find_neighbors(some, others, k=K, memory_mib=memory_mib)

    one = family_seconds(lambda: search(source, target))
    here = family_seconds(lambda: sharded_neighbors(source, target, task, tasks, run_here, k=K))

    def of(what: str, spent: tuple[float, float]) -> Ratio:
        return Ratio(f"{what}: processor time", "one search", spent[1] / one[1], note=f"clock {spent[0] / one[0]:.2f}")

    yield of(f"{len(tasks)} tasks here", here)
    for number in workers:
        ray.init(address="local", num_cpus=number, **HERE)
        # Every worker imports torch before the clock starts.
        search(source[: 64 * number], target[:64], engine="ray", shard_rows=16)
        options = {"engine": "ray", "shard_rows": rows // 4}
        spent = family_seconds(lambda: search(source, target, **options))  # noqa: B023
        ray.shutdown()
        yield of(f"{number} workers", spent)


def family_seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Clock and processor seconds of this process and all that it has started, while something runs."""
    before, started = _family_processor(), time.perf_counter()
    call()
    return time.perf_counter() - started, _family_processor() - before


def _family_processor() -> float:
    """Seconds of this process and its descendants, those that have ended included."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            total += sum(process.cpu_times()[:4])  # user, system, and both of its own children
    return total


if __name__ == "__main__":
    main(measure, quick={"rows": 512, "dim": 32, "workers": (1,)})
