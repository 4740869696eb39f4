"""Recipes of retrievers: the paper's weights, strict keys, what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.training import load_recipe
from st_xling.training.retriever import is_retrieval_recipe, load_retrieval_recipe, retrieval_recipe_names


def test_the_papers_weights() -> None:
    assert retrieval_recipe_names() == ["ir", "ir-langcl", "ir-semacl", "ir-semacl-langcl"]
    found = {
        name: {loss: options["weight"] for loss, options in load_retrieval_recipe(name).losses.items()}
        for name in retrieval_recipe_names()
    }
    ranking, semantic, language = (
        {"in_batch_ranking": 1.0},
        {"semantic_contrastive": 0.01},
        {"language_contrastive": 0.001},
    )
    assert found["ir"] == ranking and found["ir-semacl"] == ranking | semantic
    assert found["ir-langcl"] == ranking | language and found["ir-semacl-langcl"] == ranking | semantic | language
    training = load_retrieval_recipe("ir").training
    assert (training.batch_size, training.learning_rate, training.weight_decay) == (48, 1e-5, 0.01)
    assert {load_retrieval_recipe(name).retrieval.encoders for name in found} == {"separate"}


def test_options_and_overrides(tmp_path: Path) -> None:
    changes = {"retrieval.encoders": "shared", "training.epochs": 2, "losses.semantic_contrastive.weight": 0}
    recipe = load_retrieval_recipe("ir-semacl", tiny=True, overrides=changes)
    assert recipe.retrieval.encoders == "shared" and recipe.retrieval.gradients == "one_by_one"
    assert (
        recipe.training.epochs == 2 and recipe.training.batch_size == 64 and list(recipe.losses) == ["in_batch_ranking"]
    )
    assert recipe.as_dict()["retrieval"] == {
        "encoders": "shared", "gradients": "one_by_one", "parallel_batch_size": None
    }  # fmt: skip
    own = tmp_path / "own.yaml"
    own.write_text("losses: {in_batch_ranking: {scale: 5}}\nretrieval: {gradients: together}\n", encoding="utf-8")
    assert is_retrieval_recipe(str(own)) and load_retrieval_recipe(str(own)).name == "own"
    plain = tmp_path / "plain.yaml"
    plain.write_text("losses: {translation_ranking: }\n", encoding="utf-8")
    assert not is_retrieval_recipe(str(plain)) and not is_retrieval_recipe("dap") and is_retrieval_recipe("ir")
    assert load_recipe(str(plain)).name == "plain"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retrieval.encoders": "two"}, "retrieval.encoders must be one of shared, separate: got 'two'"),
        ({"retrieval.gradient": "together"}, "did you mean 'gradients'"),
        ({"retrieval.parallel_batch_size": 1}, "parallel_batch_size must be at least 2 .* got 1"),
        ({"retrieval.parallel_batch_size": 8, "losses.semantic_contrastive.weight": 0}, "reads no parallel text"),
        ({"losses.in_batch_ranking.weight": 0}, "a retriever learns by in_batch_ranking"),
        ({"losses.translation_ranking.weight": 1}, "losses of a retriever"),
        ({"losses.in_batch_ranking.columns": [0, 1]}, "columns follow from the term"),
        ({"training.mini_batch_size": 16}, "without mini-batches and adapters"),
        ({"training.lora.rank": 4}, "without mini-batches and adapters"),
    ],
)
def test_what_is_refused(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_retrieval_recipe("ir-semacl", overrides=overrides)
