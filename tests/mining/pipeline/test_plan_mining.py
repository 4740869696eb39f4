"""Plans: a sample is measured and scaled to all lines, and nothing is written."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import SearchOptions, mine_texts, plan_mining, write_store
from st_xling.mining.pipeline import text_mining as planning


def test_it_measures_a_sample_and_writes_nothing(
    make_model: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MEASURED_ENCODED", 100)
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"ein Satz\n\n" * 300 + b"der letzte"))
    (tmp_path / "t").write_text("a sentence\n" * 50, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    model = make_model()
    plan = plan_mining(tmp_path / "s.gz", tmp_path / "t", model=model, search=SearchOptions(k=2))
    assert sorted(tmp_path.rglob("*")) == before
    assert plan.rows == {"source": 601, "target": 50}
    assert plan.measured == {"source": 43, "target": 50}  # of 301 lines that are not blank, each seventh
    assert plan.encode_seconds > 0 and plan.search_seconds > 0
    assert plan.disk_bytes == 651 * (16 * 4 + 16 * 2) and plan.memory_bytes == 256 * 2**20 + 651 * 12 * 2
    assert [line.split(":")[0] for line in plan.lines()] == ["source", "target", "time", "memory", "disk"]
    one_neighbor = SearchOptions(k=1)
    mine_texts(tmp_path / "s.gz", tmp_path / "t", tmp_path / "o", model=model, search=one_neighbor, work=tmp_path / "w")
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path not in before]
    assert sum(path.stat().st_size for path in kept if path.suffix == ".safetensors") < plan.disk_bytes


def test_of_ready_embeddings_only_the_search_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MEASURED_PRECOMPUTED", 60)
    (tmp_path / "t").write_text("a sentence\n" * 90, encoding="utf-8")
    write_store(tmp_path / "store", np.random.default_rng(0).standard_normal((90, 24), dtype=np.float32))
    sides: Any = (tmp_path / "t", tmp_path / "t")
    options: dict[str, Any] = {"source_embeddings": tmp_path / "store", "target_embeddings": tmp_path / "store"}
    plan = plan_mining(*sides, **options)
    assert plan.encode_seconds == 0 < plan.search_seconds and plan.measured == {"source": 45, "target": 45}
    with pytest.raises(ValueError, match=r"k=901 .* 90"):
        plan_mining(*sides, search=SearchOptions(k=901), **options)


def test_a_single_line_of_each_text(tmp_path: Path) -> None:
    """From one line, no time of a second one can be estimated."""
    (tmp_path / "t").write_text("a sentence\n", encoding="utf-8")
    ready = np.ones((1, 4), dtype=np.float32)
    plan = plan_mining(
        tmp_path / "t",
        tmp_path / "t",
        source_embeddings=ready,
        target_embeddings=ready,
        search=SearchOptions(k=1),
    )
    assert plan.measured == {"source": 1, "target": 1}
