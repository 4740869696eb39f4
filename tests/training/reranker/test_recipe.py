"""Recipes of cross-encoders: strict keys, losses by name, XPI before another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.training.reranker.ranking_losses import RankingLoss, loss_names, read_loss
from st_xling.training.reranker.recipe_files import (
    cross_encoder_recipe_names,
    is_cross_encoder_recipe,
    load_cross_encoder_recipe,
)

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
        assert (training.learning_rate, training.schedule, training.weight_decay) == (2e-5, "linear", 0.0)
        assert load(name, tiny=True).training.learning_rate > 1e-4
        assert is_cross_encoder_recipe(name)
    assert not is_cross_encoder_recipe("dap")


def test_xpi_before_another() -> None:
    told = {"training.seed": 7, "training.epochs": 2, "xpi.training.max_steps": 3, "model.max_length": 99}
    recipe = load(xpi=True, overrides={**told, "head": "pooler", "training.lora.rank": 4})
    before = recipe.xpi
    assert (before.strategy, before.head, before.model.max_length) == ("xpi", "pooler", 99)
    assert (before.training.seed, before.training.max_steps, before.training.epochs) == (7, 3, 1.0)
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
        ({"xpi.training.epochs": 3}, "options under 'xpi' are of a stage that is not there"),
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


def test_xpi_before_xpi() -> None:
    with pytest.raises(ValueError, match="XPI comes before a re-ranking recipe: got it before xpi"):
        load("xpi", xpi=True)
    with pytest.raises(ValueError, match="no recipe is called 'xpr-mixd'; did you mean 'xpr-mixed'"):
        load("xpr-mixd")


@pytest.mark.parametrize("spelling", ["rank_net", "ranknet", "RankNetLoss", "rank-net"])
def test_a_loss_in_any_spelling(spelling: str) -> None:
    assert read_loss({spelling: {"k": 3}}) == RankingLoss("rank_net", {"k": 3})


def test_every_ranking_loss_of_the_host_is_known() -> None:
    from sentence_transformers.cross_encoder import losses

    plain = {name.replace("_", "") for name in loss_names()}
    theirs = {name.removesuffix("Loss").lower() for name in losses.__all__ if name.endswith("Loss")}
    assert theirs - plain == {"crossentropy"}  # of several classes, which no score is


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("strategy: merged\nloss: {lambda: {k: 5}}\ntiny: {training: {epochs: 9}}\n", encoding="utf-8")
    assert is_cross_encoder_recipe(str(path))
    recipe = load(str(path), tiny=True)
    assert (recipe.name, recipe.loss.options, recipe.training.epochs) == ("mine", {"k": 5}, 9.0)
    path.write_text("losses: {translation_ranking: {}}\n", encoding="utf-8")
    assert not is_cross_encoder_recipe(str(path))
