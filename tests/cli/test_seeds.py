"""One command for several seeds: each run kept as if it had been alone, and the mean of their results."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from st_xling.cli import main

TRAIN = ["train", "tr", "--model", "tiny", "--data", "phrasebook:de?size=60", "--max-steps", "2", "--batch-size", "8"]
TRAIN += ["--eval-steps", "2", "--tiny", "hidden_size=16", "--tiny", "layers=1", "--tiny", "vocabulary=200"]


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def test_runs_are_those_of_single_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs"
    assert main([*TRAIN, "--seeds", "0,3", "--out", str(out), "--json", str(tmp_path / "f.json")]) == 0
    assert "training.best_dev" in capsys.readouterr().out
    assert main([*TRAIN, "--seed", "3", "--out", str(tmp_path / "single")]) == 0
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (out / "seed-3", tmp_path / "single"))
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    summary = json.loads((out / "seeds.json").read_text(encoding="utf-8"))
    assert summary == json.loads((tmp_path / "f.json").read_text(encoding="utf-8")) and summary["seeds"] == [0, 3]
    best = [results(out / f"seed-{seed}")["training"]["best_dev"] for seed in (0, 3)]
    entry = summary["results"]["training.best_dev"]
    assert entry["values"] == best and entry["mean"] == pytest.approx(statistics.fmean(best))
    assert entry["sd"] == pytest.approx(statistics.stdev(best), abs=1e-4)
    command = json.loads((out / "seed-3" / "training" / "run.json").read_text(encoding="utf-8"))["command"]
    assert command.endswith(f"--seed 3 --out {out / 'seed-3'}") and "--seeds" not in command

    before = {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint-*")}
    assert main([*TRAIN, "--seeds", "0,3,4", "--out", str(out), "--resume"]) == 0
    assert before.keys() <= {path for path in out.rglob("checkpoint-*")}
    assert json.loads((out / "seeds.json").read_text(encoding="utf-8"))["seeds"] == [0, 3, 4]


def test_an_occupied_folder_is_found_before_the_first_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "out" / "seed-1"
    other.mkdir(parents=True)
    (other / "mine.txt").write_text("precious")
    assert main([*TRAIN, "--seeds", "0,1", "--out", str(tmp_path / "out")]) == 2
    assert "seed-1 holds something else" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["seed-1"]
