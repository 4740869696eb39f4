"""Cross-encoders: recipes, stages, losses, heads, adapters, leaks, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, concatenate_datasets
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

from st_xling.data.reranking.pairs import labeled_dataset
from st_xling.data.reranking.pools import CandidatePool
from st_xling.data.reranking.strategies import merged
from st_xling.evaluation import RerankingEvaluator
from st_xling.models.lora import has_adapters
from st_xling.training import NotFiniteError, TrainingInterrupted, recipe_names
from st_xling.training.reranker import (
    LOSSES,
    RankingLoss,
    RankingTrainer,
    load_cross_encoder_recipe,
    loss_rows,
    pair_classification,
)
from st_xling.training.run_folder import RunFolder
from tests.models.tiny_cross_encoder import tiny_cross_encoder
from tests.training.children import stop_at
from tests.training.ranking_run import aligned, run, sentences, xpi_rows

NAMES = ["xpi", "xpr-cascade", "xpr-merged", "xpr-mixed"]  # of the paper; the recipe filter is ours


def test_the_paper_s_recipes() -> None:
    """Adam, 2e-5, linear decay, binary cross-entropy, linear on CLS (section V-D, equations 1 to 4)."""
    assert recipe_names("cross-encoder") == ["filter", *NAMES]
    for name in NAMES:
        recipe = load_cross_encoder_recipe(name)
        assert recipe.name == name and recipe.summary and recipe.strategy == name.removeprefix("xpr-")
        assert recipe.head == "cls" and recipe.loss == RankingLoss("binary_cross_entropy")
        arguments = recipe.arguments
        assert (arguments.learning_rate, arguments.lr_scheduler_type, arguments.weight_decay) == (2e-5, "linear", 0.0)
        assert load_cross_encoder_recipe(name, tiny=True).arguments.learning_rate > 1e-4


def test_options_that_cannot_be() -> None:
    for key, value, message in (
        ("strategy", "stirred", "strategy .*'stirred'"),
        ("arguments.batches", "one_pair", "arguments has no key 'batches'"),
        ("loss", "lamda", "loss 'lamda' .*'lambda'"),
        ("loss", {"list_net": {"mini_batch": 3}}, "'mini_batch'.*'mini_batch_size'"),
    ):
        with pytest.raises(ValueError, match=message):
            load_cross_encoder_recipe("xpr-mixed", overrides={key: value})


PAIRS = list(zip(*sentences()))
LONG_AND_SHORT = {
    "query": ["我", "Der Hund schläft unter dem großen Tisch, weil es draußen regnet.", "Hallo.", "صباح الخير!"],
    "passage": ["Me", "The dog sleeps under the big table, for it rains outside.", "Goodbye.", "Good morning to you!"],
    "label": [1.0, 1.0, 0.0, 1.0],
}


@pytest.mark.parametrize(
    "loss",
    [RankingLoss(), RankingLoss("binary_cross_entropy", {"pos_weight": 3.0}), RankingLoss("mse")],
    ids=["binary_cross_entropy", "pos_weight", "mse"],
)
def test_groups_of_like_length_have_the_loss_and_gradient_of_the_batch(
    loss: RankingLoss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_cross_encoder([*LONG_AND_SHORT["query"], *LONG_AND_SHORT["passage"]], max_length=80).double().train()
    rows = Dataset.from_dict(LONG_AND_SHORT)
    args = CrossEncoderTrainingArguments(str(tmp_path), per_device_train_batch_size=4, use_cpu=True, report_to="none")
    trainer = RankingTrainer(model=model, args=args, train_dataset=rows, loss=loss.build(model))
    [batch] = trainer.get_train_dataloader()
    widths: list[int] = []
    layer = model[0].auto_model.base_model.encoder.layer[0]
    layer.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape[1]))
    results = []
    for group_cost in (10**9, 16**2):
        monkeypatch.setattr("st_xling.losses.rows_by_length.GROUP_COST", group_cost)
        model.zero_grad()
        value = trainer.compute_loss(model, dict(batch))
        value.backward()
        results.append([value.detach(), *(weight.grad.clone() for weight in model.parameters())])
    assert len(widths) > 2 and min(widths) < widths[0]
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-7)


def same_scores(folder: Path, model: CrossEncoder) -> None:
    loaded = CrossEncoder(str(folder), device="cpu")
    assert loaded.predict(PAIRS) == pytest.approx(model.to("cpu").predict(PAIRS), abs=1e-6)


def test_a_cascade_is_two_stages(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "xpr-cascade")
    assert [stage["name"] for stage in result.stages] == ["xpr-cascade 1/2", "xpr-cascade 2/2"]
    assert [stage["steps"] for stage in result.stages] == [2, 2] and result.steps == 4  # the recipe's steps are shared
    assert result.best == result.stages[-1]["best_dev"] > 0
    same_scores(tmp_path / "run", result.model)
    manifest = RunFolder(tmp_path / "run").read_manifest()
    assert manifest["finished"] is True and list(manifest["data"]) == [stage["name"] for stage in result.stages]
    figures = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["training"]
    assert figures["steps"] == 4 and figures["stages"] == result.stages
    assert [entry["stage"] for entry in result.history if "loss" in entry].count("xpr-cascade 2/2") == 2


@pytest.mark.slow
def test_the_encoder_of_xpi_is_kept_and_its_head_is_not(tmp_path: Path) -> None:
    """With a rate of nearly nothing, a stage ends with what it began with; a cascade keeps the head too."""
    xpi = tmp_path / "xpi"
    out = tmp_path / "run"
    run(xpi, "xpi", stages=[xpi_rows()], judged=False)
    run(out, "xpr-cascade", judged=False, model=str(xpi), arguments__learning_rate=1e-12)
    folders = [xpi, out / "training" / "stage-1" / "model", out]
    encoders = [load_file(folder / "model.safetensors") for folder in folders]
    assert all(torch.allclose(encoders[0][key], encoders[2][key], atol=1e-7) for key in encoders[0])
    heads = [load_file(folder / "2_Dense" / "model.safetensors")["linear.weight"] for folder in folders]
    assert not torch.allclose(heads[0], heads[1], atol=1e-3) and torch.allclose(heads[1], heads[2], atol=1e-7)


def test_rows_of_losses_that_compare_passages() -> None:
    """Relevant passages come first; the same text in two languages is two queries."""
    labeled = [  # query, passage, label, the two languages
        ("who", "he", 0, "en", "en"),
        ("who", "她", 1, "en", "zh"),
        ("who", "them", 0, "en", "en"),
        ("谁", "她", 1, "zh", "zh"),
        ("谁", "I", 1, "zh", "en"),
        ("谁", "he", 0, "zh", "en"),
        ("who", "it", 1, "nl", "en"),  # nothing to compare with
    ]
    pairs = labeled_dataset(*map(list, zip(*labeled)))
    rows, skipped = loss_rows(pairs, RankingLoss("lambda"))
    assert skipped == 1 and rows.to_list() == [
        {"query": "who", "passages": ["她", "he", "them"], "labels": [1.0, 0.0, 0.0]},
        {"query": "谁", "passages": ["她", "I", "he"], "labels": [1.0, 1.0, 0.0]},
    ]
    with pytest.raises(ValueError, match="needs a query with a relevant and another one: got 1 queries"):
        loss_rows(pairs.select([6]), RankingLoss("lambda"))


SHORT = ("binary_cross_entropy", "list_net")


@pytest.mark.parametrize(
    "loss", [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in LOSSES]
)
def test_every_loss_trains(loss: str, tmp_path: Path) -> None:
    result = run(tmp_path / "run", "xpr-merged", loss=loss, judged=False, arguments__max_steps=2)
    losses = [entry["loss"] for entry in result.history if "loss" in entry]
    assert len(losses) == 2 and np.isfinite(losses).all()
    assert (tmp_path / "run" / "training" / "checkpoint-2").is_dir()  # one stage: where an encoder's are


@pytest.mark.parametrize(("head", "merge"), [("cls", True), pytest.param("pooler", False, marks=pytest.mark.slow)])
def test_lora_trains_and_keeps_the_head(head: str, merge: bool, tmp_path: Path) -> None:
    options = {"arguments__lora__rank": 2, "arguments__lora__merge": merge, "head": head}
    result = run(tmp_path / "run", **options)
    assert has_adapters(result.model) is not merge
    assert (tmp_path / "run" / "adapter_model.safetensors").is_file() is not merge
    same_scores(tmp_path / "run", result.model)
    base = CrossEncoder(str(tmp_path / "run" / "training" / "base"), device="cpu")
    assert not np.allclose(base.predict(PAIRS), result.model.predict(PAIRS), atol=1e-3)
    CrossEncoder(str(tmp_path / "run" / "training" / "checkpoint-4"), device="cpu")  # best or last: it loads


def test_what_is_refused(tmp_path: Path) -> None:
    graded = xpi_rows().map(lambda row: {"label": 2 * row["label"]})
    faults: list[tuple[str, dict[str, Any]]] = [
        ("the model 'tiny' has no head to keep", {"head": "keep"}),
        ("a query is never cut, and none leaves room for a passage in 4 tokens", {"model__max_length": 4}),
        ("at least 2 labeled pairs: got 1", {"stages": [xpi_rows().select([0])]}),
        (r"a label is 1 \(relevant\) or 0 \(not\): got 2", {"stages": [graded]}),
        ("passage_language", {"stages": [xpi_rows().remove_columns("passage_language")]}),
        ("shared by 2 stages: got 1", {"name": "xpr-cascade", "arguments__max_steps": 1}),
    ]
    for message, options in faults:
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "run", **options)
    with pytest.raises(NotFiniteError):
        run(tmp_path / "nan", judged=False, arguments__learning_rate=1e30, arguments__max_grad_norm=0.0)
    assert not (tmp_path / "run").exists() and not (tmp_path / "nan" / "model.safetensors").exists()


def test_development_pairs_without_a_score_are_left_out(tmp_path: Path, logged: Any) -> None:
    """One long sentence among the development pairs ended the training of a filter at its first evaluation, after
    minutes, with an error of the tokenizer: long pairs of the training data were skipped, these were not."""
    rows = xpi_rows()
    long = rows.select([0]).map(lambda row: {"query": " ".join([row["query"]] * 30)})
    development = concatenate_datasets([rows, long])
    result = run(tmp_path / "run", evaluator=pair_classification(development), arguments__max_steps=1)
    assert result.best is not None and result.best > 0
    assert f"1 of {len(development)} development pairs are left out" in logged()
    with pytest.raises(
        ValueError, match="of all development pairs of a label leave no room for a passage in 64 tokens"
    ):
        run(tmp_path / "long", evaluator=pair_classification(long), arguments__max_steps=1)
    assert not (tmp_path / "long").exists()


GERMAN, ENGLISH = sentences()


def pools() -> RerankingEvaluator:
    """A query of the training pairs in other spelling, and one that is new; an answer of theirs, and a new one."""
    texts = {GERMAN[3].upper(): ["Not there at all.", ENGLISH[5]], "Ganz neu?": [ENGLISH[7], "Not there at all."]}
    pools = [CandidatePool(query, "de", passages, ["en", "en"], [1, 0]) for query, passages in texts.items()]
    return RerankingEvaluator(pools, name="dev")


def test_leaks_are_named_and_dropped(tmp_path: Path, logged: Any) -> None:
    options: dict[str, Any] = {"evaluator": pools(), "evaluation": {"later": [ENGLISH[0]]}, "on_leak": "drop"}
    run(tmp_path / "run", "xpr-merged", arguments__max_steps=1, **options)
    leak = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["leak"]
    sides = {name: side["text"] for name, side in leak["sets"].items()}
    assert {name: (side["leaked"], side["rows"]) for name, side in sides.items()} == {
        "dev queries": (1, 2), "dev relevant passages": (1, 2), "later": (1, 1)
    }  # fmt: skip
    assert "dev queries" in logged()
    gone = {GERMAN[3], ENGLISH[7], ENGLISH[0]}
    manifest = RunFolder(tmp_path / "run").read_manifest()
    [pairs] = merged(aligned())
    remaining = [row for row in pairs if not gone & {row["query"], row["passage"]}]
    assert manifest["data"]["xpr-merged"]["rows"] == len(remaining) < len(pairs)


@pytest.mark.slow
def test_interrupted_and_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the last stage: it ends as an undisturbed run, and the stages before are not trained again."""
    options: dict[str, Any] = {"arguments__max_steps": 6, "arguments__eval_steps": 1}
    undisturbed = run(tmp_path / "undisturbed", "xpr-cascade", **options)
    out = tmp_path / "run"
    assert [stage["steps"] for stage in undisturbed.stages] == [3, 3]
    with monkeypatch.context() as patch:
        stop_at(patch, RankingTrainer, 6)
        with pytest.raises(TrainingInterrupted) as stop:
            run(out, "xpr-cascade", **options)
    assert stop.value.checkpoint == out / "training" / "stage-2" / "checkpoint-2"
    assert not (out / "model.safetensors").exists()
    resumed = run(out, "xpr-cascade", **options, resume=True)
    for mine, theirs in zip(resumed.stages, undisturbed.stages, strict=True):
        assert (mine["name"], mine["steps"]) == (theirs["name"], 3)
        assert mine["best_dev"] == pytest.approx(theirs["best_dev"], abs=1e-6)
    for name in ("model.safetensors", "2_Dense/model.safetensors"):
        resumed_weights, weights = (load_file(result.folder / name) for result in (resumed, undisturbed))
        torch.testing.assert_close(resumed_weights, weights, rtol=0, atol=1e-6)
    losses = [[entry["loss"] for entry in result.history if "loss" in entry] for result in (resumed, undisturbed)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.slow
def test_adapters_resume(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options: dict[str, Any] = {"arguments__lora__rank": 2, "arguments__lora__dropout": 0.1, "head": "pooler"}
    options |= {"arguments__eval_steps": 1, "judged": False}
    undisturbed = run(tmp_path / "whole", **options)
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        stop_at(patch, RankingTrainer, 3)
        run(tmp_path / "torn", **options)
    torn = run(tmp_path / "torn", resume=True, **options)
    resumed_weights, weights = (load_file(result.folder / "model.safetensors") for result in (torn, undisturbed))
    torch.testing.assert_close(resumed_weights, weights, rtol=0, atol=1e-6)


def test_sentence_transformers_trainer_takes_our_models(tmp_path: Path) -> None:
    """Of passages that are longer than the model, too, which it cuts otherwise than a model of the library."""
    model = tiny_cross_encoder([text for pair in PAIRS for text in pair], max_length=64)
    rows = xpi_rows().select_columns(["query", "passage", "label"])
    rows = rows.map(lambda row: {"passage": row["passage"] * 9})
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(tmp_path), max_steps=2, report_to="none", disable_tqdm=True, save_strategy="no", use_cpu=True
    )
    before = model.predict(PAIRS)
    loss = BinaryCrossEntropyLoss(model)
    trainer: Any = CrossEncoderTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)
    assert np.isfinite(trainer.train().training_loss)
    assert not np.array_equal(model.predict(PAIRS), before)
