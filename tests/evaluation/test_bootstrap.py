"""Bootstrap intervals: against plain loops, their width, their edges."""

from __future__ import annotations

import numpy as np
import pytest

from st_xling.evaluation import bootstrap_interval


def test_plain_loops() -> None:
    """The same draws, one set and one measure at a time."""
    values = np.random.default_rng(3).random((17, 3))
    generator = np.random.default_rng(5)
    means = [[0.0] * 3 for _ in range(200)]
    for drawn, mean in zip(generator.integers(17, size=(200, 17)), means):
        for measure in range(3):
            mean[measure] = sum(float(values[row, measure]) for row in drawn) / 17
    low, high = bootstrap_interval(values, samples=200, confidence=0.9, seed=5)
    for measure in range(3):
        column = sorted(mean[measure] for mean in means)
        for end, share in ((low, 0.05), (high, 0.95)):
            place = share * 199
            below = int(place)
            expected = column[below] + (place - below) * (column[below + 1] - column[below])
            assert end[measure] == pytest.approx(expected, rel=1e-9)


def test_width_falls_with_queries() -> None:
    """A mean of n coins is off by 1.96 * sqrt(0.25 / n) nineteen times in twenty."""
    for queries in (400, 6400):
        low, high = bootstrap_interval(np.arange(queries)[:, None] % 2)
        assert (high - low)[0] == pytest.approx(2 * 1.96 * (0.25 / queries) ** 0.5, rel=0.15)
        assert low[0] < 0.5 < high[0]


def test_many_queries_are_drawn_a_few_sets_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from st_xling.evaluation import bootstrap

    values = np.random.default_rng(0).random((50, 2))
    whole = bootstrap_interval(values)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 120)
    np.testing.assert_allclose(bootstrap_interval(values), whole, rtol=0.05)
    assert np.array_equal(bootstrap_interval(values), bootstrap_interval(values))
    assert not np.array_equal(bootstrap_interval(values), bootstrap_interval(values, seed=1))


def test_edges() -> None:
    low, high = bootstrap_interval(np.empty((0, 2)))
    assert low.tolist() == high.tolist() == [0.0, 0.0]
    low, high = bootstrap_interval([[0.25]])
    assert low.tolist() == high.tolist() == [0.25]
    with pytest.raises(ValueError, match="samples of a bootstrap must be 1 or more: got 0"):
        bootstrap_interval([[1.0]], samples=0)
    with pytest.raises(ValueError, match=r"confidence must lie in \(0, 1\): got 95"):
        bootstrap_interval([[1.0]], confidence=95)
