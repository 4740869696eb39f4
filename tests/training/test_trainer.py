"""The trainer with the host's arguments alone: what the loss learned is saved, restored, and missed when it is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import nn

from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss, WordAlignmentLoss
from st_xling.training import CrossLingualTrainer
from st_xling.training.checkpoint import load_loss_state, own_state, save_loss_state

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def rows(pairs: list[tuple[str, str]]) -> Dataset:
    sides = list(zip(*(pairs * 2)))
    return Dataset.from_dict({"source": sides[0], "target": sides[1]})


def arguments(folder: Path, **options: Any) -> SentenceTransformerTrainingArguments:
    settings = {
        "per_device_train_batch_size": 4,
        "num_train_epochs": 2,
        "learning_rate": 1e-2,
        "save_strategy": "steps",
        "save_steps": 3,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "batch_sampler": ShuffledBatchSampler,
    }
    return SentenceTransformerTrainingArguments(output_dir=str(folder), **{**settings, **options})


def trainer(model: nn.Module, rows: Any, folder: Path, loss: Any = None, **options: Any) -> CrossLingualTrainer:
    loss = loss or TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1)
    return CrossLingualTrainer(model=model, args=arguments(folder, **options), train_dataset=rows, loss=loss)


def head(run: SentenceTransformerTrainer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in own_state(run.loss, run.model).items()}


@pytest.fixture(scope="module")
def finished(make_model: Make, rows: Dataset, tmp_path_factory: pytest.TempPathFactory) -> CrossLingualTrainer:
    run = trainer(make_model(dropout=0.1), rows, tmp_path_factory.mktemp("host"))
    run.train()
    return run


def test_every_checkpoint_holds_the_loss(finished: CrossLingualTrainer) -> None:
    folders = sorted(Path(finished.args.output_dir).glob("checkpoint-*"))
    assert len(folders) == 3
    states = [load_file(folder / "loss.safetensors") for folder in folders]
    for folder, state in zip(folders, states):
        assert state.keys() == head(finished).keys()
        assert not any(name.startswith("model.") for name in state)
        assert not list(folder.glob("*.tmp"))
    bias = next(name for name in states[0] if name.endswith("head.bias"))
    assert not torch.equal(states[0][bias], states[1][bias])
    newest = max(folders, key=lambda folder: int(folder.name.rsplit("-", 1)[1]))
    torch.testing.assert_close(load_file(newest / "loss.safetensors"), head(finished), rtol=0, atol=0)


def test_resumed_run_has_the_head_and_the_weights_of_the_undisturbed_one(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    checkpoint = Path(finished.args.output_dir) / "checkpoint-3"  # in the first epoch
    run = trainer(make_model(dropout=0.1, seed=7), rows, tmp_path)
    run.train(resume_from_checkpoint=str(checkpoint))
    torch.testing.assert_close(head(run), head(finished), rtol=0, atol=1e-6)
    torch.testing.assert_close(run.model.state_dict(), finished.model.state_dict(), rtol=0, atol=1e-6)
    losses = [[entry["loss"] for entry in each.state.log_history if "loss" in entry] for each in (run, finished)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_the_host_alone_forgets_the_head(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    """Why the trainer exists: should the host ever learn this, it can go."""
    model = make_model(dropout=0.1, seed=7)
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1)
    run = SentenceTransformerTrainer(model=model, args=arguments(tmp_path), train_dataset=rows, loss=loss)
    run.train(resume_from_checkpoint=str(Path(finished.args.output_dir) / "checkpoint-3"))
    bias = next(name for name in head(run) if name.endswith("head.bias"))
    assert not torch.allclose(head(run)[bias], head(finished)[bias], atol=1e-6)


def copied(finished: CrossLingualTrainer, folder: Path) -> Path:
    import shutil

    return Path(shutil.copytree(Path(finished.args.output_dir) / "checkpoint-3", folder / "checkpoint-3"))


def test_checkpoint_without_the_loss(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    checkpoint = copied(finished, tmp_path)
    (checkpoint / "loss.safetensors").unlink()
    run = trainer(make_model(), rows, tmp_path)
    with pytest.raises(ValueError, match=r"expected the loss's own parameters in .*loss\.safetensors: it is missing"):
        run.train(resume_from_checkpoint=str(checkpoint))


def test_checkpoint_of_another_head(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    checkpoint = copied(finished, tmp_path)
    state = load_file(checkpoint / "loss.safetensors")
    name = next(key for key in state if key.endswith("head.bias"))
    save_file({**state, name: state[name][:-1].clone()}, checkpoint / "loss.safetensors")
    run = trainer(make_model(), rows, tmp_path)
    with pytest.raises(
        ValueError, match=r"does not fit this loss: .*head\.bias are missing, unknown or of another shape"
    ):
        run.train(resume_from_checkpoint=str(checkpoint))


def test_loss_state_refuses_unknown_and_missing_tensors_and_changes_nothing(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    one, two = (RepresentationTranslationLoss(model, layers=layers) for layers in (1, 2))
    assert save_loss_state(one, model, tmp_path) == tmp_path / "loss.safetensors"
    before = {name: tensor.clone() for name, tensor in own_state(two, model).items()}
    with pytest.raises(ValueError, match="does not fit this loss"):
        load_loss_state(two, model, tmp_path)
    torch.testing.assert_close(own_state(two, model), before, rtol=0, atol=0)


def test_loss_without_a_head_writes_no_file(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    loss = TranslationRankingLoss(model)
    assert save_loss_state(loss, model, tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    load_loss_state(loss, model, tmp_path)  # and misses none


def test_shared_head_of_a_sum_is_saved_once(make_model: Make) -> None:
    model = make_model()
    rtl = RepresentationTranslationLoss(model, layers=1)
    names = own_state(0.5 * rtl.on(0, 1) + 0.5 * rtl.on(1, 0), model)
    assert len(names) == len(own_state(rtl, model)) > 0


def test_empty_data(make_model: Make, tmp_path: Path) -> None:
    empty = Dataset.from_dict({"source": [], "target": []})
    with pytest.raises(ValueError, match="at least one pair: the data set is empty"):
        trainer(make_model(), empty, tmp_path)


def test_too_few_columns(make_model: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="looks at text columns 0, 1 .*lacks 1: the data have 1: source"):
        trainer(make_model(), Dataset.from_dict({"source": ["Grüezi!", "Ade!"]}), tmp_path)


def test_several_data_sets_are_shuffled_anew_each_epoch(make_model: Make, rows: Dataset, tmp_path: Path) -> None:
    """Each data set's sampler must hear of the epoch, through the host's sampler over data sets."""
    run = trainer(make_model(), DatasetDict({"one": rows, "two": rows}), tmp_path, save_strategy="no")
    seen: list[list[str]] = []
    whole = run.data_collator.preprocess_fn

    def spy(texts: list[str], **kwargs: Any) -> Any:
        seen.append(list(texts))
        return whole(texts, **kwargs)

    run.data_collator.preprocess_fn = spy
    run.train()
    half = len(seen) // 2
    assert sorted(text for batch in seen[:half] for text in batch) == sorted(text for b in seen[half:] for text in b)
    assert sorted(seen[:half]) != sorted(seen[half:])


def test_of_equal_checkpoints_the_later_is_kept(make_model, rows, tmp_path) -> None:
    """A development set that every checkpoint solves says nothing; the last one has seen the most text."""
    from sentence_transformers.base.evaluation import BaseEvaluator

    class Content(BaseEvaluator):
        def __init__(self) -> None:
            super().__init__()
            self.primary_metric = "content"

        def __call__(self, *args, **kwargs):
            return {"content": 1.0}

    from sentence_transformers import SentenceTransformerTrainingArguments

    model = make_model()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        max_steps=4,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_content",
        greater_is_better=True,
        report_to="none",
        disable_tqdm=True,
    )
    run = CrossLingualTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        loss=TranslationRankingLoss(model),
        evaluator=Content(),
    )
    run.train()
    assert run.state.best_global_step == 4
    assert run.state.best_metric == 1.0


def test_resumed_from_its_last_checkpoint_it_makes_no_further_step(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    """The host alone asks whether that was all after a step; step 3 of 4 leaves it in the middle of an epoch."""
    checkpoint = Path(finished.args.output_dir) / "checkpoint-3"
    run = trainer(make_model(dropout=0.1, seed=7), rows, tmp_path, max_steps=3)
    run.train(resume_from_checkpoint=str(checkpoint))
    assert run.state.global_step == 3
    torch.testing.assert_close(head(run), load_file(checkpoint / "loss.safetensors"), rtol=0, atol=0)
    assert not list(tmp_path.glob("checkpoint-*"))


@pytest.mark.parametrize("bf16", [True, False])
def test_mixed_precision_is_for_passes_of_the_loss_too(
    bf16: bool, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    """The host's own pass runs in bfloat16 anyway; that of WA, and its gradient's path, must as well."""
    model = make_model()
    loss = WordAlignmentLoss(model) + TranslationRankingLoss(model)
    seen: list[torch.dtype] = []
    model[0].auto_model.encoder.layer[0].attention.self.query.register_forward_hook(
        lambda module, given, output: seen.append(output.dtype)
    )
    run = trainer(model, rows, tmp_path, loss, bf16=bf16, max_steps=1, save_strategy="no")
    run.train()
    assert len(seen) == 2 and set(seen) == {torch.bfloat16 if bf16 else torch.float32}
