"""A run of several stages that was interrupted and resumed ends as an undisturbed one."""

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

OPTIONS: dict[str, Any] = {"training__max_steps": 6, "training__eval_steps": 1, "judged": True}
STEPS = [3, 3]
"""Of the two stages of the cascade; a checkpoint after every one."""


def train(out: Path, **options: Any) -> Any:
    return run(out, "xpr-cascade", **{**OPTIONS, **options})


def assert_same(found: Any, undisturbed: Any) -> None:
    assert [stage["name"] for stage in found.stages] == [stage["name"] for stage in undisturbed.stages]
    assert [stage["steps"] for stage in found.stages] == STEPS
    for mine, theirs in zip(found.stages, undisturbed.stages):
        assert mine["best_dev"] == pytest.approx(theirs["best_dev"], abs=1e-6)
    for name in ("model.safetensors", "2_Dense/model.safetensors"):
        left, right = (load_file(folder / name) for folder in (found.folder, undisturbed.folder))
        torch.testing.assert_close(left, right, rtol=0, atol=1e-6)
    losses = [[entry["loss"] for entry in result.history if "loss" in entry] for result in (found, undisturbed)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.slow
def test_interrupted_and_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the last stage: the stages before are not trained again."""
    undisturbed, out = train(tmp_path / "undisturbed"), tmp_path / "run"
    assert [stage["steps"] for stage in undisturbed.stages] == STEPS
    with monkeypatch.context() as patch:
        stop_at(patch, RankingTrainer, 6)
        with pytest.raises(TrainingInterrupted) as stop:
            train(out)
    assert stop.value.checkpoint == out / "training" / "stage-2" / "checkpoint-2"
    assert not (out / "model.safetensors").exists()
    assert_same(train(out, resume=True), undisturbed)
