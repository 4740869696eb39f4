"""The tasks of a search, and embedding, by the workers of a ray cluster."""

from __future__ import annotations

import io
import mmap
import os
import pickle
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.shards import Search, Task, run_task
from st_xling.utils.cosines import Embeddings

if TYPE_CHECKING:
    from st_xling.mining.encoding import Window

# Workers of one task that may be killed before it is given up.
_RETRIES = 10


def import_ray() -> Any:
    """The module ``ray``, which only ``engine="ray"`` needs.

    Raises:
        ValueError: When it is not installed.
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
    """The module ``ray``, connected.

    A program that has called ``ray.init`` keeps its connection. Else ``RAY_ADDRESS`` in the environment names a
    cluster, on which st-xling and the files of embeddings must be found under the same paths; without it, workers are
    started on this machine, reachable from it alone, and end with the block.

    Raises:
        ValueError: When ray is not installed.
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
    source: Embeddings, target: Embeddings, search: Search, tasks: dict[int, Task]
) -> Generator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """A :data:`~st_xling.mining.search.shards.Run` by the workers of a cluster, each task with one processor.

    Stores and memory maps are sent by name and read where they are needed; arrays in memory are sent once. The tasks of
    a worker or node that is killed run again elsewhere. Where one fails, the running ones still yield what they find.

    Raises:
        ValueError: When ray is not installed.
        OSError: Of a task, which is named.
        ChildProcessError: When workers were killed again and again.
    """
    with ray_cluster() as ray:
        packed = ray.put(pack(source)), ray.put(pack(target)), ray.put(search)
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_run_task)
        todo, running = iter(tasks.items()), dict[Any, int]()
        failed: Exception | None = None
        try:
            while True:
                most = 0 if failed else 2 * max(1, int(_resource(ray, "CPU")))  # nodes may join, or all be lost
                for number, task in islice(todo, max(0, most - len(running))):
                    running[remote.remote(*packed, task)] = number
                if not running:
                    break
                done = ray.wait(list(running))[0][0]
                number = running.pop(done)
                try:
                    yield number, ray.get(done)
                except ray.exceptions.RayError as error:
                    failed = _cause(ray, error, tasks[number])
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        if failed is not None:
            raise failed from None


def _run_task(source: Any, target: Any, search: Search, task: Task) -> tuple[np.ndarray, np.ndarray]:
    torch.set_num_threads(1)
    return run_task(unpack(source), unpack(target), search, task)


def embed_on_ray(load: Any, windows: Iterable[Window], options: dict[str, Any]) -> Generator[tuple[Window, np.ndarray]]:
    """As :func:`~st_xling.models.encode.encode`, each window by one worker of the cluster.

    A task has as many processors as this process has threads, or a GPU where the cluster has any. The windows of
    a worker or node that is killed are embedded again elsewhere.

    Args:
        load: A :data:`~st_xling.mining.encoding.Load`, called in each worker with its device.
        windows: Read ahead by at most two a worker.
        options: For the encoder.
    Yields:
        Windows in their order, each with its vectors.
    Raises:
        ValueError: When ray is not installed, or a worker cannot load or run the encoder for a reason that the user can
            mend.
        ChildProcessError: When workers were killed again and again.
    """
    with ray_cluster() as ray:
        gpus = int(_resource(ray, "GPU"))
        # More threads than a node has processors run slower, and would else wait for ever.
        largest = max(node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"])
        threads = min(torch.get_num_threads(), max(1, int(largest)))
        needed: dict[str, float] = {"num_gpus": 1} if gpus else {"num_cpus": threads}
        # Tasks, not actors: after the loss of a node there may be room for fewer. A worker keeps its encoder for the
        # next task (max_calls: also on a GPU).
        task = ray.remote(**needed, max_retries=_RETRIES, max_calls=0)(_embed)
        encoder = [ray.put(load)], os.urandom(8), "cuda" if gpus else "cpu", torch.get_num_threads(), options
        running: deque[tuple[Window, Any]] = deque()
        for window in windows:
            running.append((window, task.remote(*encoder, window.sentences)))
            if len(running) >= 2 * (gpus or max(1, int(_resource(ray, "CPU")) // threads)):
                yield _embedded(ray, *running.popleft())
        while running:
            yield _embedded(ray, *running.popleft())


def _embed(
    load: list[Any], key: bytes, device: str, threads: int, options: dict[str, Any], sentences: list[str]
) -> np.ndarray:
    from st_xling.models.encode import encode

    torch.set_num_threads(threads)
    if key not in _encoders:
        _encoders.clear()
        _encoders[key] = import_ray().get(load[0])(device=device)
    return encode(_encoders[key], sentences, device=device, **options)


# What this worker has loaded, by the call that it is of.
_encoders: dict[bytes, Any] = {}


def _embedded(ray: Any, window: Window, reference: Any) -> tuple[Window, np.ndarray]:
    try:
        return window, ray.get(reference).copy()
    except ray.exceptions.RayError as error:
        cause = _cause(ray, error, "encoding")
        if isinstance(cause, (ValueError, OSError)) and not isinstance(cause, ChildProcessError):
            raise ValueError(f"{type(cause).__name__} in a worker that embeds: {cause}") from None
        raise cause from None


def _cause(ray: Any, error: Exception, task: object) -> Exception:
    """What went wrong in a task, rather than Ray's report of it."""
    if isinstance(error, ray.exceptions.RayTaskError):
        return error.cause if isinstance(error.cause, (ValueError, OSError)) else error
    return ChildProcessError(
        f"{task}: a worker or its node was killed {_RETRIES + 1} times, for want of memory perhaps "
        f"({type(error).__name__}); run the same command again: it resumes."
    )


def _resource(ray: Any, name: str) -> float:
    return float(ray.cluster_resources().get(name, 0))


def pack(embeddings: Embeddings) -> Any:
    """What to send to a worker: arrays in memory themselves, for ray to share, others as bytes with names of files."""
    if isinstance(embeddings, Tensor):
        return embeddings.detach().cpu()
    if isinstance(embeddings, np.ndarray) and not _is_file(embeddings):
        return embeddings
    stream = io.BytesIO()
    _ByName(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(embeddings)
    return stream.getvalue()


def unpack(packed: Any) -> Embeddings:
    """The embeddings, in the process they were sent to by :func:`pack`; only ever bytes of our own program."""
    return pickle.loads(packed) if isinstance(packed, bytes) else packed


class _ByName(pickle.Pickler):
    """Pickles memory maps, wherever they are inside, by file, place and shape: numpy would write all their rows."""

    def reducer_override(self, value: Any) -> Any:
        if not _is_file(value):
            return NotImplemented
        path = str(Path(str(value.filename)).resolve())
        return np.memmap, (path, value.dtype.str, "r", value.offset, value.shape, "C")


def _is_file(value: Any) -> bool:
    """Whether it is a map of a file in the file's order, and no slice of one, which would not know its place."""
    return isinstance(value, np.memmap) and isinstance(value.base, mmap.mmap) and value.flags.c_contiguous
