"""Linear layers by the faster library: the same values and gradients, and nothing else is changed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments
from torch import Tensor, nn

from st_xling.losses import CachedLoss, TranslationRankingLoss
from st_xling.models import fast_linear
from st_xling.models.fast_linear import fast_linear_layers, onednn_is_faster
from st_xling.training import CrossLingualTrainer
from st_xling.utils.private import onednn_linear
from tests.conftest import PAIRS


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the results that oneDNN computes, on a machine where it is said to be faster."""
    shapes: list[tuple[int, ...]] = []

    def counted(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        result = onednn_linear(states, weight, bias)
        shapes.append(tuple(result.shape))
        return result

    monkeypatch.setattr(fast_linear, "onednn_linear", counted)
    monkeypatch.setattr(fast_linear, "onednn_is_faster", lambda: True)
    return shapes


@pytest.fixture
def measured_anew() -> Iterator[None]:
    onednn_is_faster.cache_clear()
    yield
    onednn_is_faster.cache_clear()


def pooled(states: Tensor) -> Tensor:
    """CLS of each row, which does not lie in one piece of memory."""
    return states.unflatten(0, (8, -1))[:, 0]


INPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda states: states,
    "batch": lambda states: states.unflatten(0, (8, -1)),
    "pooled": pooled,
    "expanded": lambda states: states[:1].expand(12, -1),
    "transposed": lambda states: states.t().contiguous().t(),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", INPUTS)
def test_values_and_gradients_are_those_of_torch(name: str, bias: bool, products: list[Any]) -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(160, 200, bias=bias), nn.Tanh(), nn.Linear(200, 136, bias=bias))
    states = torch.randn(48, 160, requires_grad=True)
    results = []
    for faster in (False, True):
        layers.zero_grad()
        states.grad = None
        with fast_linear_layers() if faster else torch.enable_grad():
            output = layers(INPUTS[name](states))
            output.square().sum().backward()
        results.append([output.detach(), states.grad, *(weight.grad for weight in layers.parameters())])
    assert len(products) == 6
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-4)


def test_frozen_weights_get_no_gradient(products: list[Any]) -> None:
    """As those below LoRA's adapters: their products would be computed for nothing."""
    layer = nn.Linear(160, 200).requires_grad_(False)
    states = torch.randn(16, 160, requires_grad=True)
    with fast_linear_layers():
        layer(states).sum().backward()
    assert products == [(16, 200), (16, 160)] and layer.weight.grad is None


def test_the_second_pass_of_a_cached_loss(make_model: Callable[..., Any], products: list[Any]) -> None:
    """torch leaves its modes in a backward pass: the second pass was computed by the slower library."""
    model = make_model(hidden_size=128, heads=2).train()
    loss = CachedLoss(TranslationRankingLoss(model), mini_batch_size=2)
    columns = [model.preprocess([pair[column] for pair in PAIRS]) for column in (0, 1)]
    with fast_linear_layers():
        value = loss(columns, None)
        first_pass = len(products)
        value.backward()
    assert first_pass > 0 and len(products) >= 3 * first_pass


def test_gradient_checkpointing(make_model: Callable[..., Any], tmp_path: Path, products: list[Any]) -> None:
    """It computes layers again in the backward pass, by torch, and fails where they were computed in another way."""
    model = make_model(hidden_size=128, heads=2)
    model[0].auto_model.gradient_checkpointing_enable()
    rows = Dataset.from_dict({"source": [pair[0] for pair in PAIRS], "target": [pair[1] for pair in PAIRS]})
    options: dict[str, Any] = {"max_steps": 1, "use_cpu": True, "report_to": "none", "save_strategy": "no"}
    arguments = SentenceTransformerTrainingArguments(str(tmp_path), **options, disable_tqdm=True)
    CrossLingualTrainer(model, arguments, rows, loss=TranslationRankingLoss(model)).train()
    assert not products


def test_what_is_left_to_torch(products: list[Any]) -> None:
    """Autocast, double, small layers, few rows, vectors; and all outside of it."""
    layer = nn.Linear(160, 200)
    rows = torch.randn(16, 160)
    with fast_linear_layers():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer(rows).dtype == torch.bfloat16
        assert layer.double()(rows.double()).dtype == torch.float64
        layer.float()
        layer(rows[:4])
        layer(rows[0])
        nn.Linear(64, 64)(torch.randn(16, 64))
        assert not products
        layer(rows)
    layer(rows)
    assert len(products) == 1


def test_training_uses_it(
    make_model: Callable[..., Any], tmp_path: Path, products: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only while it trains, with the same weights up to rounding."""
    rows = Dataset.from_dict({"source": [pair[0] for pair in PAIRS], "target": [pair[1] for pair in PAIRS]})
    options: dict[str, Any] = {"max_steps": 2, "use_cpu": True, "report_to": "none", "save_strategy": "no"}
    arguments = SentenceTransformerTrainingArguments(str(tmp_path), **options, optim="sgd", disable_tqdm=True)
    weights = []
    for least in (fast_linear.MIN_WEIGHTS, 10**9):
        monkeypatch.setattr(fast_linear, "MIN_WEIGHTS", least)
        model = make_model(hidden_size=128, dropout=0.0)
        CrossLingualTrainer(model, arguments, rows, loss=TranslationRankingLoss(model)).train()
        weights.append(model.state_dict())
        model.encode("Guten Morgen!")
    assert len(products) > 20
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("measured_anew")
def test_it_is_measured_once_and_changes_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.get_rng_state()
    calls: list[Any] = []

    def counted(*tensors: Any) -> Tensor:
        calls.append(tensors)
        return onednn_linear(*tensors)

    monkeypatch.setattr(fast_linear, "onednn_linear", counted)
    first = onednn_is_faster()
    count = len(calls)
    assert onednn_is_faster() == first and len(calls) == count > 0
    assert torch.equal(torch.get_rng_state(), state)
