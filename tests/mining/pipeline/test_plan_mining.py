"""The plan: lines counted, a part measured, nothing written."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import GuardOptions, mine_texts, plan_mining, write_store
from st_xling.mining.pipeline.plan_mining import approximate_seconds, search_seconds
from st_xling.mining.search.approximate import CandidateIndex


def test_it_counts_measures_and_writes_nothing(make_model: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"ein Satz\n" * 5000 + b"der letzte"))
    (tmp_path / "t").write_text("a sentence\n" * 300, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    model = make_model()
    plan = plan_mining(tmp_path / "s.gz", tmp_path / "t", model=model, work=tmp_path / "deep" / "work")
    assert sorted(tmp_path.rglob("*")) == before
    assert plan.rows == {"source": 5001, "target": 300} and plan.dim == 16
    assert 0 < plan.encode_seconds < 600 and 0 < plan.search_seconds < 60
    assert 5301 * (12 * 4 + 48 + 16) < plan.memory_bytes < 40 * 2**20 and 0 < plan.text_seconds < 60
    stores, texts, state = 5301 * 16 * 4, 5000 * 9 + 10 + 300 * 11, 5301 * 4 * 16
    assert plan.disk_bytes == stores + 2 * texts + state < plan.disk_free_bytes
    lines = plan.lines()
    assert lines[:3] == ["source: 5,001 lines", "target: 300 lines", "search: exact, dim 16, on cpu"]
    assert [line.split(":")[0] for line in lines[3:]] == ["time", "memory", "disk", "approximate instead"]
    assert plan.as_dict()["dim"] == 16 and plan.as_dict()["searches"]["exact"]["seconds"] == plan.search_seconds
    assert plan.calibrate_seconds == 0 and not plan.automatic
    mine_texts(tmp_path / "s.gz", tmp_path / "t", tmp_path / "o", model=model, k=1, work=tmp_path / "w", keep_work=True)
    taken = sum(path.stat().st_size for path in [*(tmp_path / "w").rglob("*"), tmp_path / "o"] if path.is_file())
    assert taken < plan.disk_bytes


def test_what_auto_picks_and_the_other_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_text("a sentence\n" * 900, encoding="utf-8")
    write_store(tmp_path / "store", np.ones((900, 24), dtype=np.float32))
    sides: Any = (tmp_path / "t", tmp_path / "t")
    options: dict[str, Any] = {"source_embeddings": tmp_path / "store", "target_embeddings": tmp_path / "store"}
    for most, picked, other in ((10**9, "exact", "approximate"), (10**6, "approximate", "exact")):
        monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", most)
        plan = plan_mining(*sides, method="auto", **options)
        assert plan.method == picked and plan.automatic
        assert plan.lines()[2] == f"search: {picked}, dim 24, on {plan.device}, picked by auto"
        assert plan.lines()[-1].startswith(f"{other} instead: about ")
        cost = plan.searches[picked]
        assert [plan.search_seconds, plan.memory_bytes] == list(cost.values()) and cost["seconds"] > 0
        assert all(cost["memory_bytes"] > 1800 * (12 * 4 + 48 + 16) for cost in plan.searches.values())
        assert plan_mining(*sides, method=picked, **options).lines()[2] == f"search: {picked}, dim 24, on {plan.device}"
    assert plan.encode_seconds == 0 and plan.dim == 24
    with pytest.raises(ValueError, match="k must be smaller than the corpus.* got k=901 for 900"):
        plan_mining(*sides, k=901, **options)
    with pytest.raises(ValueError, match="a model or embeddings for the source and the target side"):
        plan_mining(*sides)


def test_calibration_is_counted(make_model: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a sentence\n" * 2000, encoding="utf-8")
    np.ones((2000, 16), dtype=np.float32).tofile(tmp_path / "t.raw")
    sides: Any = (tmp_path / "t", tmp_path / "t")
    made: dict[str, Any] = {"source_embeddings": tmp_path / "t.raw", "target_embeddings": tmp_path / "t.raw", "dim": 16}
    plain = plan_mining(*sides, model=make_model(), **made)
    plan = plan_mining(*sides, model=make_model(), calibrate_with="known.tsv", **made)
    assert plan.calibrate_seconds > plan.search_seconds and plan.encode_seconds == 0
    vectors, sentences, state = 400 * 16 * 4, 400 * 11, 8 * 4 * 4400
    assert plan.disk_bytes - plain.disk_bytes == vectors + sentences + state
    assert any(" to calibrate" in line for line in plan.lines()) and not any("calibr" in line for line in plain.lines())
    with pytest.raises(ValueError, match="calibrate_with needs the model"):
        plan_mining(*sides, calibrate_with="known.tsv", **made)


def test_more_of_everything_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.perf_counter", time.process_time)  # whatever else this machine does
    options = {"k": 4, "device": "cpu", "memory_mib": 64}
    small = search_seconds(20_000, 20_000, 64, **options)
    assert 15 < search_seconds(200_000, 200_000, 64, **options) / small < 600  # more than the rows
    small = approximate_seconds(20_000, 20_000, 64, **options)
    assert 3 < approximate_seconds(200_000, 200_000, 64, **options) / small < 100  # about as the rows
    few, many = (CandidateIndex(f"IVF4096,PQ32x4fs?nprobe={probes}", 64) for probes in (16, 2048))
    times = [approximate_seconds(10**7, 10**7, 64, chosen=chosen, **options) for chosen in (few, many)]
    assert times[1] > 5 * times[0]
    assert few.bytes_per_vector < 4 * 64 <= CandidateIndex("IVF4096,Flat", 64).bytes_per_vector


def test_guards_are_counted(tmp_path: Path) -> None:
    """More where numbers never agree, so that all neighbours are looked at; nothing where guards are off."""
    seconds = {}
    for name, number in (("agree", 1), ("differ", 2)):
        sides = []
        for side, factor in (("s", 1), ("t", number)):
            sides.append(tmp_path / f"{name}.{side}")
            sides[-1].write_text("".join(f"{side} words {row * factor + 5000}\n" for row in range(600)))
        (tmp_path / "raw").write_bytes(np.ones((600, 4), dtype="<f4").tobytes())
        options: dict[str, Any] = {
            "source_embeddings": tmp_path / "raw",
            "target_embeddings": tmp_path / "raw",
            "dim": 4,
        }
        plan = plan_mining(*sides, **options)
        seconds[name] = plan.guard_seconds
        assert any("for the guards" in line for line in plan.lines())
        off = plan_mining(*sides, **options, guards=GuardOptions().with_flags(off=["all"]))
        assert off.guard_seconds == 0 and not any("guards" in line for line in off.lines())
    assert seconds["differ"] > seconds["agree"] > 0
