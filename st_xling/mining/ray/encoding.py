"""Windows of sentences to vectors on a ray cluster, in the order of the windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import torch

from st_xling.mining.encoding import Load, Window, embed
from st_xling.mining.ray.cluster import cluster_cpus, ray_cluster


def embed_on_ray(
    load: Any, windows: Iterable[Window], options: dict[str, Any], *, threads: int | None = None
) -> Generator[tuple[Window, np.ndarray]]:
    """As :func:`~st_xling.mining.encoding.embed`, each window by one worker of the cluster.

    A worker has ``threads`` processors, or a GPU where the cluster has any. With as many threads as this process has,
    which is the default, and on the same kind of processor, vectors are those of this process to the last bit.

    Args:
        load: A :data:`~st_xling.mining.encoding.Load`, called in each worker with its device.
        windows: Read ahead by at most two a worker.
        options: For the encoder.
        threads: Of each worker.
    Raises:
        ValueError: When ray is not installed, or a worker cannot load or run the encoder for a reason that the user can
            mend.
    """
    threads = threads or torch.get_num_threads()
    with ray_cluster() as ray:
        gpus = int(ray.cluster_resources().get("GPU", 0))
        # More threads than the cluster has processors run slower, and would else wait for ever.
        wanted: dict[str, float] = {"num_gpus": 1} if gpus else {"num_cpus": min(threads, cluster_cpus(ray))}
        worker = ray.remote(**wanted)(_Worker)
        count = gpus or max(1, cluster_cpus(ray) // threads)
        load = ray.put(load)  # an encoder may be large: once for all
        workers = [worker.remote(load, "cuda" if gpus else "cpu", threads, options) for _ in range(count)]
        given = deque[tuple[Window, Any]]()
        for number, window in enumerate(windows):
            given.append((window, workers[number % count].embed.remote(window.sentences)))
            if len(given) == 2 * count:
                yield _answer(ray, *given.popleft())
        while given:
            yield _answer(ray, *given.popleft())


class _Worker:
    def __init__(self, load: Load, device: str, threads: int, options: dict[str, Any]) -> None:
        torch.set_num_threads(threads)
        self._load, self._device, self._options = load, device, options
        self._encoder: Any = None

    def embed(self, sentences: list[str]) -> np.ndarray:
        if self._encoder is None:  # not before: an error here is the caller's to hear
            self._encoder = self._load(self._device)
        return embed(self._encoder, sentences, self._options, self._device)


def _answer(ray: Any, window: Window, reference: Any) -> tuple[Window, np.ndarray]:
    try:
        return window, ray.get(reference).copy()
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (ValueError, OSError)):
            raise ValueError(f"{type(error.cause).__name__} in a worker that embeds: {error.cause}") from None
        raise
