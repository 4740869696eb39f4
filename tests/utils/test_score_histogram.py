"""Ten bins of scores: every score is in one, and a threshold cuts between two."""

from dataclasses import replace

import numpy as np
import pytest

from st_xling.utils.score_histogram import ScoreHistogram


@pytest.mark.parametrize("threshold", [None, 0.2, 1.0, 1.05, 1.0999, 1.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_threshold(threshold: float | None, seed: int) -> None:
    scores = np.random.default_rng(seed).choice(np.linspace(0.9, 1.1, 21), 500)
    scores = np.concatenate([scores, [0.9, 1.1, -np.inf]])
    histogram = ScoreHistogram.of(scores, threshold)
    assert histogram.total == 503 and histogram.undefined == 1 and len(histogram.counts) == 10
    assert histogram.edges[0] == 0.9 and histogram.edges[-1] == 1.1
    expected = [
        int(((low <= scores) & (scores < high)).sum()) for low, high in zip(histogram.edges, histogram.edges[1:])
    ]
    expected[-1] += int((scores == 1.1).sum())
    assert list(histogram.counts) == expected
    kept = 503 if threshold is None else int((scores >= threshold).sum())
    assert histogram.as_dict()["kept"] == kept and histogram.as_dict()["dropped"] == 503 - kept


def test_lines() -> None:
    histogram = ScoreHistogram.of([1.0] * 60 + [1.05] * 30 + [1.1] * 10, 1.05)
    lines = histogram.lines()
    assert len(lines) == 10
    assert lines[0] == "  1.0900 to   1.1000 #####                                10  10%  kept"
    assert lines[4] == "  1.0500 to   1.0600 ###############                      30  30%  kept"
    assert lines[9] == "  1.0000 to   1.0100 ##############################       60  60%  dropped"
    few = ScoreHistogram.of([-12.5, 3.0, 3.0], 1.0)
    many = replace(few, counts=(98_000_000, *few.counts[1:]))
    assert few.counts[0] == 1 and max(map(len, many.lines())) <= 80


@pytest.mark.parametrize(
    ("scores", "bins", "total"), [([], 0, 0), ([-np.inf], 0, 1), ([1.0], 1, 1), ([1.0, 1.0], 1, 2)]
)
def test_few_scores(scores: list[float], bins: int, total: int) -> None:
    for threshold in (None, 1.0, 2.0):
        histogram = ScoreHistogram.of(scores, threshold)
        assert len(histogram.counts) == bins and histogram.total == total
        assert len(histogram.lines()) == bins + (-np.inf in scores)
        assert histogram.kept == (total if threshold is None else sum(score >= threshold for score in scores))
