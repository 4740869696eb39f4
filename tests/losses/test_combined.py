"""Sums of objectives: one encoder pass, weighted components, chosen columns."""

from __future__ import annotations

import pytest
import torch

from st_xling.losses import CombinedLoss, CrossLingualLoss, RepresentationTranslationLoss, TranslationRankingLoss


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
