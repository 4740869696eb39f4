"""Sums of objectives: one encoder pass, weighted components, chosen columns, shared heads."""

import logging

import pytest
import torch

from st_xling import losses
from st_xling.losses.base import warn_once


class Recorder(losses.CrossLingualLoss):
    """Remembers the columns it saw; its value is the sum of their embeddings."""

    min_columns = 1

    def compute_loss(self, batch, labels):
        self.seen = [column["input_ids"] for column in batch]
        return sum(column["sentence_embedding"].sum() for column in batch)


def count_passes(module):
    """At the pooling: passes of the losses' own go through the transformer alone."""
    calls = []
    return calls, module.register_forward_hook(lambda *_: calls.append(1))


def test_a_sum_is_the_sum_over_one_pass(model, features):
    ranking = losses.TranslationRankingLoss(model, margin=0.2)
    rebuilding = losses.RepresentationTranslationLoss(model)
    expected = ranking(features(model)), rebuilding(features(model))
    calls, hook = count_passes(model[0])
    loss = ranking + 0.5 * rebuilding
    components = loss(features(model))
    hook.remove()
    assert list(components) == ["translation_ranking", "representation_translation"] and len(calls) == 1
    torch.testing.assert_close(components["translation_ranking"], expected[0])
    torch.testing.assert_close(components["representation_translation"], 0.5 * expected[1])
    named = [id(parameter) for _, parameter in loss.named_parameters()]
    assert len(named) == len(set(named))
    config = loss.get_config_dict()
    assert config["translation_ranking"]["margin"] == 0.2 and config["representation_translation"]["weight"] == 0.5
    assert "yang2019additive" in loss.citation and "li2023dap" in loss.citation


def test_columns_are_merged_or_not_with_the_same_values(model, features):
    loss = losses.TranslationRankingLoss(model)
    apart = features(model)
    del apart[1]["token_type_ids"]  # columns that differ cannot be merged
    assert loss(apart).item() == pytest.approx(loss(features(model)).item(), rel=1e-5)


def test_on_chooses_columns_in_their_order(model, features):
    recorder = Recorder(model)
    columns = features(model, slice(0, 2), (0, 1, 0))
    ids = [column["input_ids"].clone() for column in columns]
    recorder.on(2, 1)(columns)
    for seen, index in zip(recorder.seen, (2, 1)):
        width = seen.shape[1]
        assert torch.equal(seen[:, : ids[index].shape[1]], ids[index][:, :width])
    loss = (losses.TranslationRankingLoss(model).on(1, 0) + recorder).on(3, 4)
    assert [term.columns for term in loss.terms] == [(4, 3), (3, 4)] and loss.min_columns == 5


def test_weights_multiply_and_sums_stay_flat(model):
    a = losses.TranslationRankingLoss(model)
    b = losses.TranslationRankingLoss(model, margin=0.3)
    loss = 2 * (a + 0.5 * b) + sum([Recorder(model)])
    assert [term.weight for term in loss.terms] == [2.0, 1.0, 1.0]
    assert loss.names == ["translation_ranking", "translation_ranking_2", "recorder"]


def test_terms_share_a_head_as_far_as_they_agree(model):
    terms = [losses.TranslationLanguageModelingLoss(model, head=head) for head in ("auto", "new", "auto")]
    total = terms[0] + (terms[1] + terms[2])
    assert terms[0].head is terms[2].head is not terms[1].head
    assert sum(name.endswith("head.bias") for name, _ in total.named_parameters()) == 2


@pytest.mark.parametrize(
    ("build", "passes"),
    [
        (lambda model: losses.TranslationLanguageModelingLoss(model) + losses.WordAlignmentLoss(model), 0),
        (lambda model: losses.WordAlignmentLoss(model) + losses.TranslationRankingLoss(model), 1),
        (lambda model: losses.WordAlignmentLoss(model) + losses.RepresentationTranslationLoss(model), 1),
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_a_pass_that_no_term_reads_is_not_made(model, features, build, passes, cached):
    loss = build(model)
    results = []
    for needed in (loss.reads_encoding, True):
        calls, hook = count_passes(model[1])
        loss.reads_encoding = needed
        model.zero_grad()
        torch.manual_seed(0)  # of the hidden words
        value = sum((losses.CachedLoss(loss, mini_batch_size=4) if cached else loss)(features(model)).values())
        value.backward()
        hook.remove()
        assert len(calls) == max(passes, int(len(results) == 1)) * (4 if cached else 1)  # two mini-batches, two passes
        results.append([value.item(), *(0.0 if p.grad is None else p.grad.norm().item() for p in model.parameters())])
    assert results[1] == pytest.approx(results[0], rel=1e-4, abs=1e-6) and sum(results[0][1:]) > 0


POSITIONS = r"distinct positions counted from 0: got \("


def test_faults_are_named(make_model, model, features):
    ranking, other = (losses.TranslationRankingLoss(its_model) for its_model in (model, make_model()))
    for build, message in (
        (lambda: float("nan") * ranking, "loss weight .* got nan"),
        (lambda: ranking + other, "TranslationRankingLoss was built on another one"),
        (lambda: ranking(features(model)[:1]), "TranslationRankingLoss needs 2 text columns: the data set gives 1"),
        (lambda: (ranking + ranking.on(2, 3))(features(model)), "translation_ranking_2 needs 4 text columns.* gives 2"),
        (lambda: ranking.on(0), "needs 2 text columns"),
        *((lambda columns=columns: Recorder(model).on(*columns), POSITIONS) for columns in ((0, 0), (-1, 0))),
        (lambda: Recorder(model).on(), "needs 1 text columns: .* gives 0"),
    ):
        with pytest.raises(ValueError, match=message):
            build()


def test_further_columns_are_left_out_with_one_warning(model, features, caplog):
    """A third text column of a data set is no part of an objective over pairs, alone, in a sum and cached."""
    total = losses.TranslationRankingLoss(model) + losses.SemanticContrastiveLoss(model)
    for loss in (losses.TranslationRankingLoss(model), total, losses.CachedLoss(total, mini_batch_size=2)):
        warn_once.cache_clear()
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="st_xling"):
            values = [loss([*features(model), features(model)[0]]) for _ in range(2)]
        torch.testing.assert_close(values[0], loss(features(model)))
        assert sum("reads 2 text columns: the data set gives 3" in record.message for record in caplog.records) == 1
