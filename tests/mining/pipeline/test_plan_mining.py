"""The plan: a sample is measured and scaled to all lines, and nothing is written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import mine_texts, plan_mining, write_store
from st_xling.mining.pipeline import plan_mining as planning


def test_it_measures_a_sample_and_writes_nothing(
    make_model: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "EMBEDDED", 100)
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"ein Satz\n\n" * 300 + b"der letzte"))
    (tmp_path / "t").write_text("a sentence\n" * 50, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    model = make_model()
    plan = plan_mining(tmp_path / "s.gz", tmp_path / "t", model=model, work=tmp_path / "deep" / "work", k=2)
    assert sorted(tmp_path.rglob("*")) == before
    assert plan.rows == {"source": 601, "target": 50} and plan.dim == 16
    assert plan.measured == {"source": 43, "target": 50}  # of 301 lines that are not blank, each seventh
    assert plan.vector_bytes == 16 * 4
    measured = plan.encoded_in["source"] * 601 / 43 + plan.encoded_in["target"]
    assert plan.encode_seconds == pytest.approx(measured) and plan.encoded_in["source"] > 0
    assert plan.search_seconds == pytest.approx(plan.searched_in * 601 / 43) and plan.searched_in > 0
    assert plan.lines()[:2] == ["source: 601 lines, 43 of them measured", "target: 50 lines, 50 of them measured"]
    assert [line.split(":")[0] for line in plan.lines()[2:]] == ["time", "memory", "disk"]
    assert plan.as_dict()["search_seconds"] == plan.search_seconds and plan.disk_bytes < plan.disk_free_bytes
    mine_texts(tmp_path / "s.gz", tmp_path / "t", tmp_path / "o", model=model, k=1, work=tmp_path / "w", keep_work=True)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path not in before]
    assert sum(path.stat().st_size for path in kept if path.suffix == ".safetensors") < plan.disk_bytes


def test_ten_times_the_lines(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Ten times the time to embed, a hundred times the time to search, ten times the disk."""
    (tmp_path / "t").write_text("a sentence\n" * 40, encoding="utf-8")
    plan = plan_mining(tmp_path / "t", tmp_path / "t", model=make_model(), dtype="int8")
    more = replace(plan, rows={side: 10 * rows for side, rows in plan.rows.items()})
    assert more.encode_seconds == pytest.approx(10 * plan.encode_seconds)
    assert more.search_seconds == pytest.approx(100 * plan.search_seconds)
    assert more.disk_bytes == 10 * plan.disk_bytes and plan.vector_bytes == 16 + 4
    assert more.memory_bytes - plan.memory_bytes == 9 * 80 * 12 * 4


def test_of_ready_embeddings_only_the_search_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "READY", 60)
    (tmp_path / "t").write_text("a sentence\n" * 90, encoding="utf-8")
    vectors = np.random.default_rng(0).standard_normal((90, 24), dtype=np.float32)
    write_store(tmp_path / "store", vectors)
    sides: Any = (tmp_path / "t", tmp_path / "t")
    options: dict[str, Any] = {"source_embeddings": tmp_path / "store", "target_embeddings": tmp_path / "store"}
    plan = plan_mining(*sides, **options)
    assert plan.encode_seconds == 0 and plan.dim == 24 and plan.measured == {"source": 45, "target": 45}
    assert plan.search_seconds == pytest.approx(4 * plan.searched_in)
    assert ": not enough" in replace(plan, disk_free_bytes=0).lines()[-1]
    with pytest.raises(ValueError, match="k must be smaller than the corpus.* got k=901 for 90"):
        plan_mining(*sides, k=901, **options)
    with pytest.raises(ValueError, match="a model or embeddings for the source and the target side"):
        plan_mining(*sides)


def test_a_single_line_of_each_text(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a sentence\n", encoding="utf-8")
    ready = np.ones((1, 4), dtype=np.float32)
    plan = plan_mining(tmp_path / "t", tmp_path / "t", source_embeddings=ready, target_embeddings=ready, k=1)
    assert plan.measured == {"source": 1, "target": 1}
