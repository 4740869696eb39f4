"""Ray clusters: start or join one, send it embeddings, and search on its workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
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
    ours = not ray.is_initialized()
    if ours and "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False)
    elif ours:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def run_on_ray(
    run: Callable[[Embeddings, Embeddings, Any], Any],
    source: Embeddings,
    target: Embeddings,
    tasks: Mapping[int, Any],
) -> Generator[tuple[int, Any]]:
    """Run the tasks of a search on the workers of a cluster, one CPU per task; yields number and result of each.

    Stores are read by the workers; arrays, also of ``.npy`` files, are sent once. The tasks of a worker or node that is
    killed run again elsewhere. If one fails, those that run already still yield their results.

    Args:
        run: Function that runs a task.
        source: Its first argument.
        target: Its second argument.
        tasks: Its third argument, by number.
    Raises:
        ValueError: If ray is not installed.
        OSError: If a task raised one; the message names the task.
        ChildProcessError: If workers were killed repeatedly.
    """
    with ray_cluster() as ray:
        both = (rows.detach().cpu() if isinstance(rows, Tensor) else rows for rows in (source, target))
        sent = ray.put(run), *map(ray.put, both)
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_on_worker)
        todo, running = iter(tasks.items()), dict[Any, int]()
        failed: Exception | None = None
        try:
            while True:
                most = 0 if failed else 2 * max(1, int(resource_count(ray, "CPU")))  # nodes may join, or all be lost
                for number, task in islice(todo, max(0, most - len(running))):
                    running[remote.remote(*sent, task)] = number
                if not running:
                    break
                done = ray.wait(list(running))[0][0]
                number = running.pop(done)
                try:
                    yield number, ray.get(done)
                except ray.exceptions.RayError as error:
                    failed = failure_cause(ray, error, tasks[number])
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        if failed is not None:
            raise failed from None


def _run_on_worker(run: Callable[..., Any], source: Embeddings, target: Embeddings, task: Any) -> Any:
    torch.set_num_threads(1)
    return run(source, target, task)


def failure_cause(ray: Any, error: Exception, task: object) -> Exception:
    """Return the error that a task raised, rather than Ray's report of it."""
    if isinstance(error, ray.exceptions.RayTaskError):
        return error.cause if isinstance(error.cause, (ValueError, OSError)) else error
    return ChildProcessError(
        f"{task}: a worker or its node was killed {RETRIES + 1} times, for want of memory perhaps "
        f"({type(error).__name__}); run the same command again: it resumes."
    )


def resource_count(ray: Any, name: str) -> float:
    return float(ray.cluster_resources().get(name, 0))
