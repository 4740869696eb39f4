"""Batches read in groups of like length: the loss and gradients of one pass, for any kind of model."""

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_xling.losses import CachedLoss, RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models.length_groups import grouped_by_length, length_groups
from st_xling.models.view import cut_to_layer
from tests.losses.test_cached import gradients
from tests.models.tiny_cross_encoder import tiny_cross_encoder

TEXTS = (
    ["Hallo.", "Der Hund schläft unter dem großen Tisch, weil es draußen regnet und schneit.", "我", "Guten Abend!"],
    ["Hello.", "The dog sleeps under the big table, for it rains and snows outside.", "Me", "Good evening to you all!"],
)


@pytest.mark.parametrize("group_tokens", [1, 7, 1000])
def test_no_division_is_cheaper(group_tokens: int) -> None:
    """Against all divisions of seven rows."""
    lengths = np.random.default_rng(group_tokens).integers(1, 30, 7)
    found = length_groups(lengths, group_tokens)
    assert sorted(np.concatenate(found).tolist()) == list(range(7))
    divisions = (
        [np.flatnonzero(np.array(label) == group) for group in set(label)]
        for label in itertools.product(range(7), repeat=7)
        if label[0] == 0 and all(label[i] <= max(label[:i]) + 1 for i in range(1, 7))
    )
    costs = [sum(len(rows) * lengths[rows].max() + group_tokens for rows in each) for each in (found, *divisions)]
    assert costs[0] == min(costs)


LOSSES: dict[str, Callable[[Any], Any]] = {
    "DAP": lambda model: TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1),
    "both ways": lambda model: RepresentationTranslationLoss(model, layers=1, direction="both", tied=True),
    "cached": lambda model: CachedLoss(TranslationRankingLoss(model), mini_batch_size=2),
    "ST": MultipleNegativesRankingLoss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_and_gradient_of_one_pass(
    name: str, make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("st_xling.models.length_groups.GROUP_COST", 1)
    model = make_model(dropout=0.0, architecture="xlm-roberta").double().train()
    torch.manual_seed(0)
    loss, shapes, found = LOSSES[name](model), [], []
    model[0].auto_model.embeddings.register_forward_hook(lambda *given: shapes.append(tuple(given[2].shape)))

    found.append(gradients(loss, [model.preprocess(texts) for texts in TEXTS]))
    passes = len(shapes)
    with grouped_by_length(model):
        found.append(gradients(loss, [model.preprocess(texts) for texts in TEXTS]))
    assert len(shapes) - passes > passes and len(set(shapes[passes:])) > len(set(shapes[:passes]))
    assert "forward" not in vars(model[0]) and "forward" not in vars(model[0].auto_model.get_input_embeddings())
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-9)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-7, atol=1e-10)


def test_scores_of_a_cross_encoder_and_states_of_all_layers(
    make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("st_xling.models.length_groups.GROUP_COST", 1)
    ranker = tiny_cross_encoder([text for side in TEXTS for text in side], max_length=120).train()
    encoder = make_model(dropout=0.0, layers=2).train()
    encoder[0].auto_model.config.output_hidden_states = True
    found: list[Any] = []
    for model, inputs in ((ranker, list(zip(*TEXTS))), (encoder, TEXTS[0])):
        features = model.preprocess(inputs)
        found.append(model(dict(features)))
        with grouped_by_length(model):
            found.append(model(dict(features)))
        assert found[-1].keys() == found[-2].keys()
    torch.testing.assert_close(found[1]["scores"], found[0]["scores"])
    torch.testing.assert_close(found[3]["sentence_embedding"], found[2]["sentence_embedding"])
    layers, mask = [output["all_layer_embeddings"] for output in found[2:]], features["attention_mask"][..., None]
    torch.testing.assert_close([layer * mask for layer in layers[1]], [layer * mask for layer in layers[0]])


def test_what_is_read_in_one_pass(make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """While it evaluates, where groups would save nothing, and padded on the left."""
    monkeypatch.setattr("st_xling.models.length_groups.GROUP_COST", 1)
    model = make_model().train()
    passes: list[int] = []
    model[0].auto_model.embeddings.register_forward_hook(lambda *_: passes.append(1))
    with grouped_by_length(model):
        model.eval()(model.preprocess(TEXTS[0]))
        model.train()(model.preprocess(TEXTS[0][:1] * 4))
        model.tokenizer.padding_side = "left"
        model(model.preprocess(TEXTS[0]))
    assert len(passes) == 3


def test_a_batch_of_one(make_model: Callable[..., Any]) -> None:
    """Of which one half, where both directions are rebuilt, is empty."""
    model = make_model().train()
    loss = RepresentationTranslationLoss(model, layers=1, direction="both", tied=True)
    with grouped_by_length(model):
        assert torch.isfinite(loss([model.preprocess(texts[:1]) for texts in TEXTS], None))


def test_a_copy_reads_with_its_own_layers(make_model: Callable[..., Any]) -> None:
    """An evaluation may cut a copy of the model while it is trained."""
    model = make_model(layers=2).eval()
    expected = cut_to_layer(model, 1).encode(TEXTS[0])
    with grouped_by_length(model):
        cut = copy.deepcopy(model)
        cut[0].auto_model.encoder.layer = cut[0].auto_model.encoder.layer[:1]
        np.testing.assert_allclose(cut.encode(TEXTS[0]), expected, atol=1e-6)
