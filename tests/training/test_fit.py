"""Losses and their sums in the host's oldest door, ``model.fit([(loader, loss)])``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import InputExample
from torch.utils.data import DataLoader

from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss

BUILD = {
    "TR": lambda model: TranslationRankingLoss(model),
    "TR with a margin": lambda model: TranslationRankingLoss(model, margin=0.3),
    "DAP": lambda model: TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1),
    "weighted": lambda model: 0.5 * TranslationRankingLoss(model) + 2 * RepresentationTranslationLoss(model).on(1, 0),
}


@torch.no_grad()
def value(loss: Any, features: list[dict[str, torch.Tensor]]) -> dict[str, float]:
    loss.eval()
    result = loss(features)
    loss.train()
    return {key: float(part) for key, part in result.items()} if isinstance(result, dict) else {"loss": float(result)}


@pytest.mark.parametrize("name", BUILD)
def test_the_loss_falls(
    name: str,
    make_model: Callable[..., Any],
    features: Callable[..., Any],
    pairs: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # the host writes below the current folder
    model = make_model()
    loss = BUILD[name](model)
    before = value(loss, features(model))
    loader = DataLoader([InputExample(texts=list(pair)) for pair in pairs * 6], batch_size=8, shuffle=True)
    model.fit([(loader, loss)], epochs=1, warmup_steps=0, optimizer_params={"lr": 1e-2}, show_progress_bar=False)
    after = value(loss, features(model))
    assert before.keys() == after.keys()
    for component, start in before.items():
        assert after[component] < 0.98 * start, component
