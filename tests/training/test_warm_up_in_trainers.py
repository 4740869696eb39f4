"""New heads in README's way to train: our trainer trains them alone first, sentence-transformers' is told to."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from transformers import TrainerCallback

from st_xling.losses import CachedLoss, RepresentationTranslationLoss, TranslationRankingLoss, base
from st_xling.models import tiny_encoder
from st_xling.models.heads import new_heads
from st_xling.training import CrossLingualTrainer, CrossLingualTrainingArguments, warm_up_heads
from st_xling.training.trainer import load_loss_state, save_loss_state
from tests.conftest import PAIRS

HEAD = "has a new head, whose random weights harm a pretrained encoder"
FEW = "too few to learn anything"
ROWS = Dataset.from_dict({"source": [row[0] for row in PAIRS], "target": [row[1] for row in PAIRS]})


@pytest.fixture
def start(tmp_path: Path) -> str:
    """A saved encoder without a vocabulary head: pretrained, as far as a trainer can tell."""
    folder = str(tmp_path / "start")
    tiny_encoder([text for pair in PAIRS for text in pair], vocabulary=200, hidden_size=16).save_pretrained(folder)
    base.warn_once.cache_clear()
    return folder


class AfterOneStep(TrainerCallback):
    """Stops a training whose later steps no one looks at; what depends on their number stays."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop = True


def both(model: Any) -> Any:
    return TranslationRankingLoss(model, margin=0.3) + 0.1 * RepresentationTranslationLoss(model, layers=1)


def trainer(
    model: Any,
    folder: Path,
    kind: Any = CrossLingualTrainer,
    *,
    steps: int = 60,
    arguments_class: Any = SentenceTransformerTrainingArguments,
    warm_up: dict[str, int] | None = None,
    **options: Any,
) -> Any:
    common: dict[str, Any] = {
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "save_strategy": "no",
        "logging_steps": 1,
    }
    common |= warm_up or {}
    arguments = arguments_class(
        str(folder / "run"), max_steps=steps, per_device_train_batch_size=8, learning_rate=5e-3, **common
    )
    loss = options.pop("loss", None) or both(model)
    return kind(model=model, args=arguments, train_dataset=options.pop("rows", ROWS), loss=loss, **options)


@pytest.mark.parametrize("cached", [False, True])
def test_our_trainer_trains_new_heads_first(cached: bool, start: str, tmp_path: Path, caplog: Any) -> None:
    """README's example trained a random head into a good encoder, which only the recipes avoided."""
    logs = {}
    for steps in (None, 0):
        model = SentenceTransformer(start, device="cpu")
        torch.manual_seed(0)
        loss = CachedLoss(both(model), mini_batch_size=4) if cached else both(model)
        ours = trainer(
            model,
            tmp_path,
            loss=loss,
            arguments_class=CrossLingualTrainingArguments,
            warm_up={"warm_up_heads": steps},
            callbacks=[AfterOneStep()],
        )
        ours.train()
        assert ours.state.global_step == 1
        logs[steps] = ours.state.log_history[0]
        assert all(weight.requires_grad for weight in model.parameters())
    # The same batch, encoder and dropout: ranking has the same loss, reconstruction a lower one.
    assert logs[None]["translation_ranking"] == pytest.approx(logs[0]["translation_ranking"], rel=1e-4)
    assert logs[None]["representation_translation"] < 0.95 * logs[0]["representation_translation"]
    assert not [message for message in caplog.messages if FEW in message or HEAD in message]


def test_heads_are_new_once(start: str, tmp_path: Path, caplog: Any) -> None:
    """Neither a second training nor a resumed one trains the same heads alone again."""
    caplog.set_level(logging.INFO, "st_xling")
    ours = trainer(SentenceTransformer(start, device="cpu"), tmp_path, steps=2)
    ours.args.save_strategy, ours.args.save_steps = "steps", 1
    ours.train()
    ours.train()
    assert [message.split(",")[0] for message in caplog.messages].count("new heads: trained alone for 2 steps") == 1
    again = trainer(SentenceTransformer(start, device="cpu"), tmp_path, steps=4)
    caplog.clear()
    again.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-1"))
    assert not [message for message in caplog.messages if "trained alone" in message]


def test_an_encoder_of_random_weights_has_nothing_to_lose(make_model: Any, tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "st_xling")
    trainer(make_model(), tmp_path, steps=2).train()
    trainer(make_model(), tmp_path, SentenceTransformerTrainer, steps=2).train()
    assert not [message for message in caplog.messages if "trained alone" in message or HEAD in message]


@pytest.mark.parametrize(("steps", "warns"), [(49, True), (50, False)])
def test_too_few_steps_name_what_to_use_instead(
    steps: int, warns: bool, start: str, tmp_path: Path, caplog: Any
) -> None:
    """On 248 pairs a head was "trained alone for 1 steps, loss 8.843 → 8.843", and nothing said what that means."""
    model = SentenceTransformer(start, device="cpu")
    assert warm_up_heads(trainer(model, tmp_path, steps=1), steps=steps) == steps
    warnings = [message for message in caplog.messages if FEW in message]
    assert len(warnings) == warns and all("recipe tr" in message and "49 steps" in message for message in warnings)


def test_trainers_of_sentence_transformers_are_told(start: str, tmp_path: Path, caplog: Any) -> None:
    trainer(SentenceTransformer(start, device="cpu"), tmp_path, SentenceTransformerTrainer, steps=2).train()
    messages = [message for message in caplog.messages if HEAD in message]
    assert len(messages) == 1 and "st_xling.training.warm_up_heads(trainer) before trainer.train()" in messages[0]
    caplog.clear()
    base.warn_once.cache_clear()
    theirs = trainer(SentenceTransformer(start, device="cpu"), tmp_path, SentenceTransformerTrainer, steps=60)
    assert warm_up_heads(theirs) == 60
    theirs.train()
    assert not [message for message in caplog.messages if HEAD in message]


def test_fit_is_told(start: str, caplog: Any) -> None:
    from sentence_transformers import InputExample
    from torch.utils.data import DataLoader

    model = SentenceTransformer(start, device="cpu")
    rows: Any = [InputExample(texts=list(pair)) for pair in PAIRS]
    model.fit([(DataLoader(rows, batch_size=4), both(model))], epochs=1, show_progress_bar=False)
    assert len([message for message in caplog.messages if HEAD in message]) == 1


def test_each_data_set_may_have_a_loss(start: str, tmp_path: Path, caplog: Any) -> None:
    """Terms that only one of them has are logged as NaN in other steps, which is no reason to stop."""
    caplog.set_level(logging.INFO, "st_xling")
    model = SentenceTransformer(start, device="cpu")
    losses = {"a": both(model), "b": TranslationRankingLoss(model)}
    trainer(
        model, tmp_path, steps=6, loss=losses, rows={"a": ROWS.select(range(8)), "b": ROWS.select(range(8))}
    ).train()
    assert [message for message in caplog.messages if message.startswith("new heads: trained alone for ")]
    caplog.clear()
    model = SentenceTransformer(start, device="cpu")
    trainer(model, tmp_path, steps=6, rows={"a": ROWS.select(range(8)), "b": ROWS.select(range(8))}).train()
    assert [message for message in caplog.messages if message.startswith("new heads: trained alone for 6 steps")]


def test_an_encoder_without_a_head_is_no_corrupted_checkpoint(start: str, caplog: Any, monkeypatch: Any) -> None:
    """Of every sentence encoder transformers says "This checkpoint seem corrupted", and reports six missing weights."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    RepresentationTranslationLoss(SentenceTransformer(start, device="cpu"), layers=1)
    assert not [message for message in caplog.messages if "corrupted" in message or "LOAD REPORT" in message]
    [line] = [message for message in caplog.messages if "vocabulary head" in message]
    assert line == "start has no vocabulary head: a new one is trained (guide: New heads)"


def test_a_checkpoint_that_is_damaged_is_still_reported(start: str, caplog: Any, monkeypatch: Any) -> None:
    """A weight of the encoder itself is missing."""
    model = SentenceTransformer(start, device="cpu")
    path = Path(start) / "model.safetensors"
    weights = load_file(path)
    save_file({name: tensor for name, tensor in weights.items() if "layer.0.output.dense" not in name}, path)
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    RepresentationTranslationLoss(model, layers=1)
    reports = [message for message in caplog.messages if "LOAD REPORT" in message]
    assert reports and "encoder.layer.0.output.dense.weight" in reports[0]
    assert not [message for message in caplog.messages if "guide: New heads" in message]


def test_weights_that_are_loaded_are_trained(start: str, tmp_path: Path, caplog: Any) -> None:
    """A head that an earlier run had saved was called new by other trainers."""
    model = SentenceTransformer(start, device="cpu")
    ours = trainer(model, tmp_path, steps=2)
    ours.train()
    save_loss_state(ours.loss, model, tmp_path)
    model = SentenceTransformer(start, device="cpu")
    loss = both(model)
    load_loss_state(loss, model, tmp_path)
    assert not new_heads(loss)
    caplog.clear()
    trainer(model, tmp_path, SentenceTransformerTrainer, steps=1, loss=loss).train()
    assert not [message for message in caplog.messages if HEAD in message]
    assert [message for message in caplog.messages if "which only CrossLingualTrainer saves" in message]
