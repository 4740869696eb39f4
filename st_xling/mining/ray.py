"""Ray clusters: start or join one, and run functions and searches on its workers."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Engine, check_choice

# Workers of one task that may be killed before it is given up.
RETRIES = 10


def check_engine(engine: Engine) -> None:
    """Raise unless the engine is known and installed."""
    check_choice("engine", engine, Engine)
    if engine == "ray":
        import_ray()


def import_ray() -> Any:
    """Import the module ``ray``, which only ``engine="ray"`` needs.

    Raises:
        ValueError: If it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read on import: it would report to its makers
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            'engine="ray" needs the package ray: got none; run pip install "st-xling[ray]", or use engine="local".'
        ) from error
    return ray


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Connect to a Ray cluster and yield the module ``ray``.

    A program that has called ``ray.init`` keeps its connection. Else ``RAY_ADDRESS`` in the environment names a
    cluster, on which st-xling and the files of embeddings must be found under the same paths; without it, workers are
    started on this machine, reachable from it alone, and end with the block.

    Raises:
        ValueError: If ray is not installed.
    """
    ray = import_ray()
    on_this_machine = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    options = {} if "RAY_ADDRESS" in os.environ else on_this_machine
    with nullcontext() if ray.is_initialized() else ray.init(log_to_driver=False, **options):
        yield ray


def map_on_ray(
    start: Callable[[str], Callable[[Any], Any]],
    items: Iterable[Any],
    *,
    name: str,
    threads: int = 1,
    on_gpus: bool = False,
) -> Generator[tuple[Any, Any]]:
    """Run a function on the workers of a cluster, and yield the items in order with their results.

    The items of a worker or node that is killed run again elsewhere.

    Args:
        start: Called once in each worker with its device; returns the function.
        items: Arguments of the function, read ahead by at most two per worker.
        name: Name of the work in errors.
        threads: CPUs of a worker, at most those of the largest node.
        on_gpus: Give each worker a GPU instead, if the cluster has any.

    Raises:
        ValueError: If ray is not installed, or the function raised one.
        OSError: If the function raised one, or what it holds does not fit Ray's object store.
        ChildProcessError: If workers were killed repeatedly.
    """
    with ray_cluster() as ray:
        gpus = int(ray.cluster_resources().get("GPU", 0)) if on_gpus else 0
        # More threads than a node has processors run slower, and would otherwise wait forever.
        largest = max(node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"])
        threads = min(threads, max(1, int(largest)))
        needed: dict[str, float] = {"num_gpus": 1} if gpus else {"num_cpus": threads}
        # Tasks, not actors: after the loss of a node there may be room for fewer. A worker keeps its function for the
        # next task (max_calls: also on a GPU).
        remote = ray.remote(**needed, max_retries=RETRIES, max_calls=0)(_run_on_worker)
        try:
            started = ray.put(start)
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
            raise OSError(
                f"{name}: what all workers need, such as arrays of embeddings, fits neither Ray's object store on this "
                f"machine nor its disk, of which Ray leaves 5 % free ({type(error).__name__}); give stores "
                "(write_store), which workers read themselves, or set object_store_memory of ray.init."
            ) from None
        shared = [started], os.urandom(8), "cuda" if gpus else "cpu", threads
        todo = iter(items)
        running = deque[tuple[Any, Any]]()  # items with references to their results
        try:
            while True:
                # Nodes may join, or be lost.
                workers = gpus or max(1, int(ray.cluster_resources().get("CPU", 0)) // threads)
                for item in islice(todo, max(0, 2 * workers - len(running))):
                    running.append((item, remote.remote(*shared, item)))
                if not running:
                    return
                item, reference = running.popleft()
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:  # what the function raised, not Ray's report of it
                    raise (error.cause if isinstance(error.cause, (ValueError, OSError)) else error) from None
                except ray.exceptions.RayError as error:
                    raise ChildProcessError(
                        f"{name}: a worker or its node was killed {RETRIES + 1} times, for want of memory perhaps "
                        f"({type(error).__name__}); run the same command again: it resumes."
                    ) from None
                yield item, result
        finally:
            for _, reference in running:
                ray.cancel(reference, force=True)


# Function of this worker of a cluster, by the call that it belongs to.
_started: dict[bytes, Callable[[Any], Any]] = {}


def _run_on_worker(start: list[Any], key: bytes, device: str, threads: int, item: Any) -> Any:
    torch.set_num_threads(threads)
    if key not in _started:
        _started.clear()
        _started[key] = import_ray().get(start[0])(device)
    return _started[key](item)


def run_on_ray(
    run: Callable[[Embeddings, Embeddings, Any], Any],
    source: Embeddings,
    target: Embeddings,
    tasks: Mapping[int, Any],
) -> Iterator[tuple[int, Any]]:
    """Run the tasks of a search, one CPU per task; yields number and result of each.

    Stores are read by the workers; arrays, also of ``.npy`` files, are sent once.
    """
    source = _on_cpu(source)
    target = _on_cpu(target)

    def start(_: str) -> Callable[[tuple[int, Any]], Any]:
        return lambda task: run(source, target, task[1])

    with closing(map_on_ray(start, tasks.items(), name="search")) as results:
        for (number, _), result in results:
            yield number, result


def _on_cpu(embeddings: Embeddings) -> Embeddings:
    return embeddings.detach().cpu() if isinstance(embeddings, Tensor) else embeddings
