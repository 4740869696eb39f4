"""A run of several stages that was stopped, in any of them, ends as one that never was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from st_xling.training import TrainingInterrupted
from st_xling.training.reranker import RankingTrainer
from tests.training.children import stop_at
from tests.training.ranking_run import run

OPTIONS: dict[str, Any] = {"xpi": True, "training__max_steps": 6, "training__eval_steps": 1, "judged": True}
STEPS = [3, 3, 3]
"""Of XPI and of the two stages of the cascade; a checkpoint after every one."""


def train(out: Path, **options: Any) -> Any:
    return run(out, "xpr-cascade", **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    result = train(tmp_path_factory.mktemp("undisturbed") / "run")
    assert [stage["steps"] for stage in result.stages] == STEPS
    return result


def assert_same(found: Any, undisturbed: Any) -> None:
    assert [stage["name"] for stage in found.stages] == [stage["name"] for stage in undisturbed.stages]
    assert [stage["steps"] for stage in found.stages] == STEPS
    for mine, theirs in zip(found.stages, undisturbed.stages):
        assert mine["best_dev"] == pytest.approx(theirs["best_dev"], abs=1e-6)
    for name in ("model.safetensors", "2_Dense/model.safetensors"):
        left, right = (load_file(folder / name) for folder in (found.folder, undisturbed.folder))
        torch.testing.assert_close(left, right, rtol=0, atol=0)
    losses = [[entry["loss"] for entry in result.history if "loss" in entry] for result in (found, undisturbed)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.parametrize(
    ("step", "stands"),
    [
        pytest.param(1, None, marks=pytest.mark.slow),
        (4, "stage-1/model"),  # the second stage has no checkpoint of its own yet
        (9, "stage-3/checkpoint-2"),
    ],
)
def test_interrupted_and_resumed(
    step: int, stands: str | None, undisturbed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at(patch, RankingTrainer, step)
        with pytest.raises(TrainingInterrupted) as stop:
            train(out)
    assert stop.value.checkpoint == (None if stands is None else out / "training" / stands)
    assert not (out / "model.safetensors").exists()
    assert_same(train(out, resume=True), undisturbed)


@pytest.mark.slow
def test_adapters_resume(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options: dict[str, Any] = {"training__lora__rank": 2, "head": "pooler", "training__lora__dropout": 0.1}
    options |= {"xpi": False, "judged": False}
    whole = train(tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        stop_at(patch, RankingTrainer, 5)
        with pytest.raises(TrainingInterrupted):
            train(tmp_path / "torn", **options)
    torn = train(tmp_path / "torn", resume=True, **options)
    left, right = (load_file(result.folder / "model.safetensors") for result in (torn, whole))
    torch.testing.assert_close(left, right, rtol=0, atol=1e-6)
