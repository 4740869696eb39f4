"""Margin scores: the formula, its symmetry, denominators near or below zero, and scores of given pairs."""

import numpy as np
import pytest

from st_xling.mining import margin_scores, mine, score_pairs
from tests import reference_mining as reference
from tests.reference_mining import MARGINS


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("k", [1, 4])
def test_equals_loops(margin, k):
    random = np.random.default_rng(0)
    cosines = random.uniform(-1, 1, 50)
    of_source, of_target = random.uniform(-0.2, 1, (50, k)), random.uniform(-0.2, 1, (50, k))
    scores = margin_scores(cosines, of_source.mean(axis=1), of_target.mean(axis=1), margin=margin)
    expected = [reference.margin_score(*row, k, margin) for row in zip(cosines, of_source, of_target)]
    assert scores.tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("neighborhood", [0.0, -0.0, 9e-7, -9e-7, -0.5, -1.0])
@pytest.mark.parametrize("cosine", [-0.9, -1e-9, 0.0, 0.9])
def test_no_pair_gains_from_a_denominator_that_is_not_positive(cosine, neighborhood):
    assert margin_scores(cosine, neighborhood, neighborhood).item() == -np.inf
    for margin in ("absolute", "distance"):
        assert np.isfinite(margin_scores(cosine, neighborhood, neighborhood, margin=margin))


def test_ratio_by_hand():
    """cos 0.8, neighborhoods of mean 0.6 and 0.4: 0.8 / 0.5; DAP's equation 8 would give 0.8 / 1.0."""
    assert margin_scores(0.8, 0.6, 0.4).item() == pytest.approx(1.6)
    assert margin_scores(0.5, 1e-6, 1e-6).item() == pytest.approx(5e5)  # the smallest denominator counts


@pytest.mark.parametrize("margin", MARGINS)
def test_broadcasts_and_leaves_inputs_alone(margin):
    cosines = np.array([[0.9, 0.5], [0.4, 0.8]])
    before = cosines.copy()
    scores = margin_scores(cosines, np.array([[0.7], [0.6]]), np.array([0.5, 0.5]), margin=margin)
    scores[:] = 0
    assert np.array_equal(cosines, before) and scores.dtype == np.float64
    assert margin_scores(cosines[0], np.ones((2, 1)), np.ones(2), margin=margin).shape == (2, 2)


def parallel(pairs, seed, dim=8):
    random = np.random.default_rng(seed)
    source = random.standard_normal((pairs, dim)) + 1
    return source, source + 0.5 * random.standard_normal((pairs, dim))


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("k", [1, 4])
def test_scores_of_pairs_equal_loops(margin, k):
    source, target = parallel(14, seed=k)
    target[5], target[6] = target[6].copy(), target[5].copy()  # two wrong pairs, not each other's neighbors
    scores = score_pairs(source, target, k=k, margin=margin)
    expected = reference.score_pairs(source, target, k=k, margin=margin)
    assert scores.tolist() == pytest.approx(expected, abs=2e-6)  # cosines are rounded to float32
    assert scores.shape == (14,)


def test_swapping_the_sides_of_pairs_changes_nothing():
    source, target = parallel(40, seed=2)
    one = score_pairs(source, target)
    assert np.array_equal(one, score_pairs(target, source))


def test_a_mined_pair_has_the_score_that_mining_gave_it():
    source, target = parallel(30, seed=3)
    mined = mine(source, target)
    aligned = {row: score for score, row, other in zip(*vars(mined).values()) if row == other}
    scores = score_pairs(source, target)
    assert len(aligned) > 10
    assert all(scores[row] == score for row, score in aligned.items())


@pytest.mark.parametrize(
    "source, target, options, message",
    [
        (np.eye(3), np.eye(4, 3) + 1, {"k": 1}, "row-aligned: got 3 and 4 rows"),
        (np.eye(3), np.eye(3), {"k": 4}, "k must be smaller than the corpus"),
        (np.eye(3), np.eye(3), {"k": 1, "margin": "cosine"}, "ratio, distance, absolute: got 'cosine'"),
        (np.eye(3), np.eye(3) * np.nan, {"k": 1}, "target_embeddings must hold finite"),
    ],
)
def test_errors_of_pairs(source, target, options, message):
    with pytest.raises(ValueError, match=message):
        score_pairs(source, target, **options)


def test_duplicates_meaningless_ratios_and_means():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert score_pairs(rows, rows, k=2).tolist() == [1.0, 1.0, 1.0]
    assert score_pairs(rows, -rows, k=2).tolist() == [-np.inf] * 3
    with pytest.raises(ValueError, match="source_means must be finite"):
        margin_scores(0.1, np.nan, 0.1)
