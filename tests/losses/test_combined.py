"""Sums of objectives: one encoder pass, weighted components, chosen columns."""

from __future__ import annotations

import pytest
import torch

from st_xling.losses import (
    CachedLoss,
    CombinedLoss,
    CrossLingualLoss,
    RepresentationTranslationLoss,
    TranslationLanguageModelingLoss,
    TranslationRankingLoss,
    WordAlignmentLoss,
)
from st_xling.losses.base import Term


class Recorder(CrossLingualLoss):
    """Remembers the columns it was given; its value is the sum of their first embeddings."""

    min_columns = 1

    def compute_loss(self, batch, labels):
        self.seen = [column["input_ids"] for column in batch]
        return sum(column["sentence_embedding"].sum() for column in batch)


def count_passes(model):
    calls = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    return calls


def test_a_sum_is_the_sum_over_one_pass(make_model, features):
    model = make_model()
    ranking, rebuilding = TranslationRankingLoss(model), RepresentationTranslationLoss(model)
    expected = ranking(features(model)), rebuilding(features(model))
    calls = count_passes(model)
    components = (ranking + 0.5 * rebuilding)(features(model))
    assert list(components) == ["translation_ranking", "representation_translation"]
    torch.testing.assert_close(components["translation_ranking"], expected[0])
    torch.testing.assert_close(components["representation_translation"], 0.5 * expected[1])
    assert len(calls) == 1


def test_columns_are_merged_or_not_with_the_same_values(make_model, features):
    model = make_model()
    loss = TranslationRankingLoss(model)
    merged = loss(features(model)).item()
    apart = features(model)
    del apart[1]["token_type_ids"]  # unlike columns cannot be merged
    assert loss(apart).item() == pytest.approx(merged, rel=1e-5)


def test_on_chooses_columns_in_their_order(make_model, features):
    model = make_model()
    recorder = Recorder(model)
    columns = features(model, slice(0, 2), (0, 1, 0))
    ids = [column["input_ids"].clone() for column in columns]
    recorder.on(2, 1)(columns)
    width = recorder.seen[0].shape[1]
    for seen, place in zip(recorder.seen, (2, 1)):
        assert torch.equal(seen[:, : ids[place].shape[1]], ids[place][:, :width])


def test_on_of_a_sum_maps_the_columns_its_terms_chose(make_model):
    model = make_model()
    loss = (TranslationRankingLoss(model).on(1, 0) + Recorder(model)).on(3, 4)
    assert [term.columns for term in loss.terms] == [(4, 3), (3, 4)]
    assert loss.min_columns == 5


def test_weights_multiply_and_sums_stay_flat(make_model):
    model = make_model()
    a, b = TranslationRankingLoss(model), TranslationRankingLoss(model, margin=0.3)
    loss = 2 * (a + 0.5 * b) + sum([Recorder(model)])
    assert isinstance(loss, CombinedLoss)
    assert [term.weight for term in loss.terms] == [2.0, 1.0, 1.0]
    assert loss.names == ["translation_ranking", "translation_ranking_2", "recorder"]
    assert not any(isinstance(term.loss, CombinedLoss) for term in loss.terms)


def test_gradients_are_those_of_the_weighted_sum(make_model, features):
    model = make_model()
    ranking, rebuilding = TranslationRankingLoss(model), RepresentationTranslationLoss(model)
    sum((0.3 * ranking + 2 * rebuilding)(features(model)).values()).backward()
    together = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    (0.3 * ranking(features(model))).backward()
    (2 * rebuilding(features(model))).backward()
    for name, gradient in together.items():
        torch.testing.assert_close(dict(model.named_parameters())[name].grad, gradient, rtol=1e-4, atol=1e-6)


def test_every_parameter_once_and_the_card_data(make_model):
    model = make_model()
    loss = TranslationRankingLoss(model, margin=0.2) + 0.5 * RepresentationTranslationLoss(model)
    named = [id(parameter) for _, parameter in loss.named_parameters()]
    assert len(named) == len(set(named))
    assert loss.get_config_dict()["translation_ranking"]["margin"] == 0.2
    assert loss.get_config_dict()["representation_translation"]["weight"] == 0.5
    assert "yang2019additive" in loss.citation and "li2023dap" in loss.citation


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_weights_must_be_finite_and_not_negative(make_model, weight):
    with pytest.raises(ValueError, match="a loss weight must be a finite number, 0 or more"):
        weight * TranslationRankingLoss(make_model())


def test_terms_of_different_models(make_model):
    with pytest.raises(ValueError, match="TranslationRankingLoss was built on another one"):
        TranslationRankingLoss(make_model()) + TranslationRankingLoss(make_model())


def test_columns_the_data_lacks_are_named(make_model, features):
    model = make_model()
    with pytest.raises(ValueError, match="TranslationRankingLoss needs 2 text columns: the data set gives 1"):
        TranslationRankingLoss(model)(features(model)[:1])
    loss = TranslationRankingLoss(model) + TranslationRankingLoss(model).on(2, 3)
    with pytest.raises(ValueError, match="translation_ranking_2 looks at text column 3 .* gives 2"):
        loss(features(model))
    for wrong in ((0, 0), (-1, 0), ()):
        with pytest.raises(ValueError, match="columns are distinct positions"):
            TranslationRankingLoss(model).on(*wrong)
    with pytest.raises(ValueError, match="needs 2 text columns"):
        TranslationRankingLoss(model).on(0)


@pytest.mark.parametrize(
    ("build", "passes"),
    [
        (lambda model: WordAlignmentLoss(model), 0),
        (lambda model: TranslationLanguageModelingLoss(model) + WordAlignmentLoss(model), 0),
        (lambda model: WordAlignmentLoss(model) + TranslationRankingLoss(model), 1),
        (lambda model: WordAlignmentLoss(model) + RepresentationTranslationLoss(model), 1),
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_a_pass_that_nobody_reads_is_not_made(make_model, features, build, passes, cached):
    """Counted at the pooling: passes of the losses' own go through the transformer alone."""
    model = make_model()
    calls = []
    model[1].register_forward_hook(lambda *_: calls.append(1))
    loss = build(model)
    value = (CachedLoss(loss, mini_batch_size=8) if cached else loss)(features(model))
    (sum(value.values()) if isinstance(value, dict) else value).backward()
    assert len(calls) == passes * (2 if cached else 1)
    assert sum(float(part.grad.abs().sum()) for part in model.parameters() if part.grad is not None) > 0


@pytest.mark.parametrize("cached", [False, True])
def test_without_that_pass_value_and_gradients_are_the_same(make_model, features, cached, monkeypatch):
    model = make_model().double()
    results = []
    for needed in (False, True):
        loss = WordAlignmentLoss(model)
        monkeypatch.setattr(loss, "reads_encoding", needed)
        model.zero_grad()
        value = (CachedLoss(loss, mini_batch_size=4) if cached else loss)(features(model))
        value.backward()
        found = {name: part.grad.clone() for name, part in model.named_parameters() if part.grad is not None}
        results.append((value.detach(), {name: part for name, part in found.items() if part.abs().max() > 0}))
    assert results[0][1].keys() == results[1][1].keys()
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)


def test_wrappers_for_distributed_training_see_their_pass(make_model, features):
    """DDP prepares for the gradients in its forward pass: without one it would exchange none."""
    model = make_model()
    calls = []

    class Wrapper(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = model

        def forward(self, features):
            calls.append(1)
            return self.module(features)

    loss = WordAlignmentLoss(model)
    loss.model = Wrapper()
    loss(features(model)).backward()
    assert calls == [1]


@pytest.mark.parametrize("columns", [(-1, 0), (0, 0), ()])
def test_columns_are_distinct_positions(make_model, columns):
    model = make_model()
    ways = (
        lambda: Term(TranslationRankingLoss(model), 1.0, columns),
        lambda: Recorder(model).on(*columns),
        lambda: Recorder(model).on(0).on(*columns),
    )
    for build in ways:
        with pytest.raises(ValueError, match=r"columns are distinct positions counted from 0: got \("):
            build()


def test_on_of_columns_that_on_left_out(make_model):
    loss = TranslationRankingLoss(make_model()).on(0, 2)
    with pytest.raises(ValueError, match=r"translation_ranking looks at column 2 .* \.on\(0, 1\) gives 2"):
        loss.on(0, 1)
