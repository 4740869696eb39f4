"""Adapters: networks by definition, their stock modules, training on vectors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sentence_transformers.base.modules import Dense, Router
from torch import Tensor, nn

from st_xling.evaluation import precision_at
from st_xling.training import NotFiniteError
from st_xling.training.adapter import Adapter, centered, fit_adapter, load_adapter_recipe

NETWORKS = ("linear", "tanh", "relu", "two-layer")


def by_definition(network: str, adapter: Adapter, vectors: Tensor) -> Tensor:
    layers = [stage.linear for stage in adapter.stages if isinstance(stage, Dense)]
    weights = [(layer.weight, layer.bias) for layer in layers]
    first = vectors @ weights[0][0].T + weights[0][1]
    if network == "linear":
        return first
    if network == "relu":
        return first.clamp(min=0)
    if network == "tanh":
        return first.tanh()
    return first.tanh() @ weights[1][0].T + weights[1][1]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("normalize", [False, True])
def test_networks_and_their_stock_modules(network: str, normalize: bool) -> None:
    torch.manual_seed(0)
    adapter = Adapter(6, network=network, dropout=0.5, normalize=normalize).double()  # type: ignore[arg-type]
    source, target = torch.randn(9, 6).double(), torch.randn(5, 6).double()
    adapter.eval()
    vectors = nn.functional.normalize(source, dim=-1) if normalize else source
    torch.testing.assert_close(adapter(source), by_definition(network, adapter, vectors), rtol=1e-9, atol=0)

    fitted = centered(adapter.train(), torch.cat([source, target]), ["zh"] * 9 + ["vi"] * 5)
    assert not adapter.training, "the means are taken without dropout"
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if normalize else {}  # the stock means are in float32
    units = [nn.functional.normalize(adapter(side), dim=-1) for side in (source, target)]
    means = {language: unit.mean(dim=0) for language, unit in zip(("zh", "vi"), units)}
    for language, mean in {**means, None: (means["zh"] + means["vi"]) / 2}.items():
        shifted = units[0] - mean
        torch.testing.assert_close(fitted(source, language), shifted / shifted.norm(dim=-1, keepdim=True))
        features, options = {"sentence_embedding": source}, {"task": language} if language else {}
        for module in fitted.stock_modules():
            assert type(module).__module__.startswith("sentence_transformers.")
            features = module.double()(features, **(options if isinstance(module, Router) else {}))
        torch.testing.assert_close(features["sentence_embedding"], fitted(source, language), **tolerance)


SHORT = {"training.num_train_epochs": 30, "training.per_device_train_batch_size": 32, "training.learning_rate": 3e-3}


@pytest.fixture(scope="module")
def sides() -> tuple[Tensor, Tensor]:
    """Two languages that agree in 6 of 24 dimensions; the others are noise of twice the size."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(300, 6, generator=generator)
    noise = 2 * torch.randn(2, 300, 18, generator=generator)
    return torch.cat([shared, noise[0]], dim=1), torch.cat([shared, noise[1]], dim=1)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"adapter.network": "two-layer", "loss.negatives": "hardest"},
        {"loss.distance": "manhattan", "adapter.network": "tanh"},
        {"loss.distance": "cosine", "loss.negatives": "average"},
        {"loss.negatives": "none", "adapter.center": "none"},
    ],
    ids=lambda options: ",".join(map(str, options.values())) or "paper",
)
def test_unseen_translations_are_found_more_often(sides: tuple[Tensor, Tensor], overrides: dict[str, Any]) -> None:
    source, target = sides
    fit = fit_adapter(source[:200], target[:200], load_adapter_recipe("sf", overrides={**SHORT, **overrides}))
    losses = [entry["loss"] for entry in fit.history]
    assert losses[-1] < losses[0] and fit.steps == 30 * 6
    before = precision_at(source[200:], target[200:])[0][5]
    after = precision_at(fit.fitted(source[200:]), fit.fitted(target[200:]))[0][5]
    assert after > before


def test_the_seed_fixes_it_and_the_callers_randomness_stays(sides: tuple[Tensor, Tensor]) -> None:
    options = {**SHORT, "training.max_steps": 8, "loss.negatives": "random"}
    recipes = [load_adapter_recipe("sf", overrides={**options, "training.seed": seed}) for seed in (1, 1, 2)]
    torch.manual_seed(5)
    fits = [fit_adapter(*sides, recipe).fitted(sides[0]) for recipe in recipes]
    drawn = torch.rand(1)
    assert torch.equal(fits[0], fits[1]) and not torch.equal(fits[0], fits[2])
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))


def test_numbers_that_are_none(sides: tuple[Tensor, Tensor]) -> None:
    recipe = load_adapter_recipe("sf", overrides={**SHORT, "training.max_steps": 2})
    source, target = sides
    assert fit_adapter(source[:2], target[:2], recipe).steps == 2
    with pytest.raises(NotFiniteError, match="the loss is inf"):
        fit_adapter(source * 1e25, target * 1e25, recipe)
