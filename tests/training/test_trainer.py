"""The trainer with ST's arguments alone: loss state, language columns, what it needs, and model.fit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import nn
from transformers import AutoConfig, AutoModelForMaskedLM

from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.losses import (
    CachedLoss,
    RepresentationTranslationLoss,
    TranslationLanguageModelingLoss,
    TranslationRankingLoss,
    WordAlignmentLoss,
    base,
)
from st_xling.models import load_encoder
from st_xling.training import CrossLingualTrainer, CrossLingualTrainingArguments
from st_xling.training.trainer import CrossLingualDataCollator, load_loss_state, own_state, save_loss_state

Make = Callable[..., Any]
RTL = RepresentationTranslationLoss


@pytest.fixture(scope="module")
def rows(pairs: list[tuple[str, str]]) -> Dataset:
    sides = list(zip(*(pairs * 2)))
    return Dataset.from_dict({"source": sides[0], "target": sides[1]})


def arguments(folder: Path, **options: Any) -> SentenceTransformerTrainingArguments:
    settings = {"per_device_train_batch_size": 4, "num_train_epochs": 2, "learning_rate": 1e-2, "logging_steps": 1}
    settings |= {"save_strategy": "steps", "save_steps": 3, "batch_sampler": ShuffledBatchSampler}
    common = {"report_to": "none", "disable_tqdm": True, "use_cpu": True}
    return SentenceTransformerTrainingArguments(output_dir=str(folder), **{**settings, **common, **options})


def trainer(
    model: nn.Module, rows: Any, folder: Path, loss: Any = None, evaluator: Any = None, **options: Any
) -> CrossLingualTrainer:
    loss, args = loss or TranslationRankingLoss(model) + RTL(model, layers=1), arguments(folder, **options)
    return CrossLingualTrainer(model=model, args=args, train_dataset=rows, loss=loss, evaluator=evaluator)


def head(run: SentenceTransformerTrainer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in own_state(run.loss, run.model).items()}


@pytest.fixture(scope="module")
def finished(make_model: Make, rows: Dataset, tmp_path_factory: pytest.TempPathFactory) -> CrossLingualTrainer:
    run = trainer(make_model(dropout=0.1), rows, tmp_path_factory.mktemp("host"))
    run.train()
    return run


@pytest.mark.parametrize("wrap", [base.as_loss, CachedLoss])
def test_a_loss_in_another_trainer_warns_of_its_weights(
    wrap: Any, make_model: Make, rows: Dataset, caplog: Any
) -> None:
    base.warn_once.cache_clear()
    model = make_model()
    loss = TranslationRankingLoss(model) + RTL(model, layers=1)
    features = [model.preprocess(rows[side][:2]) for side in ("source", "target")]
    trainer(model, rows, Path("run"), wrap(loss))
    TranslationRankingLoss(model)(features), wrap(loss)(features), loss(features)
    assert not caplog.messages
    wrap(RTL(model, layers=1))(features)
    assert "which only CrossLingualTrainer saves in checkpoints" in caplog.text


def test_resumed_run_has_the_head_and_the_weights_of_the_undisturbed_one(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    checkpoint = Path(finished.args.output_dir) / "checkpoint-3"  # in the first epoch
    run = trainer(make_model(dropout=0.1, seed=7), rows, tmp_path)
    run.train(resume_from_checkpoint=str(checkpoint))
    saved = load_file(checkpoint / "loss.safetensors")
    moved = head(run)
    assert saved.keys() == moved.keys() and not any(name.startswith("model.") for name in saved)
    assert any(not torch.equal(saved[name], moved[name]) for name in saved)
    torch.testing.assert_close(moved, head(finished), rtol=0, atol=1e-6)
    torch.testing.assert_close(run.model.state_dict(), finished.model.state_dict(), rtol=0, atol=1e-6)
    losses = [
        [entry["loss"] for entry in trainer_run.state.log_history if "loss" in entry] for trainer_run in (run, finished)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_loss_state_refuses_unknown_and_missing_tensors_and_changes_nothing(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    plain = TranslationRankingLoss(model)
    save_loss_state(plain, model, tmp_path)
    load_loss_state(plain, model, tmp_path)  # nothing is written, and none is missed
    assert list(tmp_path.iterdir()) == []
    first, second = (RTL(model, layers=layers) for layers in (1, 2))
    both = 0.5 * first.on(0, 1) + 0.5 * first.on(1, 0)  # a head that terms share is kept once
    assert len(own_state(both, model)) == len(own_state(first, model)) > 0
    save_loss_state(first, model, tmp_path)
    before = {name: tensor.clone() for name, tensor in own_state(second, model).items()}
    with pytest.raises(ValueError, match="does not fit this loss"):
        load_loss_state(second, model, tmp_path)
    torch.testing.assert_close(own_state(second, model), before, rtol=0, atol=0)


def test_a_checkpoint_in_the_folder_of_an_earlier_run_has_no_head_of_that_runs_loss(
    make_model: Make, tmp_path: Path
) -> None:
    """Two trainings into one folder, the first by a loss with a head: the second could not load its best checkpoint."""
    model = make_model()
    save_loss_state(RTL(model, layers=1), model, tmp_path)
    assert (tmp_path / "loss.safetensors").exists()
    plain = TranslationRankingLoss(model)
    save_loss_state(plain, model, tmp_path)
    assert not (tmp_path / "loss.safetensors").exists()
    load_loss_state(plain, model, tmp_path)


def test_of_equal_checkpoints_the_later_is_kept(make_model: Make, rows: Dataset, tmp_path: Path) -> None:
    """A development set that every checkpoint solves says nothing; the last one has seen the most text."""

    class Content(BaseEvaluator):
        primary_metric = "content"

        def __call__(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            return {"content": 1.0}

    best = {"load_best_model_at_end": True, "metric_for_best_model": "eval_content", "greater_is_better": True}
    steps = {"max_steps": 4, "eval_strategy": "steps", "eval_steps": 1, "save_steps": 1}
    run = trainer(make_model(), rows, tmp_path, evaluator=Content(), **steps, **best)
    run.train()
    assert run.state.best_global_step == 4 and run.state.best_metric == 1.0


def test_resumed_from_its_last_checkpoint_it_makes_no_further_step(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    """ST alone asks whether that was all after a step; step 3 of 4 leaves it in the middle of an epoch."""
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
    """Sentence-transformers' own pass runs in bfloat16 anyway; that of WA, and its gradient's path, must as well."""
    model = make_model()
    loss = WordAlignmentLoss(model) + TranslationRankingLoss(model)
    seen: list[torch.dtype] = []
    model[0].auto_model.encoder.layer[0].attention.self.query.register_forward_hook(
        lambda module, inputs, output: seen.append(output.dtype)
    )
    run = trainer(model, rows, tmp_path, loss, bf16=bf16, max_steps=1, save_strategy="no")
    run.train()
    assert len(seen) == 2 and set(seen) == {torch.bfloat16 if bf16 else torch.float32}


def test_batches_are_encoded_in_groups_of_like_length(
    make_model: Make, rows: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More passes, the same steps."""
    passes: list[int] = []
    weights = []
    for group_cost in (10**9, 1):
        monkeypatch.setattr("st_xling.losses.rows_by_length.GROUP_COST", group_cost)
        model = make_model(dropout=0.0)
        run = trainer(model, rows, tmp_path, max_steps=2, save_strategy="no", optim="sgd")
        shapes: list[Any] = []
        layer = model[0].auto_model.encoder.layer[0]
        layer.register_forward_pre_hook(lambda _, inputs, shapes=shapes: shapes.append(inputs[0].shape))
        run.train()
        passes.append(len(shapes))
        weights.append(model.state_dict())
    assert passes[1] > passes[0] == 2
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-6)


LANGUAGES = {"ar": 0, "en": 1, "th": 2, "de": 3}
ROWS = [
    {"source": "أين المفتاح؟", "target": "Where is the key?", "source_language": "ar", "target_language": "en"},
    {"source": "แมวดำ", "target": "A black cat", "source_language": "th", "target_language": "eng"},
    {"source": "Grüß Gott 🙂", "target": "Hello 🙂", "source_language": "deu", "target_language": "en"},
]


def test_languages_become_ids_and_are_never_read(make_model: Make) -> None:
    """Two spellings of a language are one id; ``body_language`` beside no ``body`` is a column like any other."""
    model = make_model()

    def collate(languages: dict[str, int] | None, rows: list[dict[str, str]] = ROWS) -> dict[str, Any]:
        return CrossLingualDataCollator(preprocess_fn=model.preprocess, languages=languages)(rows)

    batch = collate(LANGUAGES)
    assert batch["source_language"].tolist() == [0, 2, 3] and batch["target_language"].tolist() == [1, 1, 1]
    assert batch["source_language"].dtype == torch.int64 and not any("language_" in key for key in batch)
    alone = model.preprocess([row["source"] for row in ROWS])
    assert torch.equal(batch["source_input_ids"], alone["input_ids"])
    assert not any("language" in key for key in collate(None)) and collate(LANGUAGES, []) == {}
    body = collate(LANGUAGES, [{"source": "Er nickt.", "body_language": "a nod"}])
    assert {"source_input_ids", "body_language_input_ids"} <= body.keys()
    with pytest.raises(ValueError, match="the loss knows the languages ar, en: a row is in 'th'; add it"):
        collate({"ar": 0, "en": 1})


def test_rows_with_none_and_a_trainer_without_a_loss(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    columns = {"source": ["Ja.", "Nein."], "target": ["Yes.", None]}
    for row in ({"translation": {"de": "Ja.", "en": "Yes."}}, {"source": "Ja.", "target": None}):
        with pytest.raises(ValueError, match="expected columns of text, such as source and target, got"):
            CrossLingualDataCollator(model.preprocess)([row])
    with pytest.raises(ValueError, match="got None in the column target"):
        trainer(model, Dataset.from_dict(columns), tmp_path)
    rows = Dataset.from_dict(columns).filter(lambda row: row["target"] is not None)
    trainer(model, rows, tmp_path)
    with pytest.raises(ValueError, match="expected a loss, got None"):
        CrossLingualTrainer(model=model, args=arguments(tmp_path), train_dataset=rows)


def test_the_loss_knows_the_languages_of_its_rows(make_model: Make, tmp_path: Path) -> None:
    """From the data set through the trainer: only the embeddings of languages that were rebuilt learn anything."""
    model = make_model()
    rtl = RTL(model, layers=1, languages=list(LANGUAGES))
    options = {"max_steps": 2, "save_strategy": "no", "num_train_epochs": 1}
    trainer(model, Dataset.from_list(ROWS), tmp_path, TranslationRankingLoss(model) + rtl, **options).train()
    moved = rtl.head.language_embeddings.weight.detach().abs().sum(dim=1) > 0
    assert moved.tolist() == [False, True, False, False]


def test_columns_before_source_and_target_are_named(
    make_model: Make, rows: Dataset, tmp_path: Path, caplog: Any
) -> None:
    """Of ``sent_id``, ``source`` and ``target`` the loss ranked sources for ids, without a word."""
    with_ids = rows.add_column("sent_id", [f"news-{row}" for row in range(len(rows))])
    ahead = with_ids.select_columns(["sent_id", "source", "target"])
    trainer(make_model(), ahead, tmp_path / "ahead")
    assert "losses read columns in their order: sent_id first, then source; put source and target first" in caplog.text
    caplog.clear()
    for names in (["source", "target", "sent_id"], ["target", "source"]):
        trainer(make_model(), with_ids.select_columns(names), tmp_path / "behind")
    trainer(make_model(), {"a": rows.select_columns(["source", "target"])}, tmp_path / "several")
    assert "losses read columns in their order" not in caplog.text


def test_a_checkpoint_without_the_loss_is_named(
    finished: CrossLingualTrainer, make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    """As another trainer saves one: its head would begin anew, half-way through the training."""
    source = Path(finished.args.output_dir) / "checkpoint-3"
    checkpoint = Path(shutil.copytree(source, tmp_path / "checkpoint-3"))
    for name in ("done.json", "loss.safetensors"):
        (checkpoint / name).unlink()
    with pytest.raises(ValueError, match=r"checkpoint-3/loss\.safetensors: it is missing"):
        trainer(make_model(), rows, tmp_path).train(resume_from_checkpoint=str(checkpoint))


def test_several_data_sets_are_shuffled_anew_each_epoch(make_model: Make, rows: Dataset, tmp_path: Path) -> None:
    """Each data set's sampler must hear of the epoch, through sentence-transformers' sampler over data sets."""
    run = trainer(make_model(), DatasetDict({"one": rows, "two": rows}), tmp_path, save_strategy="no")
    seen: list[list[str]] = []
    original = run.data_collator.preprocess_fn

    def spy(texts: list[str], **options: Any) -> Any:
        seen.append(list(texts))
        return original(texts, **options)

    run.data_collator.preprocess_fn = spy
    run.train()
    half = len(seen) // 2
    epochs = seen[:half], seen[half:]
    texts = [sorted(text for batch in epoch for text in batch) for epoch in epochs]
    assert texts[0] == texts[1] and sorted(epochs[0]) != sorted(epochs[1])


@pytest.mark.parametrize("option", [{"mini_batch_size": 2}, {"mini_batch_num_tokens": 40}])
def test_arguments_choose_the_mini_batches_of_the_cache(
    option: dict[str, int], make_model: Make, rows: Dataset, tmp_path: Path
) -> None:
    values = []
    for arguments in ({}, option):
        made = CrossLingualTrainingArguments(str(tmp_path), max_steps=1, logging_steps=1, use_cpu=True, **arguments)
        model = make_model()
        run = CrossLingualTrainer(model=model, args=made, train_dataset=rows, loss=TranslationRankingLoss(model))
        assert isinstance(run.loss, CachedLoss) == bool(arguments)
        if arguments:
            [(name, value)] = arguments.items()
            assert getattr(run.loss, name) == value
        run.train()
        values.append(run.state.log_history[0]["loss"])
    assert values[1] == pytest.approx(values[0], rel=1e-5)


def test_a_script_saves_the_vocabulary_head_by_the_trainer(rows: Dataset, make_model: Make, tmp_path: Path) -> None:
    """The trainer replaced ``save_pretrained`` of the encoder, so that a later save wrote weights of this training."""
    model = make_model()
    loss = TranslationLanguageModelingLoss(model, objective="mlm")
    args = CrossLingualTrainingArguments(
        str(tmp_path / "run"), max_steps=3, save_steps=3, save_vocabulary_head=True, use_cpu=True, disable_tqdm=True
    )
    trainer = CrossLingualTrainer(model=model, args=args, train_dataset=rows, loss=loss)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    assert "save_pretrained" not in vars(model[0].auto_model)
    reloaded, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert torch.equal(reloaded.get_output_embeddings().bias, loss.head.bias) and loss.head.bias.any()
    texts = ["Où est la clé ?", "แมวดำ", "القطة السوداء"]
    loaded = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert torch.equal(*(encoder.eval().encode(texts, convert_to_tensor=True) for encoder in (loaded, model)))
    again = TranslationLanguageModelingLoss(load_encoder(str(tmp_path / "saved"), device="cpu"), objective="mlm").head
    torch.testing.assert_close(again.state_dict(), loss.head.state_dict(), rtol=0, atol=0)
    # The head of a checkpoint is in the loss's file, and a model that is saved alone has none.
    model.save_pretrained(str(tmp_path / "plain"))
    for folder in (tmp_path / "run" / "checkpoint-3", tmp_path / "plain"):
        assert AutoConfig.from_pretrained(folder).architectures == [type(model[0].auto_model).__name__]


def test_two_trainers_have_the_same_arguments(rows: Dataset, make_model: Make, tmp_path: Path) -> None:
    """The first one took the limit of checkpoints out of the arguments, so that the second kept all of them."""
    args = arguments(tmp_path, save_total_limit=1, max_steps=6)
    values = args.to_dict()
    for _ in range(2):
        model = make_model()
        trainer = CrossLingualTrainer(model=model, args=args, train_dataset=rows, loss=TranslationRankingLoss(model))
        assert args.to_dict() == values
    trainer.train()
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-6"]
