"""The exact search, and embedding, by the workers of a ray cluster: the same results to the last bit."""

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
from tqdm import tqdm

from st_xling.mining.search.exact import Neighbours, check_k, neighbours
from st_xling.mining.search.top_k import NO_CANDIDATE, pack_keys
from st_xling.utils.cosines import Embeddings, check_pair, check_shapes

if TYPE_CHECKING:
    from st_xling.mining.encoding import Window

# Sources of a task: as many amortise reading the targets, and fewer keep all workers busy to the end.
_MOST_SOURCES, _TASKS_PER_CPU = 65_536, 4


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
def ray_cluster() -> Iterator[tuple[Any, int]]:
    """The module ``ray``, connected, and the number of processors of the cluster.

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
        yield ray, max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if ours:
            ray.shutdown()


def ray_neighbours(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    memory_mib: int = 256,
    progress: bool = False,
) -> tuple[Neighbours, Neighbours]:
    """As :func:`~st_xling.mining.neighbours`, to the last bit, by the workers of a cluster.

    Each task compares some sources with all targets. Every worker finds the exact best among its rows, and the best of
    all are among the best of the parts: by exact cosine, then by index, whoever finds them and in whatever order.
    Stores and memory maps are sent by name and read where they are needed; arrays in memory are sent once. Results are
    merged as they come, so that this process holds ``8 * k`` bytes for each row of either corpus, and a few results.

    Args:
        source_embeddings: As for ``neighbours``. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours of each sentence.
        memory_mib: Bound on the memory of one block, in MiB, in each worker.
        progress: Show a bar on stderr.
    Returns:
        Source → target, and target → source.
    Raises:
        ValueError: As ``neighbours``, or when ray is not installed.
    """
    names = "source_embeddings", "target_embeddings"
    source_embeddings, target_embeddings = check_shapes(source_embeddings, target_embeddings, *names)
    sources, targets = int(source_embeddings.shape[0]), int(target_embeddings.shape[0])
    check_k(k, sources, targets)
    forward = torch.full((sources, k), NO_CANDIDATE, dtype=torch.int64)
    backward = torch.full((targets, k), NO_CANDIDATE, dtype=torch.int64)
    with ray_cluster() as (ray, cpus), tqdm(total=sources, unit="row", desc="search", disable=not progress) as bar:
        rows = max(k, min(_MOST_SOURCES, -(-sources // (_TASKS_PER_CPU * cpus))))
        packed = ray.put(pack(source_embeddings)), ray.put(pack(target_embeddings))
        task = ray.remote(num_cpus=1)(_search)
        spans = iter(_spans(sources, rows, k))
        running: dict[Any, tuple[int, int]] = {}
        while True:
            for span in islice(spans, 2 * cpus - len(running)):
                running[task.remote(*packed, *span, k, memory_mib)] = span
            if not running:
                break
            done = ray.wait(list(running))[0][0]
            start, stop = running.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, ValueError):  # rows are to be named by their numbers in the whole corpus
                    check_pair(source_embeddings, target_embeddings, *names)
                raise
            _merge(result, start, stop, forward, backward)
            bar.update(stop - start)
    return Neighbours.from_keys(forward), Neighbours.from_keys(backward)


def _spans(rows: int, step: int, least: int) -> list[tuple[int, int]]:
    """Ranges of ``step`` rows, none below ``least``: the last takes a remainder that is."""
    starts = [start for start in range(0, rows, step) if rows - start >= least]
    return list(zip(starts, [*starts[1:], rows]))


def _search(source: Any, target: Any, start: int, stop: int, k: int, memory_mib: int) -> tuple[np.ndarray, ...]:
    """A task: neighbours between some sources and all targets, as arrays that ray shares without copying."""
    torch.set_num_threads(1)
    forward, backward = neighbours(unpack(source)[start:stop], unpack(target), k=k, memory_mib=memory_mib)
    return forward.similarities, forward.indices, backward.similarities, backward.indices


def _merge(result: tuple[np.ndarray, ...], start: int, stop: int, forward: Tensor, backward: Tensor) -> None:
    """Put what a task found among the best candidates."""
    cosines, indices, back_cosines, back_indices = (torch.from_numpy(array.copy()) for array in result)
    forward[start:stop] = pack_keys(cosines, indices)
    keys = torch.cat([backward, pack_keys(back_cosines, back_indices + start)], dim=1)
    backward.copy_(keys.topk(backward.shape[1], dim=1).values)


def embed_on_ray(load: Any, windows: Iterable[Window], options: dict[str, Any]) -> Generator[tuple[Window, np.ndarray]]:
    """As :func:`~st_xling.models.encode.encode`, each window by one worker of the cluster.

    A worker has as many processors as this process has threads, or a GPU where the cluster has any. On the same kind
    of processor, vectors are those of this process to the last bit.

    Args:
        load: A :data:`~st_xling.mining.encoding.Load`, called in each worker with its device.
        windows: Read ahead by at most two a worker.
        options: For the encoder.
    Yields:
        Windows in their order, each with its vectors.
    Raises:
        ValueError: When ray is not installed, or a worker cannot load or run the encoder for a reason that the user can
            mend.
    """
    threads = torch.get_num_threads()
    with ray_cluster() as (ray, cpus):
        gpus = int(ray.cluster_resources().get("GPU", 0))
        # More threads than the cluster has processors run slower, and would else wait for ever.
        needed: dict[str, float] = {"num_gpus": 1} if gpus else {"num_cpus": min(threads, cpus)}
        worker = ray.remote(**needed)(_EmbeddingWorker)
        count = gpus or max(1, cpus // threads)
        load = ray.put(load)  # an encoder may be large: once for all
        workers = [worker.remote(load, "cuda" if gpus else "cpu", threads, options) for _ in range(count)]
        running: deque[tuple[Window, Any]] = deque()
        for number, window in enumerate(windows):
            running.append((window, workers[number % count].embed.remote(window.sentences)))
            if len(running) == 2 * count:
                yield _embedded(ray, *running.popleft())
        while running:
            yield _embedded(ray, *running.popleft())


class _EmbeddingWorker:
    def __init__(self, load: Any, device: str, threads: int, options: dict[str, Any]) -> None:
        torch.set_num_threads(threads)
        self._load, self._device, self._options = load, device, options
        self._encoder: Any = None

    def embed(self, sentences: list[str]) -> np.ndarray:
        from st_xling.models.encode import encode

        if self._encoder is None:  # not before: an error here is the caller's to hear
            self._encoder = self._load(device=self._device)
        return encode(self._encoder, sentences, device=self._device, **self._options)


def _embedded(ray: Any, window: Window, reference: Any) -> tuple[Window, np.ndarray]:
    try:
        return window, ray.get(reference).copy()
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (ValueError, OSError)):
            raise ValueError(f"{type(error.cause).__name__} in a worker that embeds: {error.cause}") from None
        raise


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
