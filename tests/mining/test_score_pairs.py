"""Scores of given pairs: the loops, the pair itself counted or not, symmetry and errors."""

import numpy as np
import pytest

from st_xling.mining import MARGINS, mine, score_pairs
from tests import reference_mining as reference


def parallel(pairs, seed, dim=8):
    random = np.random.default_rng(seed)
    source = random.standard_normal((pairs, dim)) + 1
    return source, source + 0.5 * random.standard_normal((pairs, dim))


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("count_own", [True, False])
@pytest.mark.parametrize("k", [1, 4])
def test_equals_loops(margin, count_own, k):
    source, target = parallel(14, seed=k)
    target[5], target[6] = target[6].copy(), target[5].copy()  # two wrong pairs, not each other's neighbors
    scores = score_pairs(source, target, k=k, margin=margin, count_own=count_own)
    expected = reference.score_pairs(source, target, k=k, margin=margin, count_own=count_own)
    assert scores.tolist() == pytest.approx(expected, abs=2e-6)  # cosines are rounded to float32
    assert scores.shape == (14,)


@pytest.mark.parametrize("count_own", [True, False])
def test_swapping_sides_changes_nothing(count_own):
    source, target = parallel(40, seed=2)
    one = score_pairs(source, target, count_own=count_own)
    assert np.array_equal(one, score_pairs(target, source, count_own=count_own))


def test_a_mined_pair_has_the_score_that_mining_gave_it():
    source, target = parallel(30, seed=3)
    mined = mine(source, target)
    aligned = {row: score for score, row, other in zip(*vars(mined).values()) if row == other}
    scores = score_pairs(source, target)
    assert len(aligned) > 10
    assert all(scores[row] == score for row, score in aligned.items())


def test_duplicates_and_meaningless_ratios():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert score_pairs(rows, rows, k=2).tolist() == [1.0, 1.0, 1.0]
    assert score_pairs(rows, -rows, k=2).tolist() == [-np.inf] * 3


@pytest.mark.parametrize(
    "source, target, options, message",
    [
        (np.eye(3), np.eye(4, 3) + 1, {"k": 1}, "row-aligned: got 3 and 4 rows"),
        (np.eye(3), np.eye(3), {"k": 3, "count_own": False}, "without the pair itself: got k=3 for 3 pairs"),
        (np.eye(3), np.eye(3), {"k": 4}, "k must be smaller than the corpus"),
        (np.eye(3), np.eye(3), {"k": 1, "margin": "cosine"}, "absolute, distance, ratio: got 'cosine'"),
        (np.eye(3), np.eye(3) * np.nan, {"k": 1}, "target_embeddings must hold finite"),
    ],
)
def test_errors(source, target, options, message):
    with pytest.raises(ValueError, match=message):
        score_pairs(source, target, **options)
