"""Thresholds from the scores alone: right where translations stand out, and said where they do not.

Vectors are normal, of 48 dimensions, so that the best wrong match of a sentence is a maximum of many; a translation is
its sentence plus noise. The oracle is the threshold with the best F1 on the gold pairs.
"""

from typing import Any

import numpy as np
import pytest

from st_xling.mining import (
    Neighbors,
    ThresholdEstimate,
    best_pairs,
    best_threshold,
    correct_pairs,
    estimate_threshold,
    find_neighbors,
    mine,
    score_mixture,
)
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.utils.options import Margin, Retrieval

DIM = 48


def corpora(size: int, gold: int, noise: float = 0.8, seed: int = 0) -> tuple[np.ndarray, np.ndarray, set[Any]]:
    """Two texts of ``size`` sentences, the first ``gold`` of which are translations, in another order."""
    random = np.random.default_rng(seed)
    source, target = random.standard_normal((2, size, DIM))
    target[:gold] = source[:gold] + noise * random.standard_normal((gold, DIM))
    order = random.permutation(size)
    places = np.argsort(order)
    return source, target[order], {(row, int(places[row])) for row in range(gold)}


def estimated(both: tuple[Neighbors, Neighbors]) -> tuple[MinedPairs, ThresholdEstimate]:
    """All pairs, and the estimate from their scores."""
    pairs = best_pairs(*both)
    return pairs, estimate_threshold(*both, pairs.scores, pairs.source_indices, pairs.target_indices)


def f1(pairs: MinedPairs, gold: set[Any]) -> float:
    return 2 * int(correct_pairs(pairs, gold).sum()) / (len(pairs) + len(gold))


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize("retrieval", ["max", "intersect", "forward"])
@pytest.mark.parametrize(("size", "gold"), [(1500, 40), (400, 80), (400, 380), (60, 60)])
def test_f1_is_near_the_best_one(margin: Margin, retrieval: Retrieval, size: int, gold: int) -> None:
    """README's own ``mine`` kept 254 pairs, of which 84 were right, since no threshold was known."""
    source, target, pairs = corpora(size, gold)
    every = mine(source, target, margin=margin, retrieval=retrieval)
    best = best_threshold(every.scores, correct_pairs(every, pairs), len(pairs)).f1
    kept = mine(source, target, margin=margin, retrieval=retrieval, threshold="estimated")
    assert best > 0.85 and f1(kept, pairs) >= 0.93 * best
    assert kept.scores.tolist() == every.scores[: len(kept)].tolist()


@pytest.mark.parametrize("k", [2, 4, 16])
def test_any_number_of_neighbors_from_two_on(k: int) -> None:
    source, target, pairs = corpora(1000, 60)
    every = mine(source, target, k=k)
    best = best_threshold(every.scores, correct_pairs(every, pairs), len(pairs)).f1
    assert f1(mine(source, target, k=k, threshold="estimated"), pairs) >= 0.9 * best


def test_its_precision_is_near_the_true_one() -> None:
    source, target, pairs = corpora(3000, 150, noise=1.0)
    every, estimate = estimated(find_neighbors(source, target, k=4))
    assert estimate.threshold is not None and estimate.precision is not None and estimate.translations is not None
    true = correct_pairs(every.select(every.scores >= estimate.threshold), pairs).mean()
    assert 0.6 < true < 0.99 and abs(estimate.precision - true) < 0.2
    assert 75 < estimate.translations < 175  # those of low scores do not stand out
    # The note has no precision: on news it was off by up to .25, and readers would take it for a measurement.
    shown = f"threshold {estimate.threshold:.4f} estimated from the scores; look at the pairs that score just above it"
    assert estimate.note == shown


@pytest.mark.parametrize("size", [40, 400, 2000])
@pytest.mark.parametrize("seed", range(5))
def test_texts_without_translations_are_named(size: int, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """All pairs of unrelated texts are wrong; a threshold would keep the luckiest of them, and look like a result."""
    source, target, _ = corpora(size, 0, seed=seed)
    every = mine(source, target)
    assert len(mine(source, target, threshold="estimated")) == len(every) > 20
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no group of translations stands out in the scores" in caplog.text


def test_what_cannot_be_estimated_is_kept_with_the_reason() -> None:
    source, target, _ = corpora(400, 100)
    _, estimate = estimated(find_neighbors(source, target, k=1))
    assert estimate.threshold is None and "which k=1 does not have: all pairs are kept" in estimate.note
    _, few = estimated(find_neighbors(source[:15], target[:15], k=4))
    assert few.threshold is None and "pairs are too few to estimate a threshold: all pairs are kept" in few.note
    _, flat = estimated(find_neighbors(np.eye(50), np.eye(50)[::-1] + 1.0, k=4))
    assert flat.threshold is None and "do not vary enough" in flat.note
    with pytest.raises(ValueError, match="'estimate'.*estimated|estimated.*'estimate'"):
        mine(source, target, threshold="estimate")  # type: ignore[arg-type]


def test_scores_in_another_order_are_refused() -> None:
    """Shuffled scores, or a NaN among them, gave a threshold of 1.78 instead of 1.25 without a word."""
    source, target, _ = corpora(100, 50)
    both = find_neighbors(source, target, k=4)
    pairs = best_pairs(*both)
    with pytest.raises(ValueError, match="scores must descend"):
        estimate_threshold(*both, pairs.scores[::-1], pairs.source_indices[::-1], pairs.target_indices[::-1])
    scores = pairs.scores.copy()
    scores[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimate_threshold(*both, scores, pairs.source_indices, pairs.target_indices)


def test_many_distances_are_counted_in_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit to each of many million distances would take longer than the search."""
    source, target, _ = corpora(1500, 80)
    both = find_neighbors(source, target, k=4)
    _, exact = estimated(both)
    monkeypatch.setattr(score_mixture, "_MOST_DISTANCES", 200)
    monkeypatch.setattr(score_mixture, "_MOST_SENTENCES", 700)
    monkeypatch.setattr(score_mixture, "_ROWS_AT_ONCE", 100)
    _, binned = estimated(both)
    assert exact.threshold is not None and binned.threshold is not None
    assert abs(binned.threshold - exact.threshold) < 0.01
    assert exact.translations == pytest.approx(binned.translations, rel=0.1)


def test_equal_scores_are_kept_together() -> None:
    scores = np.array([3.0, 2.0, 2.0, 2.0, 1.0])
    threshold = score_mixture._best_threshold(scores, np.array([1.0, 1.0, 0.0, 0.9, 0.0]))
    assert threshold == (1.5, pytest.approx(2.9 / 4))
    assert score_mixture._best_threshold(scores, np.full(5, 0.4)) is None
