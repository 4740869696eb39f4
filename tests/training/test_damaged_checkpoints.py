"""A damaged checkpoint is noticed: the one before is used, or the file is named; it is never called a full disk."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from sentence_transformers.base.evaluation import BaseEvaluator

from st_xling.training import CrossLingualTrainer, TrainingInterrupted, load_recipe, train
from st_xling.utils.io import is_disk_full
from tests.conftest import PAIRS
from tests.training.children import stop_at
from tests.training.ranking_run import run as run_stages

ROWS = Dataset.from_dict({"source": [row[0] for row in PAIRS] * 4, "target": [row[1] for row in PAIRS] * 4})
FILES = ("model.safetensors", "optimizer.pt", "loss.safetensors", "trainer_state.json", "tokenizer.json")


def run(out: Path, *, resume: bool = False, evaluator: Any = None, **options: Any) -> Any:
    settings = {"max_steps": 6, "per_device_train_batch_size": 4, "eval_steps": 2, "save_total_limit": 5, **options}
    overrides = {f"arguments.{key}": value for key, value in settings.items()}
    recipe = load_recipe("dap", tiny=True, overrides=overrides)
    tiny = {"vocabulary": 200, "hidden_size": 16, "layers": 2}
    return train(recipe, ROWS, out, model="tiny", tiny=tiny, resume=resume, evaluator=evaluator)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("checkpoints") / "run"
    run(out)
    return out


@pytest.fixture
def interrupted(finished: Path, tmp_path: Path) -> Path:
    """As a run that was killed after its last checkpoint, before the model was saved."""
    out = Path(shutil.copytree(finished, tmp_path / "run"))
    record = out / "training" / "run.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "finished": False}))
    return out


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink], ids=["flipped", "truncated", "missing"])
@pytest.mark.parametrize("name", FILES)
def test_the_checkpoint_before_is_used(
    name: str, damage: Callable[[Path], None], finished: Path, interrupted: Path, caplog: Any
) -> None:
    """5 of 18 damaged checkpoints gave other weights in silence, 3 a traceback, one "No space left on device"."""
    damage(interrupted / "training" / "checkpoint-6" / name)
    result = run(interrupted, resume=True)
    assert f"checkpoint-6/{name}: damaged, so checkpoint-4 is used instead" in caplog.text
    assert result.steps == 6
    expected = load_file(finished / "model.safetensors")
    for key, tensor in load_file(interrupted / "model.safetensors").items():
        torch.testing.assert_close(tensor, expected[key], rtol=0, atol=1e-6)


def test_a_damaged_record_counts_as_damage(interrupted: Path, caplog: Any) -> None:
    truncate(interrupted / "training" / "checkpoint-6" / "done.json")
    assert run(interrupted, resume=True).steps == 6
    assert "checkpoint-6/done.json: damaged" in caplog.text


def test_without_an_intact_checkpoint_the_files_are_named(interrupted: Path) -> None:
    for step in (2, 4, 6):
        flip(interrupted / "training" / f"checkpoint-{step}" / "model.safetensors")
    with pytest.raises(ValueError, match=r"every checkpoint in .* is damaged \(checkpoint-6/model.safetensors, .*-4/"):
        run(interrupted, resume=True)


def test_a_damaged_base_of_adapters_is_named(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(out, **{"lora.rank": 2})
    flip(out / "training" / "base" / "model.safetensors")
    with pytest.raises(ValueError, match=r"training/base/model.safetensors is damaged"):
        run(out, resume=True, **{"lora.rank": 2, "max_steps": 8})


def test_what_torch_says_of_a_damaged_file_is_no_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "optimizer.pt"
    torch.save({"a": torch.zeros(1000)}, path)
    truncate(path)
    with pytest.raises(RuntimeError) as caught:
        torch.load(path)
    assert not is_disk_full(caught.value)
    assert is_disk_full(RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0"))
    assert is_disk_full(
        RuntimeError("[enforce fail at inline_container.cc:858] . PytorchStreamWriter failed writing file")
    )


def test_a_damaged_model_between_stages_is_named(tmp_path: Path) -> None:
    """The second stage of a cross-encoder would start from it."""
    options: dict[str, Any] = {"arguments__max_steps": 2, "arguments__eval_steps": 1, "judged": False}
    run_stages(tmp_path / "run", "xpr-cascade", **options)
    flip(tmp_path / "run" / "training" / "stage-1" / "model" / "model.safetensors")
    with pytest.raises(ValueError, match=r"stage-1/model/model.safetensors is damaged"):
        run_stages(tmp_path / "run", "xpr-cascade", resume=True, **options)


class Falling(BaseEvaluator):
    """Scores that fall from one evaluation to the next, so that the first checkpoint is the best."""

    def __init__(self, calls: int = 0) -> None:
        super().__init__()
        self.primary_metric, self.calls = "accuracy", calls

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        self.calls += 1
        return {"accuracy": 1 / self.calls}


def test_a_best_checkpoint_that_is_gone_lends_no_score(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    """A resumed run saved its last model, and reported the score of the checkpoint that somebody had removed."""
    out = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        stop_at(patch, CrossLingualTrainer, 4)
        run(out, evaluator=Falling(), max_steps=4, eval_steps=1)
    shutil.rmtree(out / "training" / "checkpoint-1")
    result = run(out, evaluator=Falling(3), max_steps=4, eval_steps=1, resume=True)
    assert result.best == 1 / 4
    assert "checkpoint-1, the best checkpoint, is missing" in caplog.text
