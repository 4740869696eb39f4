"""The plan: lines counted, a part measured, nothing written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import mine_texts, plan_mining, write_store
from st_xling.mining.mining_trials import search_seconds


def test_it_counts_measures_and_writes_nothing(make_model: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"ein Satz\n" * 5000 + b"der letzte"))
    (tmp_path / "t").write_text("a sentence\n" * 300, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    plan = plan_mining(tmp_path / "s.gz", tmp_path / "t", model=make_model(), work=tmp_path / "deep" / "work")
    assert sorted(tmp_path.rglob("*")) == before
    assert plan.rows == {"source": 5001, "target": 300} and plan.dim == 16
    assert 0 < plan.encode_seconds < 600 and 0 < plan.search_seconds < 60
    assert plan.memory_bytes > 256 * 2**20
    stores, texts, state = 5301 * 16 * 4, 5000 * 9 + 10 + 300 * 11, 5301 * 4 * 16
    assert plan.disk_bytes == stores + 2 * texts + state < plan.disk_free_bytes
    lines = plan.lines()
    assert lines[:3] == ["source: 5,001 lines", "target: 300 lines", "search: exact, dim 16, on cpu"]
    assert [line.split(":")[0] for line in lines[3:]] == ["time", "memory", "disk"] and plan.as_dict()["dim"] == 16


def test_disk_is_no_less_than_what_the_work_takes(make_model: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("s", "t"):
        (tmp_path / name).write_text("".join(f"{name} {row} \t\\\n" for row in range(400)), encoding="utf-8")
    sides, model = (tmp_path / "s", tmp_path / "t"), make_model()
    plan = plan_mining(*sides, model=model)
    mine_texts(*sides, tmp_path / "o", model=model, work=tmp_path / "w", keep_work=True)
    taken = sum(path.stat().st_size for path in [*(tmp_path / "w").rglob("*"), tmp_path / "o"] if path.is_file())
    assert taken < plan.disk_bytes + 40_000  # manifests and headers


def test_stores_need_no_model(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a sentence\n" * 300, encoding="utf-8")
    write_store(tmp_path / "store", np.ones((300, 24), dtype=np.float32))
    options = {"source_embeddings": tmp_path / "store", "target_embeddings": tmp_path / "store"}
    plan = plan_mining(tmp_path / "t", tmp_path / "t", **options)
    assert plan.encode_seconds == 0 and plan.dim == 24
    with pytest.raises(ValueError, match="k must be smaller than the corpus.* got k=301 for 300"):
        plan_mining(tmp_path / "t", tmp_path / "t", k=301, **options)
    with pytest.raises(ValueError, match="a model or embeddings for the source and the target side"):
        plan_mining(tmp_path / "t", tmp_path / "t")


def test_more_of_everything_takes_longer() -> None:
    options = {"k": 4, "device": "cpu", "memory_mib": 64}
    small = search_seconds(20_000, 20_000, 64, **options)
    assert 30 < search_seconds(200_000, 200_000, 64, **options) / small < 300
