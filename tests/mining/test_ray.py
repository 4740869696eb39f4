"""The ray engine: the bytes of the local one, or a word on what to install."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from st_xling.mining import MiningText, encode, neighbours, write_store
from st_xling.mining.ray import _merge, _spans, pack, unpack
from st_xling.mining.search.exact import Neighbours
from st_xling.mining.search.find import check_search, choose_method
from st_xling.mining.search.top_k import NO_CANDIDATE
from tests.mining.search.test_exact import embeddings

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: st-xling[ray]")


def test_parts_merge_to_the_whole_even_under_ties():
    """What the workers and the merging do, without a cluster: many duplicates, parts in any order."""
    random = np.random.default_rng(0)
    source, target = random.integers(-1, 2, (90, 3)) + 0.5, random.integers(-1, 2, (41, 3)) + 0.5
    forward = torch.full((90, 4), NO_CANDIDATE)
    backward = torch.full((41, 4), NO_CANDIDATE)
    spans = _spans(90, 13, 4)
    assert spans[0][0] == 0 and spans[-1][1] == 90
    for start, stop in reversed(spans):
        one, other = neighbours(source[start:stop], target)
        arrays = (one.similarities, one.indices, other.similarities, other.indices)
        _merge(arrays, start, stop, forward, backward)
    for merged, whole in zip(map(Neighbours.from_keys, (forward, backward)), neighbours(source, target)):
        assert merged.similarities.tobytes() == whole.similarities.tobytes()
        assert merged.indices.tobytes() == whole.indices.tobytes()


@pytest.mark.parametrize(("rows", "step", "least"), [(10, 3, 3), (9, 3, 3), (11, 5, 4), (4, 4, 4), (7, 100, 1)])
def test_spans_hold_every_row_once_and_never_too_few(rows, step, least):
    spans = _spans(rows, step, least)
    assert [row for start, stop in spans for row in range(start, stop)] == list(range(rows))
    assert min(stop - start for start, stop in spans) >= least


def test_files_travel_by_name(tmp_path):
    rows = embeddings(5000, 0, 16)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    store = write_store(tmp_path / "store", rows)
    for sent, expected in (
        (mapped, rows),
        (store, rows),
    ):
        packed = pack(sent)
        assert isinstance(packed, bytes) and len(packed) < 3000
        assert np.array_equal(unpack(packed)[0 : len(expected)], expected)
    assert pack(rows) is rows
    for strange in (mapped[7:90], mapped[::2], mapped.T):  # not the file as it is
        assert np.array_equal(pickle.loads(pickle.dumps(unpack(pack(strange)))), strange)


def test_without_ray_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r'pip install "st-xling\[ray\]", or use engine="local"'):
        check_search("exact", "ray")


def test_auto_is_exact_until_it_is_large():
    assert choose_method("auto", "local", 100_000, 100_000, 768) == "exact"
    assert choose_method("auto", "local", 400_000, 400_000, 768) == "approximate"
    assert choose_method("auto", "ray", 400_000, 400_000, 768) == "exact"
    assert choose_method("exact", "local", 400_000, 400_000, 768) == "exact"
    with pytest.raises(ValueError, match="approximate.*runs in this process.*engine 'local'"):
        check_search("approximate", "ray")


ON_A_CLUSTER = """
import os, sys
from pathlib import Path
import numpy as np, ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
from st_xling.mining import EmbeddingStore, encode
from st_xling.mining.search.find import find_neighbours
from st_xling.mining import ray as on_ray
folder = Path(sys.argv[1])
on_ray._MOST_SOURCES = 61
store, mapped = EmbeddingStore.open(folder / "source"), np.load(folder / "target.npy", mmap_mode="r")
for name, found in (
    ("files", on_ray.ray_neighbours(store, mapped)),
    ("arrays", find_neighbours(store[:], np.array(mapped), engine="ray")),
):
    values = {f"{n}{side}": getattr(r, n) for side, r in enumerate(found) for n in ("similarities", "indices")}
    np.savez(folder / f"{name}.npz", **values)
bad = np.array(mapped)
bad[70] = 0
try:
    on_ray.ray_neighbours(bad, store)
except ValueError as error:
    print(error)
encode(str(folder / "encoder"), folder / "text", folder / "on ray", batch_size=16, shard_rows=20, engine="ray")
assert ray.is_initialized()
ray.shutdown()
"""


@needs_ray
def test_a_local_cluster_gives_the_same_bytes(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Started in a process of its own, bounded in time; two processors, loopback only."""
    source, target = embeddings(300, 0, 32), embeddings(200, 1, 32)
    target[100:] = target[:100]
    write_store(tmp_path / "source", source)
    np.save(tmp_path / "target.npy", target)
    make_model().save_pretrained(str(tmp_path / "encoder"))
    text = tmp_path / "text"
    text.write_text("".join(f"مرحبا ทดสอบ sentence {row}\n" for row in range(70)), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", ON_A_CLUSTER, str(tmp_path)], capture_output=True, text=True, timeout=280
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "source_embeddings" in ran.stdout and "only zeros in row 70;" in ran.stdout
    for name in ("files", "arrays"):
        found = np.load(tmp_path / f"{name}.npz")
        for side, result in enumerate(neighbours(source, target)):
            assert found[f"similarities{side}"].tobytes() == result.similarities.tobytes()
            assert found[f"indices{side}"].tobytes() == result.indices.tobytes()
    encode(str(tmp_path / "encoder"), text, tmp_path / "here", batch_size=16, shard_rows=20)
    files = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "on ray").iterdir()}
    assert len(MiningText(text)) == 70
