"""Training runs of cross-encoders: stages, losses, heads, adapters, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, InputExample
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from torch.utils.data import DataLoader

from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.models.lora import has_adapters
from st_xling.training import NotFiniteError
from st_xling.training.reranker.ranking_losses import loss_names
from st_xling.training.reranker.recipe_files import load_cross_encoder_recipe
from st_xling.training.reranker.run import train_cross_encoder
from tests.training.reranker.ranking_run import TINY, run, sentences, xpi_rows

PAIRS = list(zip(*sentences()))


def same_scores(folder: Path, model: CrossEncoder) -> None:
    loaded = CrossEncoder(str(folder), device="cpu")
    assert loaded.predict(PAIRS) == pytest.approx(model.to("cpu").predict(PAIRS), abs=1e-6)


def test_xpi_then_cascade_is_three_stages(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "xpr-cascade", xpi=True)
    assert [stage["name"] for stage in result.stages] == ["xpi", "xpr-cascade 1/2", "xpr-cascade 2/2"]
    # The recipe's four steps are shared by its two stages; XPI has its own.
    assert [stage["steps"] for stage in result.stages] == [3, 2, 2] and result.steps == 7
    assert result.stages[0]["best_dev"] is None and result.best == result.stages[-1]["best_dev"] > 0
    same_scores(tmp_path / "run", result.model)
    training = tmp_path / "run" / "training"
    manifest = json.loads((training / "run.json").read_text(encoding="utf-8"))
    assert manifest["finished"] is True and list(manifest["data"]) == [stage["name"] for stage in result.stages]
    figures = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["training"]
    assert figures["steps"] == 7 and figures["stages"] == result.stages
    log = [json.loads(line) for line in (training / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [entry["stage"] for entry in log if "loss" in entry].count("xpr-cascade 2/2") == 2


def test_stage_two_keeps_the_encoder_and_replaces_the_head(tmp_path: Path) -> None:
    """With a rate of nearly nothing, what stage two ends with is what it began with."""
    options = {"training__learning_rate": 1e-12, "xpi__training__learning_rate": 1e-2}
    run(tmp_path / "run", xpi=True, judged=False, **options)
    before, after = tmp_path / "run" / "training" / "stage-1" / "model", tmp_path / "run"
    encoders = [load_file(folder / "model.safetensors") for folder in (before, after)]
    assert all(torch.allclose(encoders[0][key], encoders[1][key], atol=1e-7) for key in encoders[0])
    heads = [load_file(folder / "2_Dense" / "model.safetensors") for folder in (before, after)]
    assert not torch.allclose(heads[0]["linear.weight"], heads[1]["linear.weight"], atol=1e-3)
    assert heads[1]["linear.bias"].abs().max() < 1e-6 < heads[0]["linear.bias"].abs().max()


def test_cascade_keeps_the_head_too(tmp_path: Path) -> None:
    run(tmp_path / "run", "xpr-cascade", judged=False, training__learning_rate=1e-12)
    heads = [tmp_path / "run" / part / "2_Dense" / "model.safetensors" for part in ("training/stage-1/model", "")]
    first, last = (load_file(path)["linear.weight"] for path in heads)
    assert torch.allclose(first, last, atol=1e-7)


@pytest.mark.parametrize("loss", loss_names())
def test_every_loss_trains(loss: str, tmp_path: Path) -> None:
    result = run(tmp_path / "run", "xpr-merged", loss=loss, judged=False, training__max_steps=2)
    losses = [entry["loss"] for entry in result.history if "loss" in entry]
    assert len(losses) == 2 and np.isfinite(losses).all()
    assert (tmp_path / "run" / "training" / "checkpoint-2").is_dir()  # one stage: where an encoder's are


def test_it_learns(tmp_path: Path) -> None:
    """Queries whose passage is themselves, among others: binary cross-entropy falls well below log 2."""
    steps = {"training__max_steps": 120, "training__eval_steps": 60, "training__log_steps": 20}
    result = run(tmp_path / "run", "xpi", stages=[xpi_rows(6)], judged=False, **steps, training__learning_rate=3e-3)
    losses = [entry["loss"] for entry in result.history if "loss" in entry]
    assert losses[0] > 0.5 and losses[-1] < 0.3


@pytest.mark.parametrize("head", ["cls", "pooler"])
@pytest.mark.parametrize("merge", [True, False])
def test_lora_trains_and_keeps_the_head(head: str, merge: bool, tmp_path: Path) -> None:
    options = {"training__lora__rank": 2, "training__lora__merge": merge, "head": head}
    result = run(tmp_path / "run", **options)
    assert has_adapters(result.model) is not merge
    assert (tmp_path / "run" / "adapter_model.safetensors").is_file() is not merge
    same_scores(tmp_path / "run", result.model)
    base = CrossEncoder(str(tmp_path / "run" / "training" / "base"), device="cpu")
    assert not np.allclose(base.predict(PAIRS), result.model.predict(PAIRS), atol=1e-3)
    last = CrossEncoder(str(tmp_path / "run" / "training" / "checkpoint-4"), device="cpu")  # best or last: it loads
    before, after = (dict(model.state_dict()) for model in (base, last))
    names = {"cls": ["2.linear.weight"], "pooler": ["classifier.weight", "pooler.dense.weight"]}[head]
    for name in names:
        *_, stem, kind = name.split(".")
        old = next(value for key, value in before.items() if key.endswith(name))
        new = [value for key, value in after.items() if stem in key and key.endswith(kind) and "original" not in key]
        assert any(value.shape == old.shape and not torch.equal(value, old) for value in new), name


def test_from_a_saved_cross_encoder(tmp_path: Path) -> None:
    first = run(tmp_path / "first", judged=False)
    kept = run(tmp_path / "kept", model=str(first.folder), head="keep", judged=False, training__learning_rate=1e-12)
    assert kept.model.predict(PAIRS) == pytest.approx(first.model.predict(PAIRS), abs=1e-5)
    new = run(tmp_path / "new", model=str(first.folder), judged=False, training__learning_rate=1e-12)
    assert new.model.predict(PAIRS) != pytest.approx(first.model.predict(PAIRS), abs=1e-3)


def test_what_is_refused(tmp_path: Path) -> None:
    recipe = load_cross_encoder_recipe("xpr-mixed")
    with pytest.raises(ValueError, match="XPI needs a recipe and data: got its data and no recipe"):
        train_cross_encoder(recipe, [xpi_rows()], tmp_path / "run", xpi=xpi_rows())
    with pytest.raises(ValueError, match="the model 'tiny' has no head to keep"):
        run(tmp_path / "run", head="keep")
    with pytest.raises(ValueError, match="a query is never cut, and none of 32 leaves room for a passage in 4 tokens"):
        run(tmp_path / "run", model__max_length=4)
    with pytest.raises(ValueError, match="shared by 2 stages: got 1"):
        run(tmp_path / "run", "xpr-cascade", training__max_steps=1)
    assert not (tmp_path / "run").exists()
    run(tmp_path / "run", judged=False)
    with pytest.raises(ValueError, match="holds an earlier run"):
        run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"--resume must repeat the run .*recipe\.training\.seed"):
        run(tmp_path / "run", resume=True, judged=False, training__seed=5)
    assert run(tmp_path / "run", overwrite=True, judged=False).steps == 4


def test_numbers_that_are_none_stop_it(tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match="expected finite numbers in training step"):
        run(tmp_path / "run", judged=False, training__learning_rate=1e30, training__max_grad_norm=0.0)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def host_model() -> CrossEncoder:
    texts = [text for pair in PAIRS for text in pair]
    return tiny_cross_encoder(texts, **TINY, max_length=64).to("cpu")


def test_the_host_s_trainer_takes_our_models(tmp_path: Path) -> None:
    model, rows = host_model(), xpi_rows().select_columns(["query", "passage", "label"])
    rows = rows.map(lambda row: {"passage": row["passage"] * 9})  # longer than the model, which the host counts alone
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(tmp_path), max_steps=2, report_to="none", disable_tqdm=True, save_strategy="no"
    )
    before = model.predict(PAIRS)
    trainer: Any = CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=rows, loss=BinaryCrossEntropyLoss(model)
    )
    assert np.isfinite(trainer.train().training_loss)
    assert not np.array_equal(model.to("cpu").predict(PAIRS), before)


def test_the_host_s_fit_takes_our_models() -> None:
    model = host_model()
    before = model.predict(PAIRS)
    rows: Any = [InputExample(texts=list(pair), label=1.0) for pair in PAIRS]
    model.fit(train_dataloader=DataLoader(rows, batch_size=8), epochs=1, warmup_steps=0, show_progress_bar=False)  # type: ignore[arg-type]
    assert (model.to("cpu").predict(PAIRS) > before).all()
