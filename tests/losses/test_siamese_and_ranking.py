"""The siamese loss against its definition and the host's; the retrieval loss against the host's."""

from __future__ import annotations

import itertools

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import (
    ContrastiveLoss,
    MultipleNegativesRankingLoss,
    SiameseDistanceMetric,
)

from st_xling.losses import InBatchRankingLoss, SemanticContrastiveLoss, SiameseContrastiveLoss, siamese_contrastive
from st_xling.training.auto_batch import MIB, most_allocated
from tests import reference

DISTANCES = ("euclidean", "cosine", "manhattan")


def embeddings(size: int = 5, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(0)
    return tuple(0.4 * torch.randn(size, 4, generator=generator, dtype=dtype) for _ in range(2))


@pytest.mark.parametrize(
    ("distance", "negatives", "margin"),
    itertools.product(DISTANCES, ("worst", "average", "hardest", "none"), (0.5, 1.0, 3.0)),
)
def test_equals_the_formula(distance, negatives, margin):
    source, target = embeddings()
    options = {"distance": distance, "negatives": negatives, "margin": margin}
    expected = reference.siamese_contrastive(source.tolist(), target.tolist(), **options)
    assert siamese_contrastive(source, target, **options).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
def test_the_distance_is_torchs_with_its_epsilon(distance):
    """sentence-transformers' metric; the formula as printed, without epsilon, gives nearly the same."""
    source, target = embeddings()
    exact = [abs(s - t).sum() if distance == "manhattan" else (s - t).norm() for s, t in zip(source, target)]
    printed = float(sum(d**2 / 2 for d in exact) / len(exact))
    found = siamese_contrastive(source, target, distance=distance, negatives="none").item()
    assert found != printed and found == pytest.approx(printed, rel=4e-6)


def test_random_negatives_are_other_rows_and_replay_by_seed():
    """Two rows leave one choice: the other row, so random equals average; more rows vary with the generator."""
    source, target = embeddings(2)
    options = {"margin": 3.0, "distance": "euclidean"}
    chosen = siamese_contrastive(source, target, negatives="random", **options)
    torch.testing.assert_close(chosen, siamese_contrastive(source, target, negatives="average", **options))
    source, target = embeddings(9)
    values = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        values.append(siamese_contrastive(source, target, negatives="random", **options).item())
    assert values[0] == values[1] != values[2]
    bounds = [siamese_contrastive(source, target, negatives=kind, **options).item() for kind in ("worst", "hardest")]
    assert min(bounds) <= values[2] <= max(bounds)


def test_a_batch_of_one_has_the_positive_term_alone():
    source, target = embeddings(1)
    expected = reference.distance_between(source[0].tolist(), target[0].tolist(), "euclidean") ** 2 / 2
    assert siamese_contrastive(source, target).item() == pytest.approx(expected)


def test_the_order_of_the_batch_changes_nothing():
    source, target = embeddings()
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(siamese_contrastive(source[order], target[order]), siamese_contrastive(source, target))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_finite_even_for_equal_sentences(dtype):
    source = torch.ones(3, 4, dtype=dtype, requires_grad=True)
    target = torch.ones(3, 4, dtype=dtype)
    siamese_contrastive(source, target).backward()
    assert torch.isfinite(source.grad).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_with_labels_it_is_the_hosts_loss(make_model, features, distance):
    model = make_model()
    metric = {
        "euclidean": SiameseDistanceMetric.EUCLIDEAN,
        "cosine": SiameseDistanceMetric.COSINE_DISTANCE,
        "manhattan": SiameseDistanceMetric.MANHATTAN,
    }[distance]
    labels = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0])
    expected = ContrastiveLoss(model, metric, 0.7)(features(model), labels)
    value = SiameseContrastiveLoss(model, margin=0.7, distance=distance)(features(model), labels)
    torch.testing.assert_close(value, expected)


def test_the_retrieval_loss_is_the_hosts(make_model, features):
    model = make_model()
    for columns in ((0, 1), (0, 1, 0)):
        expected = MultipleNegativesRankingLoss(model, scale=10.0)(features(model, columns=columns), None)
        value = InBatchRankingLoss(model, scale=10.0)(features(model, columns=columns))
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)


def test_retrieval_and_contrast_share_a_pass(make_model, features):
    """Three sources in one row: a question, its passage, and a pair of translations for the passage side."""
    model = make_model()
    calls = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    loss = InBatchRankingLoss(model).on(0, 1) + 0.01 * SemanticContrastiveLoss(model).on(2, 3)
    components = loss(features(model, columns=(0, 1, 1, 0)))
    assert list(components) == ["in_batch_ranking", "semantic_contrastive"]
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.0}, r"margin must be above 0: got 0\.0"),
        ({"distance": "hamming"}, "distance must be one of .* got 'hamming'"),
        ({"negatives": "best"}, "negatives must be one of .* got 'best'"),
    ],
)
def test_options_out_of_range(make_model, options, message):
    source, target = embeddings()
    with pytest.raises(ValueError, match=message):
        siamese_contrastive(source, target, **options)
    with pytest.raises(ValueError, match=message):
        SiameseContrastiveLoss(make_model(), **options)
    with pytest.raises(ValueError, match="row-aligned translations: got 5 and 4 rows"):
        siamese_contrastive(source, target[:4])


@pytest.mark.parametrize("negatives", ["worst", "hardest", "random"])
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_large_batch_holds_no_vector_for_each_pair_of_rows(negatives, distance):
    """512 x 511 differences of 64 numbers would be 64 MiB; the matrix of distances is one."""
    source, target = (torch.randn(512, 64).requires_grad_() for _ in range(2))
    work = lambda: siamese_contrastive(source, target, negatives=negatives, distance=distance).backward()  # noqa: E731
    assert most_allocated(work) < 12 * MIB


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("negatives", ["worst", "hardest"])
def test_gradients_are_those_of_the_definition(distance, negatives):
    source, target = (part.requires_grad_() for part in embeddings())
    siamese_contrastive(source, target, margin=3.0, distance=distance, negatives=negatives).backward()
    options = {"margin": 3.0, "distance": distance, "negatives": negatives}
    for row, column in ((0, 0), (3, 2)):
        values = []
        for step in (1e-6, -1e-6):
            moved = source.detach().clone()
            moved[row, column] += step
            values.append(reference.siamese_contrastive(moved.tolist(), target.tolist(), **options))
        assert source.grad[row, column].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-8)
