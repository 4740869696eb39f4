"""Adapters: networks by definition, training on vectors, stock modules, the recipe sf, a sweep over layers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from torch import Tensor, nn

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import PrecisionEvaluator, precision_at
from st_xling.hub.push import is_published
from st_xling.models import tiny_encoder
from st_xling.models.normalization import apply_centering, fit_centering
from st_xling.models.view import cut_to_layer
from st_xling.training import NotFiniteError
from st_xling.training.adapter import Adapter, fit_adapter, layer_table, load_adapter_recipe, train_adapter
from st_xling.training.arguments import total_steps
from st_xling.training.options import AdapterOptions
from st_xling.training.sentence_vectors import LayerPooling, layer_vectors

TEXTS = ["我买了三本旧书。", "I bought three old books.", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", ""]


def test_the_papers_settings() -> None:
    """Huang et al. 2023, section 4.2."""
    recipe = load_adapter_recipe("sf")
    assert (recipe.adapter.layer, recipe.adapter.network, recipe.adapter.dropout) == (7, "linear", 0.2)
    assert (recipe.loss.margin, recipe.loss.distance, recipe.loss.negatives) == (1.0, "euclidean", "worst")
    training = recipe.as_dict()["arguments"]
    assert (training["num_train_epochs"], training["learning_rate"]) == (70, 5e-6)
    # 2,016 pairs and as many negatives are 4,032 labeled rows: 63 batches of 64 an epoch.
    assert total_steps(recipe.arguments, 2016) == 70 * 4032 // 64 == 4410
    assert recipe.adapter.center == "per_language"
    assert (training["lr_scheduler_type"], training["weight_decay"]) == ("constant", 0.0)
    assert load_adapter_recipe("sf", tiny=True).adapter.layer == 1


FAULTS = {"adapter.network": "lnear", "adapter.dropout": 1, "loss.margin": 0, "arguments.lora.rank": 8}


@pytest.mark.parametrize(("key", "value"), FAULTS.items())
def test_recipes_that_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key.split(".")[1]):
        load_adapter_recipe("sf", overrides={key: value})


FAST = {"arguments.num_train_epochs": 20, "arguments.learning_rate": 1e-3, "loss.negatives": "hardest"}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return {"zh-vi": parallel_phrases("zh", "vi", size=160)}


@pytest.fixture(scope="module")
def evaluator() -> PrecisionEvaluator:
    dev = parallel_phrases("zh", "vi", split="test", size=40)
    return PrecisionEvaluator({"zh-vi": dev}, name="dev")


@pytest.fixture(scope="module")
def encoder(data: dict[str, Any]) -> Any:
    texts = [text for side in ("source", "target") for text in data["zh-vi"][side][:]]
    return tiny_encoder(texts, vocabulary=400, hidden_size=64, layers=3, dropout=0.0).to("cpu").eval()


@pytest.mark.parametrize(("network", "center"), [("two-layer", "per_language"), ("tanh", "joint"), ("relu", "none")])
def test_the_saved_model_is_stock_and_says_what_the_adapter_says(
    network: str, center: str, data: dict[str, Any], encoder: Any, evaluator: PrecisionEvaluator, tmp_path: Path
) -> None:
    options = {"adapter.layer": 2, "adapter.network": network, "adapter.center": center}
    out = tmp_path / "run"
    recipe = load_adapter_recipe("sf", overrides={**FAST, **options})
    result = train_adapter(recipe, data, out, model=encoder, evaluator=evaluator, cache=tmp_path / "cache")
    column = LayerPooling(2)
    vectors = torch.from_numpy(layer_vectors(encoder, TEXTS, [column])[column.name])
    fitted = result.chosen.adapter

    middle = {"per_language": ["Normalize", "Router", "Normalize"], "joint": ["Normalize", "Dense", "Normalize"]}
    types = [entry["type"] for entry in json.loads((out / "modules.json").read_text("utf-8"))]
    assert all(name.startswith("sentence_transformers.") for name in types)
    kinds = [name.rsplit(".", 1)[1] for name in types]
    dense = ["Dense"] * (2 if network == "two-layer" else 1)
    assert kinds == ["Transformer", "Pooling", *dense, *middle.get(center, ["Normalize"])]
    stock = SentenceTransformer(str(out), device="cpu")
    if center == "per_language":
        for task in ("zh", "vi", None, "query"):
            expected = fitted.adapt(vectors, task if task in ("zh", "vi") else None).numpy()
            np.testing.assert_allclose(stock.encode(TEXTS, task=task), expected, rtol=0, atol=1e-5)
        assert np.abs(stock.encode(TEXTS, task="zh") - stock.encode(TEXTS, task="vi")).max() > 1e-2
        with pytest.raises(ValueError, match="'zh'"):
            stock.encode(TEXTS, task="th")
        nested = [path.relative_to(out).as_posix() for path in out.glob("*_Router/**/*") if path.is_file()]
        assert len(nested) == 7 and all(map(is_published, nested)), "all of it is published"
    else:
        np.testing.assert_allclose(stock.encode(TEXTS), fitted.adapt(vectors).numpy(), rtol=0, atol=1e-5)
    assert json.loads((out / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"] == 2
    assert str(tmp_path) not in (out / "README.md").read_text(encoding="utf-8")

    figures = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    judged = evaluator(result.model)
    assert figures["layers"][0]["trained"]["mean_p@1"] == pytest.approx(judged["dev_mean_p@1"])
    assert figures["best_dev"] == figures["layers"][0]["trained"]["mean_p@1"]
    assert figures["layer"] == 2 and figures["signature"] == evaluator.identity


def test_the_better_centering_is_what_an_adapter_has_to_beat(
    data: dict[str, Any], encoder: Any, evaluator: PrecisionEvaluator, tmp_path: Path
) -> None:
    """A tiny encoder of random weights sets languages far apart, which one mean of both cannot undo."""
    recipe = load_adapter_recipe("sf", overrides={**FAST, "adapter.layer": 1, "arguments.max_steps": 1})
    result = train_adapter(recipe, data, tmp_path / "run", model=encoder, evaluator=evaluator, cache=tmp_path / "c")
    cut = cut_to_layer(encoder, 1)
    scores = {}
    for way in ("joint", "per_language"):
        texts = [text for side in ("source", "target") for text in data["zh-vi"][side][:]]
        centering = fit_centering(torch.from_numpy(cut.encode(texts)), ["zh"] * 160 + ["vi"] * 160, way)
        scores[way] = evaluator(apply_centering(cut, centering))["dev_mean_p@1"]
    row = result.layers[0]
    assert row.figures["centered"]["mean_p@1"] == pytest.approx(max(scores.values()))
    assert scores[str(row.centered_by)] == max(scores.values()) > min(scores.values())


def test_the_sweep_is_one_pass_and_a_second_run_none(
    data: dict[str, Any], encoder: Any, evaluator: PrecisionEvaluator, tmp_path: Path
) -> None:
    recipe = load_adapter_recipe("sf", overrides=FAST)  # layer 7, which is not asked for
    options: dict[str, Any] = {"model": encoder, "evaluator": evaluator, "sweep": True, "cache": tmp_path / "cache"}
    passed: list[int] = []
    hook = encoder[0].auto_model.encoder.layer[0].register_forward_hook(lambda *a: passed.append(len(a[2][0])))
    result = train_adapter(recipe, data, tmp_path / "first", **options)
    hook.remove()
    texts = {*data["zh-vi"]["source"], *data["zh-vi"]["target"]}.union(*evaluator.pairs["zh-vi"])
    assert result.encoded == len(texts)
    assert len(passed) <= -(-len(texts) // 32) + 4  # batches, and one text to check a cut
    again = train_adapter(recipe, data, tmp_path / "second", **options)
    assert again.encoded == 0
    assert [row.figures for row in again.layers] == [row.figures for row in result.layers]
    assert [row.label for row in result.layers] == ["1", "2", "3", "all", "cls"]
    table = layer_table(result.layers).splitlines()
    assert table[0].split()[:5] == ["layer", "untrained", "P@1", "untrained", "P@5"] and len(table) == 6
    assert all(len(line.split()) == 8 for line in table[1:])
    single = {row.label: row.figures["trained"]["mean_p@1"] for row in result.layers[:3]}
    assert single[result.chosen.label] == max(single.values())

    second_layer = load_adapter_recipe("sf", overrides={**FAST, "adapter.layer": 2})
    alone = train_adapter(
        second_layer, data, tmp_path / "third", model=encoder, evaluator=evaluator, cache=tmp_path / "cache"
    )
    assert alone.layers[0].figures == result.layers[1].figures


def test_faults(data: dict[str, Any], encoder: Any, make_model: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    cache = tmp_path / "cache"
    recipe = load_adapter_recipe("sf", overrides={"adapter.layer": 1, "arguments.max_steps": 2})
    unnamed = data["zh-vi"].remove_columns("source_language").add_column("source_language", ["und"] * 160)
    faults: list[tuple[str, dict[str, Any]]] = [
        ("layer must be from 1 to 3: got 7", {"recipe": load_adapter_recipe("sf")}),
        (r"mine .* adapter.center joint", {"data": {"mine": unnamed}}),
        ("at least 2 pairs, each other's negatives: got 1", {"data": {"zh-vi": data["zh-vi"].select([0])}}),
        ("a sweep compares layers on development pairs", {"sweep": True}),
        ("float32 weights, .* got torch.float16", {"model": make_model().half()}),
    ]
    good: dict[str, Any] = {"recipe": recipe, "data": data, "out": out, "model": encoder, "cache": cache}
    for message, options in faults:
        with pytest.raises(ValueError, match=message):
            train_adapter(**{**good, **options})
    assert not out.exists()


NETWORKS: dict[str, Any] = {"linear": nn.Identity(), "tanh": torch.tanh, "relu": torch.relu, "two-layer": torch.tanh}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("normalize", [False, True])
def test_networks_by_definition(network: Any, normalize: bool) -> None:
    torch.manual_seed(0)
    adapter = Adapter(6, AdapterOptions(network=network, dropout=0.5, normalize=normalize)).double().eval()
    source = torch.randn(9, 6).double()
    first, *second = [stage.linear for stage in adapter.stages if isinstance(stage, Dense)]
    vectors = nn.functional.normalize(source, dim=-1) if normalize else source
    expected = NETWORKS[network](vectors @ first.weight.T + first.bias)
    for layer in second:
        expected = expected @ layer.weight.T + layer.bias
    torch.testing.assert_close(adapter(source), expected, rtol=1e-9, atol=0)
    adapter.train().finish(source, ["zh"] * 9, "joint")  # without dropout
    centered = nn.functional.normalize(expected, dim=-1)
    centered = nn.functional.normalize(centered - centered.mean(dim=0), dim=-1)
    torch.testing.assert_close(adapter.adapt(source), centered, rtol=1e-5, atol=1e-6)


SHORT = {"arguments.num_train_epochs": 30, "arguments.learning_rate": 3e-3}


def rows(count: int) -> Dataset:
    columns = {side: [f"{side} {row}" for row in range(count)] for side in ("source", "target")}
    return Dataset.from_dict({**columns, "source_language": ["zh"] * count, "target_language": ["vi"] * count})


@pytest.fixture(scope="module")
def sides() -> tuple[Tensor, Tensor]:
    """Two languages that agree in 6 of 24 dimensions; the others are noise of twice the size."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(300, 6, generator=generator)
    noise = 2 * torch.randn(2, 300, 18, generator=generator)
    return torch.cat([shared, noise[0]], dim=1), torch.cat([shared, noise[1]], dim=1)


OTHERS = [
    {"adapter.network": "two-layer", "loss.negatives": "hardest"},
    {"loss.negatives": "none", "adapter.center": "none"},
]


@pytest.mark.parametrize("overrides", [{}, *OTHERS], ids=lambda options: ",".join(options.values()) or "paper")
def test_unseen_translations_are_found_more_often(sides: tuple[Tensor, Tensor], overrides: dict[str, Any]) -> None:
    source, target = sides
    recipe = load_adapter_recipe("sf", overrides={**SHORT, **overrides})
    fitted, history = fit_adapter(source[:200], target[:200], rows(200), recipe)
    losses = [entry["loss"] for entry in history]
    assert losses[-1] < losses[0] and history[-1]["step"] == 30 * 6
    before = precision_at(source[200:], target[200:])[0][5]
    after = precision_at(fitted.adapt(source[200:], "zh"), fitted.adapt(target[200:], "vi"))[0][5]
    assert after > before


def test_the_seed_fixes_it_and_the_callers_randomness_stays(sides: tuple[Tensor, Tensor]) -> None:
    options = {**SHORT, "arguments.max_steps": 8, "loss.negatives": "random"}
    recipes = [load_adapter_recipe("sf", overrides={**options, "arguments.seed": seed}) for seed in (1, 1, 2)]
    torch.manual_seed(5)
    fits = [fit_adapter(*sides, rows(300), recipe)[0].adapt(sides[0]) for recipe in recipes]
    drawn = torch.rand(1)
    assert torch.equal(fits[0], fits[1]) and not torch.equal(fits[0], fits[2])
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))


def test_numbers_that_are_none(sides: tuple[Tensor, Tensor]) -> None:
    recipe = load_adapter_recipe("sf", overrides={**SHORT, "arguments.max_steps": 2})
    source, target = sides
    with pytest.raises(NotFiniteError, match="the loss is inf"):
        fit_adapter(source * 1e25, target * 1e25, rows(300), recipe)
