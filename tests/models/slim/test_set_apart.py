"""Rows kept out of a stream: none lost, none twice, drawn evenly, the same for the same seed."""

from __future__ import annotations

from collections import Counter

import pytest

from st_xling.models.slim.parity import sampled, set_apart


@pytest.mark.parametrize("hold_out", [0.0, 0.1, 0.9, 1, 7, 50])
def test_every_row_is_passed_on_or_kept(hold_out: float) -> None:
    kept: list[int] = []
    passed = list(set_apart(range(200), hold_out, kept, seed=3, most=30))
    assert sorted([*passed, *kept]) == list(range(200))
    expected = {0.0: 0, 0.9: 30, 1: 1, 7: 7, 50: 50}
    assert len(kept) == expected.get(hold_out, len(kept)) <= 50
    again: list[int] = []
    assert list(set_apart(range(200), hold_out, again, seed=3, most=30)) == passed and again == kept


@pytest.mark.parametrize(("hold_out", "share"), [(0.25, 0.25), (5, 0.25), (0.9, 0.4)])
def test_each_row_is_as_likely_as_any_other(hold_out: float, share: float) -> None:
    """20 rows, 2,000 draws: standard error of a share below 0.011."""
    counts: Counter[int] = Counter()
    for seed in range(2000):
        kept: list[int] = []
        for _ in set_apart(range(20), hold_out, kept, seed=seed, most=8):
            pass
        counts.update(kept)
    assert all(abs(counts[row] / 2000 - share) < 0.05 for row in range(20)), counts


def test_a_sample_takes_nothing_away() -> None:
    counts: Counter[int] = Counter()
    for seed in range(1500):
        sample: list[int] = []
        assert list(sampled(range(12), 3, sample, seed=seed)) == list(range(12))
        assert len(set(sample)) == 3
        counts.update(sample)
    assert all(abs(counts[row] / 1500 - 0.25) < 0.06 for row in range(12)), counts


def test_few_rows_are_all_kept() -> None:
    kept: list[str] = []
    assert list(set_apart(["a", "b"], 5, kept)) == [] and kept == ["a", "b"]


@pytest.mark.parametrize("hold_out", [-0.1, 1.5, float("nan"), float("inf")])
def test_other_numbers_are_refused(hold_out: float) -> None:
    with pytest.raises(ValueError, match=r"hold_out must be a share in \[0, 1\) or a whole number of rows"):
        list(set_apart([1], hold_out, []))
