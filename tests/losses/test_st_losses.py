"""sentence-transformers' own losses beside ours: in sums, cached, and ``MatryoshkaLoss`` over any of them."""

import random
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses as theirs
from torch.nn import functional as F

from st_xling.losses import CachedLoss, InBatchRankingLoss, LanguageContrastiveLoss, TranslationRankingLoss, make
from tests.losses.test_cached import gradients

TAUGHT = torch.randn(8, 2, 16, generator=torch.Generator().manual_seed(0), dtype=torch.double)
LABELS = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def model(make_model: Any) -> Any:
    return make_model().double()


def assert_equal(ours: Any, stock: Any) -> None:
    assert ours[0] == pytest.approx(stock[0], rel=1e-9)
    torch.testing.assert_close([*ours[1].values()], [*stock[1].values()], rtol=1e-6, atol=1e-9)


THEIRS: list[tuple[Any, Any, Any]] = [
    (theirs.MultipleNegativesRankingLoss, None, (0, 1, 0)),
    (theirs.CoSENTLoss, LABELS, (0, 1)),
    (theirs.TripletLoss, None, (0, 1, 0)),
    (theirs.GlobalOrthogonalRegularizationLoss, None, (0, 1)),
    (theirs.BatchHardTripletLoss, LABELS.long(), (1,)),
    (theirs.MSELoss, TAUGHT[:, 0], (0, 1)),
    (theirs.EmbedDistillLoss, TAUGHT, (0, 1)),
]


@pytest.mark.parametrize(("build", "labels", "columns"), THEIRS, ids=lambda part: getattr(part, "__name__", ""))
def test_they_share_the_pass_and_can_be_cached(
    model: Any, features: Any, build: Any, labels: Any, columns: Any
) -> None:
    def batch() -> Any:
        return features(model, columns=columns)

    loss = build(model)
    expected = gradients(loss, batch(), labels)
    assert_equal(gradients(make(loss), batch(), labels), expected)
    assert_equal(gradients(CachedLoss(loss, mini_batch_size=4), batch(), labels), expected)
    calls: list[int] = []
    hook = model[0].register_forward_hook(lambda *_: calls.append(1))
    value = (0.1 * make(loss) + build(model))(batch(), labels)
    hook.remove()
    assert len(calls) == 1
    name = make(loss).as_sum().names[0]
    assert {key: part.item() for key, part in value.items()} == pytest.approx(
        {name: 0.1 * expected[0], f"{name}_2": expected[0]}
    )


def test_a_loss_that_encodes_by_itself_is_a_term_but_not_cached(model: Any, features: Any) -> None:
    labels = LABELS.long()
    torch.manual_seed(0)
    loss = theirs.SoftmaxLoss(model, 16, 2).double()
    expected = gradients(loss, features(model), labels)[0]
    total = TranslationRankingLoss(model) + loss
    value = total(features(model), labels)
    assert value["softmax"].item() == pytest.approx(expected)
    value["softmax"].backward()
    assert loss.classifier.weight.grad.abs().sum() > 0
    with pytest.raises(ValueError, match="SoftmaxLoss makes an encoder pass of its own"):
        CachedLoss(total)


def test_a_projection_to_the_teacher_is_the_losses_own(model: Any, features: Any) -> None:
    labels = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    loss = theirs.MSELoss(model, projection_dim=5).double()
    expected = gradients(loss, features(model), labels)
    assert_equal(gradients(CachedLoss(loss, mini_batch_size=4), features(model), labels), expected)
    assert any("projection" in name for name in expected[1])
    for wrong, got in ((None, "none"), (TAUGHT[:, :1], r"shape \(8, 1, 16\)"), (LABELS, r"shape \(8,\)")):
        with pytest.raises(ValueError, match=f"MSELoss needs a teacher's vectors.*: got {got}"):
            make(loss)(features(model), wrong)


def test_matryoshka_over_a_sum(model: Any, features: Any) -> None:
    """Each component is its sum over the sizes; with the cache outside, value and gradients are the same."""
    ranking = TranslationRankingLoss(model, margin=0.2)
    language = LanguageContrastiveLoss(model)
    loss = theirs.MatryoshkaLoss(model, ranking + 0.5 * language, [16, 8], [1.0, 0.3])
    parts = loss(features(model), None)
    batch = [{**column, **model(dict(column))} for column in features(model)]
    for name, term, weight in (("translation_ranking", ranking, 1.0), ("language_contrastive", language, 0.5)):
        expected = 0.0
        for size, share in ((16, 1.0), (8, 0.3)):
            cut = [{**c, "sentence_embedding": F.normalize(c["sentence_embedding"][:, :size])} for c in batch]
            expected += share * weight * term.compute_loss(cut, None).item()
        assert parts[name].item() == pytest.approx(expected, rel=1e-9)
    plain = gradients(loss, features(model))
    assert_equal(gradients(CachedLoss(loss, mini_batch_size=4), features(model)), plain)
    assert_equal(gradients(make(loss) * 1.0, features(model)), plain)
    drawn = theirs.MatryoshkaLoss(model, ranking, [16, 8, 4], n_dims_per_step=2)
    torch.manual_seed(0)
    expected = gradients(make(drawn), features(model))
    torch.manual_seed(0)
    assert_equal(gradients(CachedLoss(drawn, mini_batch_size=4), features(model)), expected)


def test_adaptive_layers_over_ours(make_model: Any, features: Any) -> None:
    """A loss of ours that equals one of theirs."""
    model = make_model(layers=3).double()
    ours = InBatchRankingLoss(model)
    same = theirs.MultipleNegativesRankingLoss(model)
    random.seed(0)
    expected = gradients(theirs.AdaptiveLayerLoss(model, same), features(model))
    random.seed(0)
    assert_equal(gradients(theirs.AdaptiveLayerLoss(model, ours), features(model)), expected)


def test_faults_are_named(model: Any, features: Any) -> None:
    with pytest.raises(ValueError, match="no loss 'CosentLoss'.* CoSENTLoss"):
        make("CosentLoss", model)
    with pytest.raises(ValueError, match="expected a loss .* got 3"):
        TranslationRankingLoss(model) + 3  # type: ignore[operator]
    cached = CachedLoss(TranslationRankingLoss(model))
    for loss in (theirs.MatryoshkaLoss(model, cached, [16, 8]), theirs.AdaptiveLayerLoss(model, cached)):
        with pytest.raises(ValueError, match=r"CachedLoss\(MatryoshkaLoss"):
            loss(features(model), None)
