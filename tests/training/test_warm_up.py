"""New vocabulary heads learn alone first, and leave encoder, batches and random numbers of training as they were."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.losses import base
from st_xling.models import tiny_encoder
from st_xling.training import load_recipe, train
from st_xling.training.warm_up import WARM_UP_STEPS


@pytest.fixture
def start(data: Any, tmp_path: Path) -> str:
    """A saved encoder: pretrained, as far as a run can tell."""
    texts = [text for part in data.values() for side in ("source", "target") for text in part[side]]
    tiny_encoder(texts, vocabulary=200, hidden_size=16, layers=2).save_pretrained(str(tmp_path / "start"))
    return str(tmp_path / "start")


def run(data: Any, start: str, out: Path, name: str = "dap", **options: Any) -> Any:
    overrides = {"arguments.max_steps": 2, "arguments.per_device_train_batch_size": 8, "arguments.logging_steps": 1}
    overrides |= {f"arguments.{key}": value for key, value in options.items()}
    result = train(load_recipe(name, overrides=overrides), data, out, model=start)
    return result, json.loads((out / "training" / "run.json").read_text())


@pytest.mark.parametrize("mini_batch_size", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_heads_learn_and_nothing_else_changes(data: Any, start: str, tmp_path: Path, mini_batch_size: int) -> None:
    options = {"mini_batch_size": mini_batch_size, "learning_rate": 1e-2}
    cold, record = run(data, start, tmp_path / "cold", warm_up_heads=0, **options)
    assert "warm_up_heads" not in record
    warm, record = run(data, start, tmp_path / "warm", warm_up_heads=30, **options)
    assert record["warm_up_heads"] == 30
    first = cold.history[0]
    other = warm.history[0]
    # The same batch, encoder and dropout: ranking has the same loss, reconstruction a much lower one.
    assert other["translation_ranking"] == pytest.approx(first["translation_ranking"], rel=1e-4)
    assert other["representation_translation"] < 0.95 * first["representation_translation"]
    assert all(weight.requires_grad for weight in warm.model.parameters())


def test_it_is_the_default_for_pretrained_encoders_without_a_head(data: Any, start: str, tmp_path: Path) -> None:
    assert run(data, start, tmp_path / "short")[1]["warm_up_heads"] == 2 < WARM_UP_STEPS  # no longer than training
    assert "warm_up_heads" not in run(data, start, tmp_path / "tr", "tr")[1]
    assert "warm_up_heads" not in run(data, "tiny", tmp_path / "tiny")[1]
    run(data, start, tmp_path / "mlm", "tr-tlm", save_vocabulary_head=True)
    assert "warm_up_heads" not in run(data, str(tmp_path / "mlm"), tmp_path / "headed", "tr-tlm")[1]


def test_only_heads_move(data: Any, start: str, tmp_path: Path, caplog: Any) -> None:
    base.warn_once.cache_clear()
    before = SentenceTransformer(start, device="cpu").state_dict()
    after = run(data, start, tmp_path / "run", warm_up_heads=5, learning_rate=1e-12)[0].model.state_dict()
    assert all(torch.allclose(before[name], tensor, atol=1e-6) for name, tensor in after.items())
    assert not [message for message in caplog.messages if "weights of its own" in message]  # they are saved
