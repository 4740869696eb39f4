"""Training on vectors: it brings translations together, is repeatable, and names what it cannot train on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from st_xling.evaluation import precision_at
from st_xling.training import NotFiniteError
from st_xling.training.adapter import fit_adapter, load_adapter_recipe

SHORT = {"training.epochs": 30, "training.batch_size": 32, "training.learning_rate": 3e-3}


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
        {"adapter.network": "tanh"},
        {"adapter.network": "two-layer"},
        {"loss.distance": "manhattan"},
        {"loss.distance": "cosine", "loss.negatives": "average"},
        {"loss.negatives": "random"},
        {"loss.negatives": "hardest"},
        {"loss.negatives": "none"},
        {"adapter.centre": "none"},
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


def test_what_cannot_be_trained_on(sides: tuple[Tensor, Tensor]) -> None:
    recipe = load_adapter_recipe("sf", overrides={**SHORT, "training.max_steps": 2})
    source, target = sides
    with pytest.raises(ValueError, match=r"row-aligned vectors .* \(300, 24\) and \(299, 24\)"):
        fit_adapter(source, target[1:], recipe)
    with pytest.raises(ValueError, match="at least 2 pairs, .* got 1"):
        fit_adapter(source[:1], target[:1], recipe)
    with pytest.raises(ValueError, match="target holds vectors that are not finite"):
        fit_adapter(source, target / 0, recipe)
    assert fit_adapter(source[:2], target[:2], recipe).steps == 2
    with pytest.raises(NotFiniteError, match="the loss is inf"):
        fit_adapter(source * 1e25, target * 1e25, recipe)
