"""Thresholds: best over distinct scores, applied with >=, right at both ends of the list."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import (
    MinedPairs,
    Threshold,
    best_threshold,
    correct_pairs,
    evaluate_pairs,
    precision_recall_f1,
)
from tests import reference_mining as reference

candidates = st.lists(st.tuples(st.sampled_from([0.5, 0.9, 1.0, 1.0 + 2**-52, 1.1, -3.0]), st.booleans()), max_size=12)


@settings(max_examples=200, deadline=None)
@given(candidates, st.integers(0, 3))
def test_equals_loops(pairs, missed):
    scores, correct = [score for score, _ in pairs], [hit for _, hit in pairs]
    n_gold = max(1, sum(correct) + missed)
    best = best_threshold(np.array(scores, dtype=np.float64), np.array(correct, dtype=bool), n_gold)
    assert best.f1 == pytest.approx(reference.best_f1(scores, correct, n_gold), rel=1e-9)
    assert best.f1 == pytest.approx(reference.f1_at(scores, correct, n_gold, best.threshold), rel=1e-9)
    if pairs:
        assert best_threshold(scores[::-1], correct[::-1], n_gold) == best


def test_threshold_lies_midway_or_is_the_lowest_score():
    """LASER looks at the score after the last one; here all pairs are kept and the lowest score is the threshold."""
    assert best_threshold([1.5, 1.25, 1.0], [True, True, False], 2) == Threshold(1.125, 1.0, 1.0, 1.0)
    assert best_threshold([1.5, 1.25, 1.0], [True, True, True], 3) == Threshold(1.0, 1.0, 1.0, 1.0)
    assert best_threshold([1.0], [True], 1) == Threshold(1.0, 1.0, 1.0, 1.0)


def test_pairs_of_one_score_go_together():
    """Cutting inside the tie would give F1 1; no threshold can, whatever the order of the list."""
    for correct in ([True, False], [False, True]):
        best = best_threshold([1.0, 1.0], correct, 1)
        assert (best.threshold, best.precision, best.recall) == (1.0, 0.5, 1.0)


def test_equal_f1_takes_the_higher_threshold():
    """One of one (P 1, R 1/2) and two of four (P 1/2, R 1)... both have F1 2/3: fewer pairs win."""
    best = best_threshold([4.0, 3.0, 2.0, 1.0], [True, False, False, True], 2)
    assert (best.threshold, best.precision) == (3.5, 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_neighbouring_floats_are_told_apart(dtype):
    low = dtype(1.0)
    scores = np.array([np.nextafter(low, dtype(2)), low], dtype=dtype)
    best = best_threshold(scores, [True, False], 1)
    assert best.f1 == 1.0
    assert (scores >= best.threshold).tolist() == [True, False]


def test_no_correct_pair_keeps_nothing():
    assert best_threshold([1.0, 0.5], [False, False], 3) == Threshold(math.inf, 0.0, 0.0, 0.0)
    assert best_threshold([], [], 3) == Threshold(math.inf, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "scores, correct, n_gold, message",
    [
        ([1.0, 0.5], [True, True], 1, "got 2 correct of 2 predicted and 1 gold"),
        ([1.0], [True, False], 2, r"one length: got shapes \(1,\) and \(2,\)"),
        ([1.0, np.nan], [True, False], 2, r"finite: got NaN or infinity at \[1\]"),
        ([1.0, -np.inf], [True, False], 2, r"finite: got NaN or infinity at \[1\]"),
        ([1.0], [False], 0, "n_gold must be at least 1: got 0"),
    ],
)
def test_errors(scores, correct, n_gold, message):
    with pytest.raises(ValueError, match=message):
        best_threshold(scores, correct, n_gold)


def test_precision_recall_f1():
    assert precision_recall_f1(3, 4, 6) == pytest.approx((3 / 4, 1 / 2, 3 / 5), rel=1e-9)
    assert precision_recall_f1(0, 0, 2) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="got 3 correct of 2 predicted and 5 gold"):
        precision_recall_f1(3, 2, 5)
    with pytest.raises(ValueError, match="n_gold must be at least 1"):
        precision_recall_f1(0, 2, 0)


def pairs(*rows):
    scores, sources, targets = zip(*rows)
    return MinedPairs(np.array(scores), np.array(sources), np.array(targets))


def test_evaluate_pairs_counts_gold_that_was_never_mined():
    mined = pairs((1.3, 0, 0), (1.2, 1, 4), (1.1, 2, 2))
    gold = [(0, 0), (2, 2), (7, 7), (8, 8)]
    assert correct_pairs(mined, iter(gold)).tolist() == [True, False, True]
    result = evaluate_pairs(mined, iter(gold), 1.1)
    assert result == Threshold(1.1, 2 / 3, 1 / 2, pytest.approx(4 / 7))
    assert evaluate_pairs(mined, gold, 1.15).precision == 0.5
    assert evaluate_pairs(mined, gold, 9.0) == Threshold(9.0, 0.0, 0.0, 0.0)
    # Two gold pairs may share a sentence: both count.
    assert evaluate_pairs(pairs((1.0, 0, 0)), [(0, 0), (0, 5)], 0.5).recall == 0.5
    with pytest.raises(ValueError, match=r"gold must hold each pair once: got \(0, 0\) twice"):
        evaluate_pairs(pairs((1.0, 0, 0)), [(0, 0), (0, 0)], 0.5)
    with pytest.raises(ValueError, match=r"pairs must hold each pair once: got \(0, 0\) twice"):
        correct_pairs(pairs((1.0, 0, 0), (0.9, 0, 0)), [(0, 0)])
