"""The trainers with our arguments, as scripts use them: evaluation, checkpoints, adapters, parsers, the card."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.evaluation import CrossEncoderClassificationEvaluator
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator, TranslationEvaluator
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from transformers import HfArgumentParser

from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import TranslationLanguageModelingLoss, TranslationRankingLoss
from st_xling.training import (
    CrossLingualTrainer,
    CrossLingualTrainingArguments,
    LoraOptions,
    RankingTrainer,
    RankingTrainingArguments,
)
from st_xling.training.arguments import fit_to_data
from st_xling.training.retriever import separate_encoders
from tests.conftest import PAIRS

Make = Callable[..., Any]
SMALL = {"per_device_train_batch_size": 4, "disable_tqdm": True, "use_cpu": True}


@pytest.fixture
def encoder(make_model: Make) -> Any:
    return make_model(layers=1)


@pytest.fixture(scope="module")
def rows() -> Dataset:
    sources, targets = zip(*PAIRS * 2)
    return Dataset.from_dict({"source": sources, "target": targets})


def train(model: Any, folder: Path, data: Any, loss: Any = None, **options: Any) -> CrossLingualTrainer:
    """Train by our arguments; ``evaluator`` and ``eval_dataset`` are for the trainer."""
    evaluation = {name: options.pop(name) for name in ("evaluator", "eval_dataset") if name in options}
    arguments = CrossLingualTrainingArguments(str(folder), **{**SMALL, **options})
    loss = loss or TranslationRankingLoss(model)
    trainer = CrossLingualTrainer(model, arguments, data, loss=loss, **evaluation)
    trainer.train()
    return trainer


def similarity_evaluator() -> EmbeddingSimilarityEvaluator:
    sources, targets = zip(*PAIRS)
    return EmbeddingSimilarityEvaluator([*sources], [*targets], [0.1 * n for n in range(len(PAIRS))], name="sts")


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint-*"))


def test_evaluators_that_name_their_metric_late_choose_the_checkpoint(
    encoder: Any, rows: Dataset, tmp_path: Path
) -> None:
    """ST's EmbeddingSimilarityEvaluator has no metric before its first call; training failed at the evaluation."""
    trainer = train(encoder, tmp_path, rows, evaluator=similarity_evaluator(), eval_steps=2)
    assert trainer.args.metric_for_best_model == "eval_sts_spearman_cosine"
    scores = [entry["eval_sts_spearman_cosine"] for entry in trainer.state.log_history if "eval_runtime" in entry]
    assert trainer.state.best_metric == max(scores) and len(scores) == 2


@pytest.mark.slow
def test_it_stops_early_by_such_a_metric(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    options: dict[str, Any] = {"eval_steps": 1, "early_stopping_patience": 1, "learning_rate": 1e-15}
    trainer = train(encoder, tmp_path, rows, evaluator=similarity_evaluator(), **options)
    assert trainer.state.global_step == 2 and trainer.state.max_steps == 4


def test_of_several_evaluation_sets_the_first_chooses(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    """They have a loss each, and none is called eval_loss, which transformers looks for."""
    sets = {"de": rows.select(range(8)), "vi": rows.select(range(4))}
    trainer = train(encoder, tmp_path, rows, eval_dataset=sets, eval_steps=2)
    assert trainer.args.metric_for_best_model == "eval_de_loss" and not trainer.args.greater_is_better
    losses = [entry["eval_de_loss"] for entry in trainer.state.log_history if "eval_de_loss" in entry]
    assert trainer.state.best_metric == min(losses)


def test_without_training_data_it_evaluates(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    """It asked for the steps of a stream."""
    arguments = CrossLingualTrainingArguments(str(tmp_path), **SMALL)
    trainer = CrossLingualTrainer(encoder, arguments, eval_dataset=rows, loss=TranslationRankingLoss(encoder))
    assert trainer.evaluate()["eval_loss"] > 0


def test_checkpoints_as_often_as_they_are_asked_for(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    """save_steps alone was refused, and next to eval_steps it was ignored."""
    alone = CrossLingualTrainingArguments("run", save_steps=7)
    assert (alone.eval_steps, alone.save_steps) == (7, 7)
    shares = fit_to_data(CrossLingualTrainingArguments("run", save_steps=0.2), rows=128_000, evaluates=True)
    assert (shares.eval_steps, shares.save_steps) == (200, 200)
    shares = fit_to_data(
        CrossLingualTrainingArguments("run", eval_steps=0.05, save_steps=0.2), rows=128_000, evaluates=True
    )
    assert (shares.eval_steps, shares.save_steps) == (50, 200)
    options: dict[str, Any] = {"eval_steps": 1, "save_steps": 2, "evaluator": similarity_evaluator()}
    train(encoder, tmp_path, rows, **options)
    assert checkpoints(tmp_path) == ["checkpoint-2", "checkpoint-4"]


def test_save_strategy_best(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    trainer = train(encoder, tmp_path, rows, save_strategy="best", eval_steps=1, evaluator=similarity_evaluator())
    assert checkpoints(tmp_path) and trainer.state.best_model_checkpoint is not None
    with pytest.raises(ValueError, match='save_strategy "best" needs a score to choose by: got neither evaluator nor'):
        train(encoder, tmp_path, rows, save_strategy="best")
    with pytest.raises(ValueError, match="early_stopping_patience needs evaluations to stop by"):
        train(encoder, tmp_path, rows, early_stopping_patience=1, eval_strategy="no", evaluator=similarity_evaluator())


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"batches": "onepair"}, "batches must be one of 'mixed', 'one_pair': got 'onepair'"),
    ({"mini_batch_size": "8"}, "mini_batch_size must be a whole number: got '8'"),
    ({"group_by_length": "no"}, "group_by_length must be .*: got 'no'"),
    ({"prompt_name": 1}, "prompt_name must be .*: got 1"),
    ({"lora": {"rnk": 8}}, "lora has no key 'rnk'; did you mean 'rank'"),
    ({"lora": {"rank": 0}}, "lora.rank must be at least 1: got 0"),
    ({"lora": {"dropout": 1.0}}, r"lora.dropout must be in \[0, 1\): got 1.0"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_values_that_a_field_cannot_have_are_named(options: dict[str, Any], message: str) -> None:
    """A batch of "onepair" was one of mixed pairs, in silence: dataclasses check nothing."""
    with pytest.raises(ValueError, match=f"^{message}"):
        CrossLingualTrainingArguments("run", **options)


def test_parsers_of_transformers_make_our_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Adapters' options come from a file as a mapping; on a command line they became LoraOptions(rank="8")."""
    parser = HfArgumentParser(CrossLingualTrainingArguments)  # type: ignore[arg-type]
    words = "--output_dir run --warm_up_heads 5 --language_alpha 0.5 --batches one_pair --keep_duplicates_apart false"
    [made] = parser.parse_args_into_dataclasses([*words.split(), "--mini_batch_size", "8", "--report_to", "none"])
    assert (made.warm_up_heads, made.language_alpha, made.batches) == (5, 0.5, "one_pair")
    assert (made.keep_duplicates_apart, made.mini_batch_size, made.lora) == (False, 8, None)
    file = tmp_path / "arguments.json"
    file.write_text(json.dumps({"output_dir": "run", "lora": {"rank": 4, "merge": False}, "report_to": None}))
    [read] = parser.parse_json_file(str(file))
    assert read.lora == LoraOptions(rank=4, merge=False) and read.report_to == []
    again = CrossLingualTrainingArguments("run", lora=read.to_dict()["lora"])
    assert again.lora == read.lora
    with pytest.raises(SystemExit):
        parser.parse_args_into_dataclasses(["--output_dir", "run", "--lora", "8"])
    assert "invalid LoraOptions value: '8'" in capsys.readouterr().err


def test_the_card_lists_our_arguments(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    """ST's card lists what differs from its own defaults, and knew of no argument that it lacks."""
    train(encoder, tmp_path, rows, max_steps=1, mini_batch_size=2, lora=LoraOptions(rank=2))
    encoder.save_pretrained(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    listed = card[card.index("#### Non-Default Hyperparameters") : card.index("#### All Hyperparameters")]
    assert "- `mini_batch_size`: 2\n" in listed and "- `lora`: {'rank': 2, " in listed
    assert "early_stopping_patience" not in listed and "LoraOptions(" not in card


def test_a_loss_that_cannot_be_cut_into_mini_batches_is_named(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    loss = CachedMultipleNegativesRankingLoss(encoder)
    with pytest.raises(ValueError, match="the arguments ask for mini-batches, which do not fit this loss: CachedMul"):
        train(encoder, tmp_path, rows, loss, mini_batch_size=2)


def test_one_of_several_losses_may_have_the_head_that_is_saved(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    """Each loss by itself was asked for a head."""
    losses = {"pairs": TranslationRankingLoss(encoder), "text": TranslationLanguageModelingLoss(encoder)}
    train(encoder, tmp_path, {"pairs": rows, "text": rows}, losses, max_steps=1, save_vocabulary_head=True)
    with pytest.raises(ValueError, match="save_vocabulary_head takes the loss mlm or tlm"):
        train(encoder, tmp_path, rows, save_vocabulary_head=True)


def test_columns_of_lists_are_named(encoder: Any, tmp_path: Path) -> None:
    """The phrasebook has word alignments; sentence-transformers named no column: "Unsupported input type: list"."""
    phrases = parallel_phrases("de", "en", size=8)
    expected = r"got lists in alignment, source_tokens, target_tokens; leave them out, by dataset.select_columns\(\["
    with pytest.raises(ValueError, match=expected):
        train(encoder, tmp_path, phrases)
    labeled = phrases.select_columns(["source", "target"]).add_column("label", [[0.0, 1.0]] * 8)
    CrossLingualTrainer(encoder, None, labeled, loss=TranslationRankingLoss(encoder))


@pytest.mark.parametrize("kind", [RankingTrainingArguments, CrossEncoderTrainingArguments])
def test_a_cross_encoder_reads_its_first_two_columns(kind: Any, saved_cross_encoder: Path, tmp_path: Path) -> None:
    """In columns of other names than query and passage, the groups of like length found no text: KeyError."""
    sources, targets = zip(*PAIRS)
    shifted = [*targets[1:], targets[0]]
    pairs = {"sentence_A": [*sources, *sources], "sentence_B": [*targets, *shifted], "label": [1.0] * 8 + [0.0] * 8}
    model = CrossEncoder(str(saved_cross_encoder), device="cpu")
    arguments = kind(str(tmp_path), max_steps=2, report_to="none", logging_steps=1, **SMALL)
    trainer = RankingTrainer(model, arguments, Dataset.from_dict(pairs), loss=BinaryCrossEntropyLoss(model))
    trainer.train()
    assert [entry["loss"] > 0 for entry in trainer.state.log_history if "loss" in entry] == [True, True]


@pytest.mark.slow
def test_a_cross_encoder_with_an_evaluator_and_adapters(saved_cross_encoder: Path, tmp_path: Path) -> None:
    pairs = [*PAIRS, *((source, PAIRS[n - 1][1]) for n, (source, _) in enumerate(PAIRS))]
    labels = [1] * 8 + [0] * 8
    sources, targets = zip(*pairs)
    data = Dataset.from_dict({"query": sources, "passage": targets, "label": labels})
    model = CrossEncoder(str(saved_cross_encoder), device="cpu")
    evaluator = CrossEncoderClassificationEvaluator([list(pair) for pair in pairs], labels, name="dev")
    arguments = RankingTrainingArguments(str(tmp_path), eval_steps=2, lora=LoraOptions(rank=2), **SMALL)
    trainer = RankingTrainer(model, arguments, data, loss=BinaryCrossEntropyLoss(model), evaluator=evaluator)
    trainer.train()
    assert trainer.args.metric_for_best_model == "eval_dev_average_precision"
    assert trainer.state.best_metric is not None and not any("lora" in name for name, _ in model.named_parameters())


@pytest.mark.slow
def test_data_and_translation_evaluator_together(encoder: Any, rows: Dataset, tmp_path: Path) -> None:
    sources, targets = zip(*PAIRS)
    evaluator = TranslationEvaluator([*sources], [*targets], name="dev")
    trainer = train(encoder, tmp_path, rows, evaluator=evaluator, eval_dataset=rows, eval_steps=2)
    assert trainer.args.metric_for_best_model == "eval_dev_mean_accuracy"
    assert any("eval_loss" in entry for entry in trainer.state.log_history)


def test_a_retriever_of_two_encoders_in_a_script(encoder: Any, tmp_path: Path) -> None:
    """By ST's Router and router_mapping; queries reach one encoder, passages the other."""
    sources, targets = zip(*PAIRS)
    data = Dataset.from_dict({"query": sources, "passage": targets})
    model = separate_encoders(encoder)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    train(model, tmp_path, data, router_mapping={"query": "query", "passage": "document"}, mini_batch_size=2)
    changed = {name.split(".")[2] for name, weight in model.named_parameters() if not weight.equal(before[name])}
    assert changed == {"query", "document"}
    assert (model.encode_query([sources[0]]) != model.encode_document([sources[0]])).any()
