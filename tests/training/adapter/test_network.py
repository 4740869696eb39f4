"""The adapter's networks against plain matrices; normalise–centre–normalise; the stock modules that say the same."""

from __future__ import annotations

import pytest
import torch
from sentence_transformers.base.modules import Router
from torch import Tensor, nn

from st_xling.training.adapter import Adapter, centred

NETWORKS = ("linear", "tanh", "relu", "two-layer")


def by_definition(network: str, adapter: Adapter, vectors: Tensor) -> Tensor:
    weights = [(stage.linear.weight, stage.linear.bias) for stage in adapter.stages]  # type: ignore[union-attr]
    first = vectors @ weights[0][0].T + weights[0][1]
    if network == "linear":
        return first
    if network == "relu":
        return first.clamp(min=0)
    if network == "tanh":
        return first.tanh()
    return first.tanh() @ weights[1][0].T + weights[1][1]


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_and_their_stock_modules(network: str) -> None:
    torch.manual_seed(0)
    adapter = Adapter(6, network=network, dropout=0.5).double()  # type: ignore[arg-type]
    source, target = torch.randn(9, 6).double(), torch.randn(5, 6).double()
    adapter.eval()
    torch.testing.assert_close(adapter(source), by_definition(network, adapter, source), rtol=1e-9, atol=0)

    fitted = centred(adapter.train(), torch.cat([source, target]), ["zh"] * 9 + ["vi"] * 5)
    assert not adapter.training, "the means are taken without dropout"
    units = [nn.functional.normalize(adapter(side), dim=-1) for side in (source, target)]
    means = {language: unit.mean(dim=0) for language, unit in zip(("zh", "vi"), units)}
    for language, mean in {**means, None: (means["zh"] + means["vi"]) / 2}.items():
        shifted = units[0] - mean
        torch.testing.assert_close(fitted(source, language), shifted / shifted.norm(dim=-1, keepdim=True))
        features, options = {"sentence_embedding": source}, {"task": language} if language else {}
        for module in fitted.stock_modules():
            assert type(module).__module__.startswith("sentence_transformers.")
            features = module.double()(features, **(options if isinstance(module, Router) else {}))
        torch.testing.assert_close(features["sentence_embedding"], fitted(source, language))


def test_dropout_acts_in_training_alone() -> None:
    torch.manual_seed(0)
    adapter, vectors = Adapter(64, dropout=0.5), torch.randn(4, 64)
    dropped = adapter.train()(vectors) == 0
    assert 0.3 < dropped.float().mean() < 0.7
    assert not (adapter.eval()(vectors) == 0).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"network": "gelu"}, "network must be one of .*: got 'gelu'"), ({"dropout": 1.0}, "dropout must be in")],
)
def test_unknown_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Adapter(4, **options)
