"""Nothing that is no longer a number is saved: the run stops and names what it was."""

import math
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments
from torch import Tensor

from st_xling.losses import CachedLoss, TranslationRankingLoss
from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.training import CrossLingualTrainer
from st_xling.training.trainer import NotFiniteError


class Spoilt(CrossLingualLoss):
    """Well until its ``at``-th call, which gives ``value``."""

    def __init__(self, model: Any, *, at: int, value: float) -> None:
        super().__init__(model)
        self.at, self.value, self.calls = at, value, 0

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        self.calls += 1
        mean = batch[0]["sentence_embedding"].mean()
        return mean * 0.01 if self.calls != self.at else mean * 0 + self.value


def trainer(model: Any, loss: Any, pairs: Any, folder: Path, **options: Any) -> CrossLingualTrainer:
    settings = {"per_device_train_batch_size": 4, "max_steps": 8, "save_steps": 3, "logging_steps": 1}
    common = {"report_to": "none", "disable_tqdm": True, "use_cpu": True}
    arguments = SentenceTransformerTrainingArguments(output_dir=str(folder), **{**settings, **common, **options})
    sides = list(zip(*(pairs * 2)))
    rows = Dataset.from_dict({"source": sides[0], "target": sides[1]})
    return CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)


@pytest.mark.parametrize(("value", "cached"), [(math.nan, True), (-math.inf, False)])
def test_a_component(value: float, cached: bool, make_model: Any, pairs: Any, tmp_path: Path) -> None:
    """In step 5, of two terms: the one is named, and checkpoint 3 is the last."""
    model = make_model()
    spoilt = Spoilt(model, at=5, value=value)
    loss: Any = TranslationRankingLoss(model) + spoilt
    run = trainer(model, CachedLoss(loss, mini_batch_size=2) if cached else loss, pairs, tmp_path)
    with pytest.raises(NotFiniteError, match=f"by training step 5: .*spoilt is {value}") as caught:
        run.train()
    assert caught.value.step == 5 and caught.value.checkpoint == tmp_path / "checkpoint-3"
    assert list(caught.value.values) == ["loss", "spoilt"]
    assert f"--model {tmp_path / 'checkpoint-3'}" in str(caught.value)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-3"]


@pytest.mark.parametrize("save_strategy", ["steps", "no"])
def test_a_weight_that_the_last_step_spoilt(save_strategy: str, make_model: Any, pairs: Any, tmp_path: Path) -> None:
    """No later loss would tell: the checkpoint does, and is not written."""
    model = make_model()
    options = {"max_steps": 1, "learning_rate": 1e39, "lr_scheduler_type": "constant", "save_strategy": save_strategy}
    run = trainer(model, TranslationRankingLoss(model), pairs, tmp_path, **options)
    with pytest.raises(NotFiniteError, match=r"step 1: weight 0\..* is not finite"):
        run.train()
    assert not list(tmp_path.glob("checkpoint-*"))
