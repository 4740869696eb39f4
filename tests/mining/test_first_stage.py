"""The arithmetic of the first stage: what is left out, and what scores would be with it."""

import math
from functools import partial

import numpy as np
import pytest

from st_xling.mining import best_pairs, estimate_threshold, find_neighbors
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.first_stage import (
    LEAST_PAIRS,
    Background,
    StackedRows,
    cut_for_share,
    draw_background,
    fit_margins,
    mine_backgrounds,
    sentence_chances,
    with_background,
)


def unit_rows(rows: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((rows, 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_means_with_all_others_as_background_are_those_of_the_corpus() -> None:
    """Pairs scored higher among the kept sentences, whose neighbors were left out: more wrong pairs were kept."""
    source = unit_rows(60, seed=1)
    target = unit_rows(90, seed=2)
    forward, _ = find_neighbors(source, target, k=4)
    kept = np.arange(0, 90, 3)
    others = np.setdiff1d(np.arange(90), kept)
    among_kept, _ = find_neighbors(source, target[kept], k=4)
    assert (among_kept.means < forward.means - 1e-6).any()
    corrected = with_background(among_kept, source, Background(target[others], 1.0), memory_mib=64, device="cpu")
    np.testing.assert_allclose(corrected.means, forward.means, atol=1e-6)
    assert (corrected.indices == among_kept.indices).all()
    assert with_background(among_kept, source, None, memory_mib=64, device="cpu") is among_kept


def test_means_of_a_sample_are_near_those_of_the_corpus() -> None:
    source = unit_rows(200, seed=3)
    target = unit_rows(4000, seed=4)
    forward, _ = find_neighbors(source, target, k=4)
    kept = np.arange(400)
    sampled = 400 + draw_background(3600, 0.1, most=10_000, seed=0)
    among_kept, _ = find_neighbors(source, target[kept], k=4)
    background = Background(target[sampled], 3600 / len(sampled))
    corrected = with_background(among_kept, source, background, memory_mib=64, device="cpu")
    error_before = abs(among_kept.means - forward.means).mean()
    error = abs(corrected.means - forward.means).mean()
    assert error < 0.5 * error_before


@pytest.mark.parametrize("mean", [1.5, 1.4, 1.3, 1.2])
def test_the_share_below_the_cut_is_estimated_from_what_is_above(mean: float) -> None:
    margins = np.random.default_rng(0).normal(mean, 0.2, size=3000)
    cut = 1.1
    fit = fit_margins(margins, cut)
    assert fit is not None
    assert fit.pairs == (margins >= cut).sum()
    assert fit.recall(cut) == pytest.approx((margins >= cut).mean(), abs=0.05)
    assert fit.recall(fit.cut(0.9)) == pytest.approx(0.9)


def test_few_or_equal_margins_are_not_fitted() -> None:
    """Three pairs gave a recall of 100 %, and the other pairs were lost without a word."""
    assert fit_margins(np.full(LEAST_PAIRS - 1, 1.3) + np.arange(LEAST_PAIRS - 1) / 100, cut=1.0) is None
    assert fit_margins(np.full(2 * LEAST_PAIRS, 1.3), cut=1.0) is None
    all_margins = np.linspace(0.9, 1.3, 2 * LEAST_PAIRS)
    fit = fit_margins(all_margins, cut=-math.inf)
    assert fit is not None and fit.mean == pytest.approx(1.1)


def test_a_cut_keeps_a_share_of_both_texts() -> None:
    chances = (np.array([3.0, 1.0, 2.0], dtype=np.float32), np.array([5.0, 4.0, 0.0], dtype=np.float32))
    assert cut_for_share(chances, 0.5) == 3.0
    assert cut_for_share(chances, 1e-9) == 5.0
    assert cut_for_share(chances, 1.0) == -math.inf


def test_chances_are_the_best_margins() -> None:
    source = unit_rows(5, seed=5)
    forward, backward = find_neighbors(source, source[[1, 0, 2]], k=2)
    chances = sentence_chances(forward, backward)
    assert chances.shape == (5,) and set(np.argsort(-chances)[:3]) == {0, 1, 2}


def test_stacked_rows_are_read_in_their_order() -> None:
    parts = [unit_rows(3, seed=6), unit_rows(2, seed=7)]
    whole = np.concatenate(parts)
    order = np.array([4, 0, 3, 3, 2])
    stacked = StackedRows(parts, order)
    assert stacked.shape == (5, 8) and len(stacked) == 5
    np.testing.assert_array_equal(stacked[:], whole[order])
    np.testing.assert_array_equal(stacked[1:3], whole[order[1:3]])
    np.testing.assert_array_equal(stacked[np.array([2, 0])], whole[[3, 4]])


def test_a_subset_of_distinct_sentences_keeps_their_ids() -> None:
    """Pairs of a first stage had the line numbers of other sentences."""
    text = ["a", "", "b", "a", "c", " b "]
    sentences = UniqueSentences(text, "the text")
    subset = sentences.subset(np.array([1, 2]))
    assert list(subset) == ["b", "c"] and len(subset) == 2 and subset[0] == "b"
    assert [subset.members(0), subset.members(1)] == [[2, 5], [4]]
    assert subset.rows.tolist() == [2, 4]
    assert sentences.subset(np.array([0])).members(0) == [0, 3]
    assert sentences[0] == "a" and sentences.members(1) == [2, 5]


@pytest.mark.parametrize("seed", range(3))
def test_a_threshold_stands_out_against_pairs_of_random_sentences(seed: int) -> None:
    """Of 200,000 sentences a side, those that a first stage kept gave no threshold, and all pairs were written.

    Kept sentences have the best of all wrong pairs, and too few others to tell them from translations.
    """
    random = np.random.default_rng(seed)
    source, target = random.standard_normal((2, 3000, 64))
    target[:40] = source[:40] + 1.3 * random.standard_normal((40, 64))
    forward, backward = find_neighbors(source[:, :42], target[:, :42], k=4)
    chances = (sentence_chances(forward, backward), sentence_chances(backward, forward))
    cut = cut_for_share(chances, 0.2)
    kept = []
    embeddings = []
    backgrounds = []
    for number, vectors in enumerate((source, target)):
        rows = np.flatnonzero(chances[number] >= cut)
        others = np.setdiff1d(draw_background(3000, 0.1, most=10_000, seed=number), rows)
        kept.append(rows)
        embeddings.append(vectors[rows])
        backgrounds.append(Background(vectors[others], (3000 - len(rows)) / len(others)))
    both = find_neighbors(*embeddings, k=4)
    forward = with_background(both[0], embeddings[0], backgrounds[1], memory_mib=64, device="cpu")
    backward = with_background(both[1], embeddings[1], backgrounds[0], memory_mib=64, device="cpu")
    pairs = best_pairs(forward, backward)
    is_right = kept[0][pairs.source_indices] == kept[1][pairs.target_indices]

    estimate = partial(estimate_threshold, forward, backward, pairs.scores, pairs.source_indices, pairs.target_indices)
    search = {"k": 4, "memory_mib": 64, "device": "cpu"}
    sampled = mine_backgrounds(
        (embeddings[0], embeddings[1]), (backgrounds[0], backgrounds[1]), margin="ratio", **search
    )
    assert estimate().threshold is None
    threshold = estimate(sampled=sampled).threshold
    assert threshold is not None
    is_right = is_right[pairs.scores >= threshold]
    assert 2 * is_right.sum() / (len(is_right) + 40) > 0.55
    # Nothing was left out of the target: its pairs are all there.
    assert mine_backgrounds((source, target), (backgrounds[0], None), margin="ratio", **search) is None
