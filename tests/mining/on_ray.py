"""Small ray clusters, each driven by a process that a test may kill: ``python -m tests.mining.on_ray WHAT FOLDER``.

The folder has ``source`` and ``target`` (stores), ``text`` and ``encoder``; what is found goes there as ``WHAT….npz``.
"""

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining import EmbeddingStore, EncodingOptions, encode, find_neighbors
from st_xling.mining.encoding import embed_on_ray
from st_xling.mining.ray import run_on_ray
from st_xling.mining.search import find
from st_xling.mining.search.exact import exact_neighbors
from st_xling.models import load_encoder
from st_xling.models.encoding import encode as encode_sentences

SHARD_ROWS, WINDOW_ROWS, LEAST_S = 61, 7, 0.2
HERE: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "_node_ip_address": "127.0.0.1"}


def kill_some(folder: Path, deaths: int) -> None:
    """Note a call in the folder, and end the process in the first so many."""
    (folder / f"call-{uuid.uuid4().hex}").touch()
    time.sleep(LEAST_S)  # so that every worker has one
    for death in range(deaths):
        try:
            (folder / f"death-{death}").touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def slow_neighbors(source: Any, target: Any, *, folder: Path, deaths: int, **options: Any) -> Any:
    kill_some(folder, deaths)
    return exact_neighbors(source, target, **options)


def slow_load(path: str, *, folder: Path, deaths: int, device: str) -> Any:
    kill_some(folder, deaths)
    return load_encoder(path, device=device)


def stores(folder: Path) -> tuple[EmbeddingStore, EmbeddingStore]:
    return EmbeddingStore.open(folder / "source"), EmbeddingStore.open(folder / "target")


def windows(folder: Path) -> list[list[str]]:
    rows = (folder / "text").read_text(encoding="utf-8").splitlines()
    return [rows[start : start + WINDOW_ROWS] for start in range(0, len(rows), WINDOW_ROWS)]


def embedded_here(folder: Path) -> np.ndarray:
    encoder = load_encoder(str(folder / "encoder"), device="cpu")
    return np.concatenate([encode_sentences(encoder, some, batch_size=16) for some in windows(folder)])


def embed(folder: Path, *, deaths: int = 0) -> Iterator[np.ndarray]:
    (marks := folder / "loaded").mkdir()
    load = partial(slow_load, str(folder / "encoder"), folder=marks, deaths=deaths)
    for _, vectors in embed_on_ray(load, windows(folder), batch_size=16):
        yield vectors


def after(number: int, action: Callable[[], object], items: Iterator[Any]) -> Iterator[Any]:
    """The items; before that of this number is used, something happens."""
    for place, item in enumerate(items):
        if place == number:
            action()
        yield item


def save(path: Path, found: Any) -> None:
    np.savez(path, **{f"{name}{side}": getattr(one, name) for side, one in enumerate(found) for name in NAMES})


NAMES = "similarities", "indices"
METHODS = "exact", "faiss:IVF4,PQ4x4?nprobe=1,candidates=6"


def same_result(folder: Path) -> None:
    """One machine, files and arrays, exact and approximate search, and a store."""
    import ray

    ray.init(address="local", num_cpus=2, **HERE)
    store, other = stores(folder)
    for method in METHODS:
        options = {"method": method, "shard_rows": SHARD_ROWS, "engine": "ray", "state_folder": folder / method}
        save(folder / f"files {method}.npz", find_neighbors(store, other, **options))
    save(folder / "arrays.npz", find_neighbors(store[:], other[:], engine="ray"))
    encoding = EncodingOptions(batch_size=16, engine="ray")
    encode(str(folder / "encoder"), folder / "text", folder / "on ray", encoding=encoding, shard_rows=20)
    (folder / "target" / "shard-000000.safetensors").unlink()
    try:
        find_neighbors(store, other, engine="ray")
    except OSError as error:
        print(error)
    assert ray.is_initialized()


def killed_nodes(folder: Path) -> None:
    """Three nodes; one dies during the search, one while text is embedded, and some workers besides. Before that, what
    is sent is larger than the object store, with a disk that counts as full."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # else addresses of loopback become the machine's
    import ray
    from ray.cluster_utils import Cluster

    own: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}
    quick = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    quick |= {"local_fs_capacity_threshold": 0.0}
    cluster = Cluster(initialize_head=True, head_node_args={**own, "include_dashboard": False, "_system_config": quick})
    nodes = [cluster.add_node(**own) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")

    try:
        find_neighbors(np.ones((100_000, 250), np.float32), np.ones((4, 250), np.float32), k=1, engine="ray")
    except OSError as error:
        print(error)

    def lose_node() -> None:
        cluster.remove_node(nodes.pop(), allow_graceful=False)

    # Tasks of 61 rows, each at least 0.2 s long.
    (marks := folder / "searched").mkdir()
    find.exact_neighbors = partial(slow_neighbors, folder=marks, deaths=7)
    find.run_on_ray = lambda *arguments: after(3, lose_node, run_on_ray(*arguments))
    try:
        save(folder / "nodes.npz", find_neighbors(*stores(folder), shard_rows=SHARD_ROWS, engine="ray"))
        np.save(folder / "vectors.npy", np.concatenate(list(after(1, lose_node, embed(folder, deaths=4)))))
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    {"result": same_result, "nodes": killed_nodes}[sys.argv[1]](Path(sys.argv[2]))
