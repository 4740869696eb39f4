"""Batches encoded in groups of rows of like length: the loss and gradients of one pass."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from torch.nn.utils.rnn import pad_sequence

from st_xling.losses import CachedLoss, RepresentationTranslationLoss, TranslationRankingLoss, make
from st_xling.losses.rows_by_length import encode_rows, length_groups
from tests.losses.test_cached import gradients

TEXTS = (
    ["Hallo.", "Der Hund schläft unter dem großen Tisch, weil es draußen regnet und schneit.", "我", "صباح الخير!"],
    ["Hello.", "The dog sleeps under the big table, for it rains and snows outside.", "Me", "Good morning to you all!"],
)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups cost one token, for they are not worth it in so small a model."""
    monkeypatch.setattr("st_xling.losses.rows_by_length.GROUP_COST", 16**2)


def encoded_shapes(model: Any) -> list[tuple[int, ...]]:
    """Record the rows, tokens and width of each pass through the first layer."""
    shapes: list[tuple[int, ...]] = []
    layer = model[0].auto_model.encoder.layer[0]
    layer.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape)))
    return shapes


def padded_cost(groups: list[np.ndarray], lengths: np.ndarray, group_tokens: int) -> int:
    return sum(len(rows) * lengths[rows].max() + group_tokens for rows in groups)


@pytest.mark.parametrize("group_tokens", [1, 7, 1000])
def test_no_division_is_cheaper(group_tokens: int) -> None:
    """Against all divisions of seven rows."""
    lengths = np.random.default_rng(group_tokens).integers(1, 30, 7)
    groups = length_groups(lengths, group_tokens)
    assert sorted(np.concatenate(groups).tolist()) == list(range(7))
    cost = padded_cost(groups, lengths, group_tokens)
    for labels in itertools.product(range(7), repeat=7):
        # Each division once: a new group has the next number.
        if labels[0] == 0 and all(labels[i] <= max(labels[:i]) + 1 for i in range(1, 7)):
            division = [np.flatnonzero(np.array(labels) == group) for group in set(labels)]
            assert cost <= padded_cost(division, lengths, group_tokens)


LOSSES: dict[str, Callable[[Any], Any]] = {
    "DAP": lambda model: TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1),
    "both ways": lambda model: RepresentationTranslationLoss(model, layers=1, direction="both", tied=True),
    "cached": lambda model: CachedLoss(
        TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1), mini_batch_size=2
    ),
    "ST": lambda model: make(MultipleNegativesRankingLoss(model)),
    "Matryoshka": lambda model: MatryoshkaLoss(model, TranslationRankingLoss(model), [16, 8]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_and_gradient_of_one_pass(
    name: str, make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(architecture="xlm-roberta").double().train()
    torch.manual_seed(0)
    loss = LOSSES[name](model)
    shapes = encoded_shapes(model)
    expected = gradients(loss, [model.preprocess(texts) for texts in TEXTS])
    passes = len(shapes)

    monkeypatch.setattr("st_xling.losses.rows_by_length.GROUP_COST", 16**2)
    grouped = gradients(loss, [model.preprocess(texts) for texts in TEXTS])
    ungrouped_tokens = sum(rows * width for rows, width, _ in shapes[:passes])
    grouped_tokens = sum(rows * width for rows, width, _ in shapes[passes:])
    assert len(shapes) - passes > passes and grouped_tokens < ungrouped_tokens
    assert grouped[0] == pytest.approx(expected[0], rel=1e-9)
    torch.testing.assert_close(grouped[1], expected[1], rtol=1e-7, atol=1e-10)


@pytest.mark.usefixtures("small_groups")
def test_each_row_of_a_sum_is_encoded_once(make_model: Callable[..., Any]) -> None:
    """However many terms read them: two columns of four rows are eight rows in all."""
    model = make_model().train()
    loss = TranslationRankingLoss(model) + 0.1 * make("CoSENTLoss", model) + TranslationRankingLoss(model, margin=0.1)
    shapes = encoded_shapes(model)
    loss([model.preprocess(texts) for texts in TEXTS], torch.ones(4))
    assert len(shapes) > 1 and sum(rows for rows, _, _ in shapes) == 8


@pytest.mark.usefixtures("small_groups")
def test_the_gradient_of_the_word_embeddings_is_made_once(make_model: Callable[..., Any]) -> None:
    """It is as large as the table: 384 MB for XLM-R's vocabulary, of each look-up."""
    model = make_model().train()
    looked_up: list[Any] = []
    model[0].auto_model.get_input_embeddings().register_forward_hook(lambda *inputs: looked_up.append(inputs[1]))
    TranslationRankingLoss(model)([model.preprocess(texts) for texts in TEXTS]).backward()
    assert len(looked_up) == 1


@pytest.mark.usefixtures("small_groups")
def test_what_is_encoded_in_one_pass(make_model: Callable[..., Any]) -> None:
    """Rows of one length, where groups would save nothing; texts padded on the left; a compiled model."""
    model = make_model().train()
    shapes = encoded_shapes(model)
    encode_rows(model, model.preprocess(TEXTS[0][:1] * 4))
    model.tokenizer.padding_side = "left"
    padded_left = model.preprocess(TEXTS[0])
    assert padded_left["attention_mask"][0, 0] == 0
    encode_rows(model, padded_left)
    model.tokenizer.padding_side = "right"
    encode_rows(torch.compile(model, backend="eager"), model.preprocess(TEXTS[0]))
    assert [rows for rows, _, _ in shapes] == [4, 4, 4]


@pytest.mark.usefixtures("small_groups")
def test_states_of_tokens_are_padded_to_the_batch(make_model: Callable[..., Any]) -> None:
    """Token-level terms read them next to the batch's own masks."""
    model = make_model().eval()
    output = encode_rows(model, model.preprocess(TEXTS[0]))
    rows = [model(model.preprocess([text]))["token_embeddings"][0] for text in TEXTS[0]]
    mask = output["attention_mask"][..., None]
    torch.testing.assert_close(output["token_embeddings"] * mask, pad_sequence(rows, batch_first=True))


@pytest.mark.usefixtures("small_groups")
def test_a_batch_of_one(make_model: Callable[..., Any]) -> None:
    """Of which one half, where both directions are rebuilt, is empty."""
    model = make_model().train()
    loss = RepresentationTranslationLoss(model, layers=1, direction="both", tied=True)
    assert torch.isfinite(loss([model.preprocess(texts[:1]) for texts in TEXTS], None))
