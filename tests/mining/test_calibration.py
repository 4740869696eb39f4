"""Calibration: estimates against texts with known translations, intervals, the formula by hand, errors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining import Calibration, calibrate, mine
from st_xling.mining.calibration import StackedRows, _precision, _translated_share, select_known_pairs


def translations(rows, random, noise, dim=16):
    source = random.standard_normal((rows, dim)) + 0.3
    return source, source + noise * random.standard_normal((rows, dim))


def text_with(share, rows, seed, noise=0.7, known_count=240):
    """A text, the number of its sentences with a translation, and known translations of the same kind."""
    random = np.random.default_rng(seed)
    source, target = translations(rows, random, noise)
    without_translation = rows - round(share * rows)
    target[rows - without_translation :] = translations(without_translation, random, noise)[1]
    return source, target, rows - without_translation, translations(known_count, random, noise)


@pytest.mark.parametrize("share, tolerance", [(0.15, 0.25), (0.8, 0.1)])
@pytest.mark.parametrize("margin, retrieval", [("ratio", "max"), ("distance", "intersect")])
def test_estimates_are_near_the_truth(share, tolerance, margin, retrieval):
    source, target, gold, known_pairs = text_with(share, 3000, seed=0, known_count=600)
    estimate = calibrate(source, target, *known_pairs, margin=margin, retrieval=retrieval)
    assert 1 < len(estimate.thresholds) <= 100 and (np.diff(estimate.thresholds) > 0).all()
    assert (np.diff([estimate.recall, estimate.kept]) <= 0).all()
    again = calibrate(source, target, *known_pairs, margin=margin, retrieval=retrieval)
    assert np.array_equal(estimate.precision_low, again.precision_low, equal_nan=True)
    mined = mine(source, target, margin=margin, retrieval=retrieval)
    correct = (mined.source_indices == mined.target_indices) & (mined.source_indices < gold)
    checked = 0
    for row, threshold in enumerate(estimate.thresholds):
        kept = mined.scores >= threshold
        if kept.sum() < 100:
            continue
        checked += 1
        precision = correct[kept].mean()
        recall = (correct & kept).sum() / gold
        assert estimate.recall[row] == pytest.approx(recall, abs=0.08)
        assert estimate.precision[row] == pytest.approx(precision, abs=tolerance)
        assert estimate.precision_low[row] - 0.05 <= precision <= estimate.precision_high[row] + 0.05
    assert checked > 20


def test_intervals_cover():
    """The intervals at one threshold contain the true values for at least 10 of 12 texts."""
    hits = {"recall": 0, "precision": 0}
    for seed in range(12):
        source, target, gold, (known_source, known_target) = text_with(0.4, 500, seed=seed)
        known_pairs = (known_source[:100], known_target[:100])
        estimate = calibrate(source, target, *known_pairs, thresholds=[1.15], seed=seed)
        mined = mine(source, target, threshold=1.15)
        correct = (mined.source_indices == mined.target_indices) & (mined.source_indices < gold)
        hits["recall"] += estimate.recall_low[0] <= correct.sum() / gold <= estimate.recall_high[0]
        hits["precision"] += estimate.precision_low[0] <= correct.mean() <= estimate.precision_high[0]
    assert min(hits.values()) >= 10


@pytest.mark.parametrize("known_count", [4, 12, 84])
def test_estimates_are_inside_their_intervals(known_count):
    """``--calibrate`` printed "precision about 1.000 [0.759, 0.992]", as if the statistics were broken.

    The estimate came from counts, where no error among 21 distractors is an error rate of zero, and the interval from
    draws.
    """
    perfect = 0
    for seed in range(25):
        share, noise = [(0.05, 0.3), (0.3, 0.7), (0.9, 0.5)][seed % 3]
        source, target, _, (known_source, known_target) = text_with(share, 150, seed=seed, noise=noise)
        estimate = calibrate(source, target, known_source[:known_count], known_target[:known_count], seed=seed)
        for name in ("precision", "recall"):
            value = getattr(estimate, name)
            low = getattr(estimate, f"{name}_low")
            high = getattr(estimate, f"{name}_high")
            inside = (low <= value) & (value <= high)
            assert (inside | np.isnan(value)).all(), (seed, name)
            assert (np.isnan(value) == np.isnan(low)).all()
        perfect += (estimate.recall == 1).any()
        assert not (estimate.precision == 1).any()
    assert perfect > 5


def test_formula_by_hand():
    """Pairs found 0.8, kept wrongly 0.1, distractors kept 0.1; of the text 0.5 = 0.5 * 0.9 + 0.5 * 0.1 is kept."""
    shares = np.array([0.8]), np.array([0.1]), np.array([0.1])
    assert _translated_share(*shares, np.array([0.5])).tolist() == pytest.approx([0.5], rel=1e-9)
    assert _precision(*shares, np.array([0.5])).tolist() == pytest.approx([0.4 / 0.5], rel=1e-9)
    assert _translated_share(*shares, np.array([0.1])).tolist() == [0.0]
    assert _translated_share(*shares, np.array([0.95])).tolist() == [1.0]
    assert _translated_share(np.array([0.2]), np.array([0.1]), np.array([0.5]), np.array([0.3])).tolist() == [0.0]


def test_choosing():
    def estimate(precision, recall):
        thresholds = np.arange(len(precision)) + 1.0
        recall = np.array(recall)
        kept = np.where(np.isnan(precision), 0, 5)
        return Calibration(thresholds, recall, recall, recall, np.array(precision), recall, recall, kept)

    falling = estimate([0.5, 0.95, 0.9, 0.96, np.nan], [0.9, 0.8, 0.7, 0.6, 0.1])
    assert falling.with_precision(0.95) == 4.0  # not 2.0: behind it the estimate drops again
    assert falling.with_precision(0.4) == 1.0
    assert falling.with_precision(0.99) == np.inf
    assert estimate([0.8, 0.96, 0.97, 0.9], [0.9, 0.8, 0.1, 0.01]).with_precision(0.95) == 2.0  # the last is too rare
    assert estimate([np.nan, np.nan], [0.5, 0.1]).with_precision(0.1) == np.inf
    assert falling.best() == 2.0
    assert estimate([0.5, 0.5], [0.5, 0.5]).best() == 2.0


PARTS = [np.arange(15.0, dtype=np.float32).reshape(5, 3), torch.arange(6.0).reshape(2, 3).half(), np.ones((4, 3))]
WHOLE = np.concatenate([np.asarray(part) for part in PARTS])


@given(st.integers(0, 13), st.integers(0, 13), st.lists(st.integers(0, 10)))
def test_stacked_matrices_read_like_their_concatenation(start, stop, rows):
    stacked = StackedRows(PARTS)
    assert stacked.shape == (11, 3)
    assert np.array_equal(stacked[start:stop], WHOLE[start:stop])
    assert np.array_equal(stacked[np.array(rows, dtype=np.int64)], WHOLE[np.array(rows, dtype=np.int64)])


def test_recall_has_wilson_s_interval():
    """Brown, Cai and DasGupta 2001, with z = 1.959964 for 95 %; exactly 0 and 1 at the ends."""
    source, target, _, known_pairs = text_with(0.5, 200, seed=5)
    estimate = calibrate(source, target, *known_pairs, thresholds=[*np.linspace(0.8, 1.6, 9), 99.0])
    n = 120
    z = 1.959964
    for share, *ends in zip(estimate.recall, estimate.recall_low, estimate.recall_high):
        center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        assert ends == pytest.approx([center - half, center + half], abs=1e-6)
    assert estimate.kept[-1] == estimate.recall_low[-1] == estimate.recall[-1] == 0 < estimate.recall_high[-1]
    assert np.isnan(estimate.precision[-1]) and estimate.f1[-1] == 0 and estimate.best() < 99


def test_known_pairs_do_not_occur_in_the_text(tmp_path):
    """Nor twice; a tenth of the text, but at least 100, are drawn, in their order."""
    path = tmp_path / "known.tsv"
    text = ["in the text", *(f"s{row}" for row in range(1499))]
    sources = ["in the text", *"aabc", "x  y", *(f"sentence {row}" for row in range(400))]
    path.write_text("".join(f"{source}\tt{source}\n" for source in sources))
    chosen = select_known_pairs(path, [text, [*text, "tx  y"]])
    assert len(chosen) == 150 and len(set(chosen)) == 150
    rows = [int(source.split()[1]) for source, _ in chosen if source.startswith("sentence ")]
    assert rows == sorted(rows) and ("x  y", "tx  y") not in chosen and ("in the text", "tin the text") not in chosen
    assert select_known_pairs(path, [text[:9], text]) != chosen
    assert len(select_known_pairs(path, [text[:9], text])) == 100
    path.write_text("a\tb\na\tb\nin the text\tc\n")
    with pytest.raises(ValueError, match="at least 4 pairs .* got 1 of 3; calibrate with"):
        select_known_pairs(path, [text, text])


KNOWN = np.eye(8, 3) + 1
TEXT = np.eye(9, 3) + 1


@pytest.mark.parametrize(
    "text, source, target, message",
    [
        (TEXT, np.eye(3), KNOWN, "row-aligned: got 3 and 8 rows"),
        (TEXT, KNOWN[:3], KNOWN[:3], "at least 4, better hundreds: got 3"),
        (-TEXT, KNOWN, -KNOWN, "none of them was mined"),
    ],
)
def test_errors(text, source, target, message):
    with pytest.raises(ValueError, match=message):
        calibrate(TEXT, text, source, target, k=2)
