"""A ray cluster to work on: the one that is named, else this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
    if ray.is_initialized():
        yield ray
        return
    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False)
    else:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield ray
    finally:
        ray.shutdown()


def cluster_cpus(ray: Any) -> int:
    """Processors that the cluster has, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
