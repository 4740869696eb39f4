"""``mini_batch_size: auto``: the size that is found fits, nothing else is changed, and a resumed run keeps it."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformerTrainingArguments

from st_xling.cli import build_parser
from st_xling.cli.train import overrides
from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer, load_recipe, train
from st_xling.training.auto_batch import MIB, choose_mini_batch, largest_that_fits, step

ROWS = 48
ROW = {"source": "Der Hund schläft unter dem Tisch. " * 9, "target": "The dog is sleeping under the table. " * 9}


def ready(folder: Path, **options: Any) -> CrossLingualTrainer:
    model = tiny_encoder([*ROW.values()], vocabulary=60, layers=2, hidden_size=256, max_length=64, dropout=0.1)
    common = {"per_device_train_batch_size": ROWS, "report_to": "none", "disable_tqdm": True}
    arguments = SentenceTransformerTrainingArguments(output_dir=str(folder), **{**common, **options})
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1)
    rows = Dataset.from_dict({name: [text] * 4 for name, text in ROW.items()})
    return CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 48, 97, 128])
def test_the_search_finds_the_largest_even_number(most: int) -> None:
    for limit in range(most + 2):
        tried: list[int] = []

        def fits(size: int, limit: int = limit, tried: list[int] = tried) -> bool:
            tried.append(size)
            return size <= limit

        expected = most if most <= limit else limit // 2 * 2 or None
        assert largest_that_fits(fits, most) == expected
        assert len(tried) <= 2 * most.bit_length() + 1 and all(size == most or size % 2 == 0 for size in tried)


def test_a_processor_is_told_to_name_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got cpu; give a number of rows, such as --mini-batch-size 32"):
        choose_mini_batch(ready(tmp_path, use_cpu=True), ROW, batch_size=ROWS)


def test_a_resumed_run_keeps_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [0]
    monkeypatch.setattr("st_xling.training.encoder.choose_mini_batch", lambda *args, **options: sizes.pop())
    data = {"de": parallel_phrases("de", "en", size=60)}
    steps = {"training.max_steps": 2, "training.eval_steps": 1, "training.per_device_train_batch_size": 16}
    recipe = load_recipe("dap", tiny=True, overrides={**steps, "training.mini_batch_size": "auto"})
    tiny = {"vocabulary": 400, "hidden_size": 32, "layers": 2}
    out = tmp_path / "run"
    train(recipe, data, out, model="tiny", tiny=tiny)
    manifest = json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))
    assert manifest["mini_batch_size"] == 0 and manifest["recipe"]["training"]["mini_batch_size"] == "auto"
    # As if the machine had been smaller when the run began, and then had been killed before its first checkpoint.
    for checkpoint in (out / "training").glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    (out / "training" / "run.json").write_text(json.dumps({**manifest, "mini_batch_size": 4}), encoding="utf-8")
    for _ in range(2):  # from the start, and from the last checkpoint
        train(recipe, data, out, model="tiny", tiny=tiny, resume=True)
        assert json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))["mini_batch_size"] == 4
        saved = load_file(out / "training" / "checkpoint-2" / "loss.safetensors")
        assert all(name.startswith("loss.terms.") for name in saved)  # a cached loss's own


def test_automatic_batches_are_the_recipes(tmp_path: Path) -> None:
    words = ["train", "langcl", "--data", "x", "--out", "y", "--memory-budget", "500", "--model", "a/b"]
    for flag in ("--batch-size", "--mini-batch-size"):
        options = load_recipe("langcl", overrides=overrides(build_parser().parse_args([*words, flag, "auto"]))).training
        assert (options.per_device_train_batch_size, options.mini_batch_size, options.memory_budget) == (
            48,
            "auto",
            500,
        )
    path = tmp_path / "mine.yaml"
    path.write_text(
        "losses: {translation_ranking: {}}\ntraining: {per_device_train_batch_size: auto}\n", encoding="utf-8"
    )
    assert load_recipe(str(path)).training.mini_batch_size == "auto"
    assert load_recipe(str(path)).training.per_device_train_batch_size == 128


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_on_a_gpu_a_step_stays_within_the_budget_and_nothing_else_changes(tmp_path: Path, logged: Any) -> None:
    trainer, budget = ready(tmp_path), 160
    trainer.model.eval()
    before, state = copy.deepcopy(trainer.loss.state_dict()), torch.get_rng_state()
    size = choose_mini_batch(trainer, ROW, batch_size=ROWS, budget_mib=budget)
    assert 2 <= size < ROWS and size % 2 == 0
    assert f"batches of {ROWS} rows: mini-batches of {size} rows fit into {budget} MiB" in logged()
    assert torch.equal(torch.get_rng_state(), state) and not trainer.model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.loss.state_dict().items())
    assert all(part.grad is None for part in trainer.loss.parameters())
    torch.cuda.reset_peak_memory_stats()
    resident = torch.cuda.memory_allocated()
    step(trainer, ROW, ROWS, size)
    assert torch.cuda.max_memory_allocated() - resident <= budget * MIB
    trainer.loss.zero_grad(set_to_none=True)
    assert choose_mini_batch(trainer, ROW, batch_size=ROWS) == 0
    with pytest.raises(ValueError, match="mini-batches of two rows needs more than the 1 MiB .* shorten model.max_len"):
        choose_mini_batch(trainer, ROW, batch_size=ROWS, budget_mib=1)
