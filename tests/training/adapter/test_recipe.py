"""The recipe sf: the paper's settings, strict keys, faults named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.training.adapter import adapter_recipe_names, is_adapter_recipe, load_adapter_recipe
from st_xling.training.arguments import total_steps


def test_the_papers_settings() -> None:
    """Huang et al. 2023, section 4.2."""
    recipe = load_adapter_recipe("sf")
    assert adapter_recipe_names() == ["sf"] and is_adapter_recipe("sf") and not is_adapter_recipe("dap")
    assert (recipe.adapter.layer, recipe.adapter.network, recipe.adapter.dropout) == (7, "linear", 0.2)
    assert (recipe.loss.margin, recipe.loss.distance, recipe.loss.negatives) == (1.0, "euclidean", "worst")
    training = recipe.as_dict()["training"]
    assert (training["epochs"], training["batch_size"], training["learning_rate"]) == (70, 32, 5e-6)
    # 2,016 pairs and as many negatives are 4,032 labelled rows: 63 batches of 64 an epoch.
    assert total_steps(recipe.training, 2016) == 70 * 4032 // 64 == 4410
    assert recipe.adapter.centre == "per_language"
    assert (training["schedule"], training["weight_decay"]) == ("constant", 0.0)
    assert "lora" not in training
    assert load_adapter_recipe("sf", tiny=True).adapter.layer == 1


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("adapter: {layer: 5, network: tanh}\nloss: {negatives: hardest}\n", encoding="utf-8")
    assert is_adapter_recipe(str(path))
    recipe = load_adapter_recipe(str(path), overrides={"adapter.dropout": 0})
    assert (recipe.name, recipe.adapter.layer, recipe.adapter.network, recipe.adapter.dropout) == ("mine", 5, "tanh", 0)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("adapter.layers", 3, "adapter has no key 'layers'; did you mean 'layer'"),
        ("adapter.network", "lnear", "network must be one of .* got 'lnear'"),
        ("adapter.dropout", 1, "dropout must be in"),
        ("adapter.centre", "language", "centre must be one of per_language, joint, none: got 'language'"),
        ("adapter.layer", 2.5, "adapter.layer must be a whole number: got 2.5"),
        ("loss.distance", "chebyshev", "distance must be one of"),
        ("loss.margin", 0, "margin must be above 0"),
        ("model.pooling", "last", "model.pooling must be one of"),
        ("training.lora.rank", 8, "training has no key 'lora'"),
        ("training.learning_rate", -1, "training.learning_rate is out of range"),
    ],
)
def test_faults(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_adapter_recipe("sf", overrides={key: value})
