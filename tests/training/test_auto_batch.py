"""``mini_batch_size: auto``: the size that is found fits, nothing else is changed, and a resumed run keeps it."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformerTrainingArguments

from st_xling.cli import build_parser
from st_xling.cli.train import overrides
from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import CachedLoss, RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer, load_recipe, train
from st_xling.training.auto_batch import (
    MIB,
    _clear_gradients,
    _step,
    choose_mini_batch,
    container_room,
    largest_that_fits,
    most_allocated,
)

ROWS = 48
ROW = {"source": "Der Hund schläft unter dem Tisch. " * 9, "target": "The dog is sleeping under the table. " * 9}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> CrossLingualTrainer:
    """About 8 MiB of activations a row."""
    return ready(tmp_path_factory.mktemp("auto"), use_cpu=True)


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


def test_what_is_found_fits_the_budget(wide: CrossLingualTrainer, capsys: pytest.CaptureFixture[str]) -> None:
    """The budget lies between two rows and the whole batch; what a real mini-batch keeps alive stays within it."""
    budget = 200
    size = choose_mini_batch(wide, ROW, batch_size=ROWS, budget_mib=budget)
    assert 4 <= size < ROWS and size % 2 == 0
    assert f"batches of {ROWS} rows: mini-batches of {size} rows fit into {budget} MiB" in capsys.readouterr().err
    assert held_by(wide, size) < budget * MIB < held_by(wide, ROWS)


def held_by(trainer: CrossLingualTrainer, size: int) -> int:
    """Bytes that the graph of one mini-batch keeps for the backward pass, counted tensor by tensor."""
    seen: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        _step(trainer, ROW, size, size)
    _clear_gradients(trainer)
    return sum(seen.values())


@pytest.mark.slow
def test_more_memory_larger_mini_batches(wide: CrossLingualTrainer) -> None:
    sizes = [choose_mini_batch(wide, ROW, batch_size=ROWS, budget_mib=budget) for budget in (150, 300, 100_000)]
    assert 2 <= sizes[0] < sizes[1] < ROWS
    assert sizes[2] == 0  # everything at once
    assert choose_mini_batch(wide, ROW, batch_size=ROWS) == 0  # by what is free here


@pytest.mark.slow
def test_too_little_memory(wide: CrossLingualTrainer) -> None:
    with pytest.raises(ValueError, match="mini-batches of two rows needs more than the 1 MiB .* shorten model.max_len"):
        choose_mini_batch(wide, ROW, batch_size=ROWS, budget_mib=1)


def test_nothing_else_changes(wide: CrossLingualTrainer) -> None:
    wide.model.eval()
    before = copy.deepcopy(wide.loss.state_dict())
    state = torch.get_rng_state()
    choose_mini_batch(wide, ROW, batch_size=ROWS, budget_mib=200)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in wide.loss.state_dict().items())
    assert all(part.grad is None for part in wide.loss.parameters())
    assert not wide.model.training and wide.optimizer is None and wide.state.global_step == 0
    assert not isinstance(wide.loss, CachedLoss)
    assert float(wide.accum_loss_components["train"].get("steps", 0)) == 0


@pytest.mark.slow
def test_a_resumed_run_keeps_the_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"de": parallel_phrases("de", "en", size=60)}
    steps = {"training.max_steps": 2, "training.eval_steps": 1, "training.per_device_train_batch_size": 16}
    recipe = load_recipe("dap", tiny=True, overrides={**steps, "training.mini_batch_size": "auto"})
    tiny = {"vocabulary": 400, "hidden_size": 32, "layers": 2}
    out = tmp_path / "run"
    train(recipe, data, out, tiny=tiny)
    assert "batches of 16 rows: the whole batch fits" in capsys.readouterr().err
    manifest = json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))
    assert manifest["mini_batch_size"] == 0 and manifest["recipe"]["training"]["mini_batch_size"] == "auto"
    # As if the machine had been smaller when the run began, and then had been killed before its first checkpoint.
    for checkpoint in (out / "training").glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    (out / "training" / "run.json").write_text(json.dumps({**manifest, "mini_batch_size": 4}), encoding="utf-8")
    for _ in range(2):  # from the start, and from the last checkpoint
        train(recipe, data, out, tiny=tiny, resume=True)
        assert "batches of 16 rows" not in capsys.readouterr().err
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


@pytest.mark.parametrize("size", ["atuo", 3, -2])
def test_sizes_that_cannot_be(size: Any) -> None:
    with pytest.raises(ValueError, match=r"mini_batch_size is out of range \(it must be even, or 'auto'\): got "):
        load_recipe("tr", overrides={"training.mini_batch_size": size})


def test_what_is_allocated_at_once() -> None:
    def work() -> None:
        torch.ones(MIB)  # 4 MiB, freed at once
        kept = [torch.ones(MIB), torch.ones(MIB)]
        kept.clear()

    assert most_allocated(work) == 8 * MIB


def test_a_containers_limit(tmp_path: Path) -> None:
    assert container_room(tmp_path) == float("inf")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("100\n")
    assert container_room(tmp_path) == float("inf")
    (tmp_path / "memory.max").write_text("1000\n")
    assert container_room(tmp_path) == 900
    assert psutil.virtual_memory().available > 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_on_a_gpu_a_step_stays_within_the_budget(tmp_path: Path) -> None:
    trainer, budget = ready(tmp_path), 160
    size = choose_mini_batch(trainer, ROW, batch_size=ROWS, budget_mib=budget)
    assert 2 <= size < ROWS and size % 2 == 0
    torch.cuda.reset_peak_memory_stats()
    resident = torch.cuda.memory_allocated()
    _step(trainer, ROW, ROWS, size)
    assert torch.cuda.max_memory_allocated() - resident <= budget * MIB
    _clear_gradients(trainer)
    assert choose_mini_batch(trainer, ROW, batch_size=ROWS) == 0
