"""Cross-encoders: recipes, stages, losses, heads, adapters, leaks, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

from st_xling.data import LeakError
from st_xling.data.reranking.pools import CandidatePool
from st_xling.data.reranking.strategies import merged
from st_xling.evaluation import RerankingEvaluator
from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.models.lora import has_adapters
from st_xling.training import NotFiniteError
from st_xling.training.ranking_losses import RankingLoss, loss_names, read_ranking_loss
from st_xling.training.reranker import (
    cross_encoder_recipe_names,
    load_cross_encoder_recipe,
    train_cross_encoder,
)
from tests.training.ranking_run import TINY, aligned, run, sentences, xpi_rows

NAMES = ["xpi", "xpr-cascade", "xpr-merged", "xpr-mixed"]


def load(name: str = "xpr-mixed", **options: Any) -> Any:
    return load_cross_encoder_recipe(name, **options)


def test_the_paper_s_recipes() -> None:
    """Adam, 2e-5, linear decay, binary cross-entropy, linear on CLS (section V-D, equations 1 to 4)."""
    assert cross_encoder_recipe_names() == NAMES
    for name in NAMES:
        recipe = load(name)
        assert recipe.name == name and recipe.summary and recipe.strategy == name.removeprefix("xpr-")
        assert recipe.head == "cls" and recipe.loss == RankingLoss("binary_cross_entropy")
        training = recipe.training
        assert (training.learning_rate, training.lr_scheduler_type, training.weight_decay) == (2e-5, "linear", 0.0)
        assert load(name, tiny=True).training.learning_rate > 1e-4


def test_xpi_before_another() -> None:
    told = {"training.seed": 7, "training.num_train_epochs": 2, "xpi.training.max_steps": 3, "model.max_length": 99}
    recipe = load(xpi=True, overrides={**told, "head": "pooler", "training.lora.rank": 4})
    before = recipe.xpi
    assert (before.strategy, before.head, before.model.max_length) == ("xpi", "pooler", 99)
    assert (before.training.seed, before.training.max_steps, before.training.num_train_epochs) == (7, 3, 1.0)
    assert before.training.lora.rank == recipe.training.lora.rank == 4 and recipe.training.max_steps == -1
    assert load(xpi=True, overrides={"training.seed": 7, "xpi.training.seed": 1}).xpi.training.seed == 1
    assert load().xpi is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"strateggy": "mixed"}, "has no key 'strateggy'; did you mean 'strategy'"),
        ({"strategy": "stirred"}, "strategy must be one of xpi, merged, cascade, mixed: got 'stirred'"),
        ({"head": "mean"}, "head must be one of cls, pooler, keep: got 'mean'"),
        ({"training.batches": "one_pair"}, "training has no key 'batches'"),
        ({"training.learning_rate": -1}, r"training\.learning_rate is out of range"),
        ({"negatives.per_positve": 1}, "negatives has no key 'per_positve'; did you mean 'per_positive'"),
        ({"negatives.hard": 3}, r"negatives\.hard counts among negatives\.per_positive: got 3 of 1"),
        ({"sentences.size": 3}, "'sentences' shapes what XPI makes of parallel text"),
        ({"xpi.training.num_train_epochs": 3}, "options under 'xpi' are of a stage that is not there"),
        ({"loss": "lamda"}, "loss 'lamda' is not known; did you mean 'lambda'"),
        ({"loss": {"list_net": {"mini_batch": 3}}}, "has no key 'mini_batch'; did you mean 'mini_batch_size'"),
        ({"loss": {"list_net": None, "mse": None}}, "loss names one loss"),
        ({"loss": {"lambda": {"sigma": "big"}}}, r"loss\.lambda\.sigma must be a number: got 'big'"),
        ({"loss.lambda.sigma": 2.0}, "'loss' is no section of the recipe"),
        ({"loss": {"lambda": {"weighting_scheme": "Heavy"}}}, "weighting_scheme must be one of NoWeightingScheme"),
    ],
)
def test_options_that_cannot_be(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(overrides=overrides)


@pytest.mark.parametrize("spelling", ["rank_net", "ranknet", "RankNetLoss", "rank-net"])
def test_a_loss_in_any_spelling(spelling: str) -> None:
    assert read_ranking_loss({spelling: {"k": 3}}) == RankingLoss("rank_net", {"k": 3})


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
    """With a rate of nearly nothing, what a stage ends with is what it began with; a cascade keeps the head too."""
    options = {"training__learning_rate": 1e-12, "xpi__training__learning_rate": 1e-2, "training__max_steps": 2}
    run(tmp_path / "run", "xpr-cascade", xpi=True, judged=False, **options)
    folders = [tmp_path / "run" / part for part in ("training/stage-1/model", "training/stage-2/model", "")]
    encoders = [load_file(folder / "model.safetensors") for folder in folders]
    assert all(torch.allclose(encoders[0][key], encoders[2][key], atol=1e-7) for key in encoders[0])
    heads = [load_file(folder / "2_Dense" / "model.safetensors") for folder in folders]
    assert not torch.allclose(heads[0]["linear.weight"], heads[1]["linear.weight"], atol=1e-3)
    assert torch.allclose(heads[1]["linear.weight"], heads[2]["linear.weight"], atol=1e-7)
    assert heads[2]["linear.bias"].abs().max() < 1e-6 < heads[0]["linear.bias"].abs().max()


FORMS = ("binary_cross_entropy", "list_net", "multiple_negatives_ranking", "margin_mse")
LOSSES = [name if name in FORMS else pytest.param(name, marks=pytest.mark.slow) for name in loss_names()]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_trains(loss: str, tmp_path: Path) -> None:
    result = run(tmp_path / "run", "xpr-merged", loss=loss, judged=False, training__max_steps=2)
    losses = [entry["loss"] for entry in result.history if "loss" in entry]
    assert len(losses) == 2 and np.isfinite(losses).all()
    assert (tmp_path / "run" / "training" / "checkpoint-2").is_dir()  # one stage: where an encoder's are


@pytest.mark.parametrize(("head", "merge"), [("cls", True), ("pooler", False)])
def test_lora_trains_and_keeps_the_head(head: str, merge: bool, tmp_path: Path) -> None:
    options = {"training__lora__rank": 2, "training__lora__merge": merge, "head": head}
    result = run(tmp_path / "run", **options)
    assert has_adapters(result.model) is not merge
    assert (tmp_path / "run" / "adapter_model.safetensors").is_file() is not merge
    same_scores(tmp_path / "run", result.model)
    base = CrossEncoder(str(tmp_path / "run" / "training" / "base"), device="cpu")
    assert not np.allclose(base.predict(PAIRS), result.model.predict(PAIRS), atol=1e-3)
    CrossEncoder(str(tmp_path / "run" / "training" / "checkpoint-4"), device="cpu")  # best or last: it loads


def test_what_is_refused(tmp_path: Path) -> None:
    recipe = load_cross_encoder_recipe("xpr-mixed")
    with pytest.raises(ValueError, match="XPI needs a recipe and data: got its data and no recipe"):
        train_cross_encoder(recipe, [xpi_rows()], tmp_path / "run", model="tiny", xpi=xpi_rows())
    with pytest.raises(ValueError, match="the model 'tiny' has no head to keep"):
        run(tmp_path / "run", head="keep")
    with pytest.raises(ValueError, match="a query is never cut, and none of 32 leaves room for a passage in 4 tokens"):
        run(tmp_path / "run", model__max_length=4)
    with pytest.raises(ValueError, match="shared by 2 stages: got 1"):
        run(tmp_path / "run", "xpr-cascade", training__max_steps=1)
    with pytest.raises(NotFiniteError):
        run(tmp_path / "nan", judged=False, training__learning_rate=1e30, training__max_grad_norm=0.0)
    assert not (tmp_path / "run").exists() and not (tmp_path / "nan" / "model.safetensors").exists()
    run(tmp_path / "run", judged=False)
    with pytest.raises(ValueError, match="holds an earlier run"):
        run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"--resume must repeat the run .*recipe\.training\.seed"):
        run(tmp_path / "run", resume=True, judged=False, training__seed=5)
    assert run(tmp_path / "run", overwrite=True, judged=False).steps == 4


def test_the_host_s_trainer_takes_our_models(tmp_path: Path) -> None:
    model = tiny_cross_encoder([text for pair in PAIRS for text in pair], **TINY, max_length=64).to("cpu")
    rows = xpi_rows().select_columns(["query", "passage", "label"])
    rows = rows.map(
        lambda row: {"passage": row["passage"] * 9}
    )  # longer than the model, which sentence-transformers counts alone
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(tmp_path), max_steps=2, report_to="none", disable_tqdm=True, save_strategy="no"
    )
    before = model.predict(PAIRS)
    trainer: Any = CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=rows, loss=BinaryCrossEntropyLoss(model)
    )
    assert np.isfinite(trainer.train().training_loss)
    assert not np.array_equal(model.to("cpu").predict(PAIRS), before)


GERMAN, ENGLISH = sentences()


def pools() -> RerankingEvaluator:
    """A query of the training pairs in other spelling, and one that is new; an answer of theirs, and a new one."""
    pools = [
        CandidatePool(GERMAN[3].upper(), "de", ["Not there at all.", ENGLISH[5]], ["en", "en"], [1, 0]),
        CandidatePool("Ganz neu?", "de", [ENGLISH[7], "Not there at all."], ["en", "en"], [1, 0]),
    ]
    return RerankingEvaluator(pools, name="dev")


def test_leaks_of_each_stage_are_named_and_dropped(tmp_path: Path, logged: Any) -> None:
    recipe = load_cross_encoder_recipe("xpr-merged", tiny=True, xpi=True, overrides={"training.max_steps": 1})
    options: dict[str, Any] = {"evaluator": pools(), "xpi": xpi_rows(), "evaluation": {"later": [ENGLISH[0]]}}
    with pytest.raises(LeakError):
        train_cross_encoder(
            recipe, merged(aligned()), tmp_path / "run", model="tiny", tiny=TINY, on_leak="fail", **options
        )
    assert not (tmp_path / "run").exists()
    train_cross_encoder(recipe, merged(aligned()), tmp_path / "run", model="tiny", tiny=TINY, on_leak="drop", **options)
    leak = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["leak"]
    sides = {name: side["text"] for name, side in leak["sets"].items()}
    assert {name: (side["leaked"], side["rows"]) for name, side in sides.items()} == {
        "xpr-merged dev queries": (1, 2), "xpr-merged dev relevant passages": (1, 2), "later": (1, 1)
    }  # fmt: skip
    assert "xpr-merged dev queries" in logged()
    gone = {GERMAN[3], ENGLISH[7], ENGLISH[0]}
    manifest = json.loads((tmp_path / "run" / "training" / "run.json").read_text(encoding="utf-8"))
    for name, pairs in (("xpi", xpi_rows()), ("xpr-merged", merged(aligned())[0])):
        left = [row for row in pairs if not gone & {row["query"], row["passage"]}]
        assert manifest["data"][name]["rows"] == len(left) < len(pairs)
