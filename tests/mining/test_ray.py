"""The engine on Ray: the results of the local one, also when workers are killed; a clear error without Ray."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import EmbeddingStore, EncodingOptions, encode, find_neighbors, write_store
from st_xling.mining.search.find import check_search
from tests.mining.on_ray import METHODS, NAMES, SHARD_ROWS, embedded_here, stores
from tests.mining.search.test_exact import embeddings

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: st-xling[ray]")


def test_without_ray_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r'pip install "st-xling\[ray\]", or use engine="local"'):
        check_search("exact", "ray")


@pytest.fixture
def folder(make_model: Callable[..., Any], tmp_path: Path) -> Path:
    """Input of :mod:`tests.mining.on_ray`."""
    source, target = embeddings(300, 0, 32), embeddings(200, 1, 32)
    target[100:] = target[:100]
    write_store(tmp_path / "source", source)
    write_store(tmp_path / "target", target)
    make_model().save_pretrained(str(tmp_path / "encoder"))
    lines = "".join(f"مرحبا ทดสอบ sentence {row}\n" for row in range(70))
    (tmp_path / "text").write_text(lines, encoding="utf-8")
    return tmp_path


def drive(what: str, folder: Path, *, status: int = 0) -> str:
    """A cluster in a process of its own, bounded in time, on loopback only."""
    words = [sys.executable, "-m", "tests.mining.on_ray", what, str(folder)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=500)
    assert ran.returncode == status, ran.stderr[-3000:]
    return ran.stdout


def assert_found(file: Path, expected: Any) -> None:
    found = np.load(file)
    for side, result in enumerate(expected):
        for name in NAMES:
            np.testing.assert_allclose(found[f"{name}{side}"], getattr(result, name), rtol=0, atol=1e-6)


@pytest.mark.slow
@needs_ray
def test_a_local_cluster_gives_the_same_result(folder: Path) -> None:
    both = [store[:] for store in stores(folder)]
    errors = drive("result", folder)
    assert "shard of sources 0 to 299 and targets 0 to 199" in errors
    assert "all workers must find the same files" in errors
    exact = find_neighbors(*both)
    assert_found(folder / "arrays.npz", exact)
    for method in METHODS:
        here = find_neighbors(*both, method=method, shard_rows=SHARD_ROWS, state_folder=folder / "here" / method)
        assert_found(folder / f"files {method}.npz", here)
        indexes = [
            sorted(path.name for path in (place / method).glob("*.faiss")) for place in (folder, folder / "here")
        ]
        assert indexes[0] == indexes[1] and len(indexes[0]) == (0 if method == "exact" else 7)
    assert any((one.indices != other.indices).any() for one, other in zip(here, exact))
    encode(
        str(folder / "encoder"),
        folder / "text",
        folder / "local",
        encoding=EncodingOptions(batch_size=16),
        shard_rows=20,
    )
    here, there = (EmbeddingStore.open(folder / name) for name in ("local", "on ray"))
    assert here.manifest == there.manifest
    np.testing.assert_allclose(here[:], there[:], rtol=0, atol=1e-6)


@needs_ray
@pytest.mark.slow
def test_killed_workers_and_nodes_lose_their_tasks_only(folder: Path) -> None:
    assert "arrays of embeddings, fits neither Ray's object store on this machine" in drive("nodes", folder)
    assert_found(folder / "nodes.npz", find_neighbors(*stores(folder)))
    assert np.load(folder / "vectors.npy").tobytes() == embedded_here(folder).tobytes()
    for name, tasks, deaths in (("searched", 20, 7), ("loaded", 0, 4)):
        calls, died = (len(list((folder / name).glob(f"{kind}-*"))) for kind in ("call", "death"))
        assert died == deaths and tasks + deaths <= calls <= tasks + deaths + 2 * 3
