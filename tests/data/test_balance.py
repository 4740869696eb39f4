"""Shares by definition, epochs that keep to them, and rows drawn evenly over the epochs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from st_xling.data.batches import apportion, count_pairs, draw, language_shares, pair_rows

SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=8)


@given(SIZES, st.floats(0, 1))
def test_shares_are_those_of_the_formula(rows: list[int], alpha: float) -> None:
    total = sum(count**alpha for count in rows)
    assert language_shares(rows, alpha=alpha) == pytest.approx([count**alpha / total for count in rows], rel=1e-9)
    if alpha > 0:
        assert language_shares(rows, temperature=1 / alpha) == pytest.approx(language_shares(rows, alpha=alpha))


def test_the_ends_of_the_scale() -> None:
    assert language_shares([900, 90, 10]) == language_shares([900, 90, 10], alpha=1) == [0.9, 0.09, 0.01]
    assert language_shares([900, 90, 10], temperature=1) == [0.9, 0.09, 0.01]
    assert language_shares([900, 90, 10], alpha=0) == language_shares([900, 90, 10], temperature=math.inf)
    assert language_shares([900, 90, 10], alpha=0) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.5, "temperature": 2}, "an exponent or by a temperature: got alpha 0.5 and temperature 2; leave"),
        ({"alpha": -0.1}, r"alpha must lie in \[0, 1\]: got -0.1"),
        ({"alpha": 5}, r"alpha must lie in \[0, 1\]: got 5"),
        ({"alpha": math.nan}, r"alpha must lie in \[0, 1\]: got nan"),
        ({"temperature": 0.3}, "temperature must be at least 1, the data as it is: got 0.3"),
        ({"temperature": math.nan}, "temperature must be at least 1"),
    ],
)
def test_bad_balance(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        language_shares([3, 4], **options)
    for rows in ([], [3, 0]):
        with pytest.raises(ValueError, match="every language needs rows to draw"):
            language_shares(rows, alpha=0.5)


@given(SIZES, st.integers(0, 10**5), st.floats(0, 1))
def test_apportioned_numbers_add_up_and_are_near(rows: list[int], total: int, alpha: float) -> None:
    shares = language_shares(rows, alpha=alpha)
    counts = apportion(total, shares)
    assert sum(counts) == total
    assert all(abs(count - total * share) < 1 + 1e-6 for count, share in zip(counts, shares))


@given(st.integers(1, 30), st.integers(0, 70), st.integers(1, 6))
def test_no_row_comes_twice_more_than_another(size: int, count: int, epochs: int) -> None:
    """Small languages are repeated evenly; of large ones, every row comes before one comes again."""
    rows = np.arange(100, 100 + size)
    drawn = Counter(row for epoch in range(epochs) for row in draw(rows, count, epoch=epoch, seed=[3, 1]).tolist())
    times = [drawn[row] for row in rows.tolist()]
    assert sum(times) == count * epochs and max(times) - min(times) <= 1 + (count % size != 0)
    assert set(drawn) <= set(rows.tolist())


def test_epochs_seeds_and_languages_differ() -> None:
    rows = np.arange(50)
    made = {tuple(draw(rows, 20, epoch=epoch, seed=[seed, place])) for epoch, seed, place in np.ndindex(3, 2, 2)}
    assert len(made) == 12
    assert list(draw(rows, 20, epoch=7, seed=[0, 1])) == list(draw(rows, 20, epoch=7, seed=[0, 1]))


def test_pairs_are_told_apart_by_both_languages() -> None:
    data = Dataset.from_dict({
        "source": list("abcd"),
        "source_language": ["de", "en", "de", "zh"],
        "target_language": ["en", "de", "en", "vi"],
    })  # fmt: skip
    found = {pair: rows.tolist() for pair, rows in pair_rows(data).items()}
    assert found == {("de", "en"): [0, 2], ("en", "de"): [1], ("zh", "vi"): [3]}
    with pytest.raises(
        ValueError, match="need the columns source_language and target_language: the data set has source"
    ):
        pair_rows(data.select_columns(["source"]))
    assert count_pairs(data) == {pair: len(rows) for pair, rows in found.items()}
    nameless = Dataset.from_dict({"source_language": ["de", None], "target_language": ["en", "en"]})
    with pytest.raises(ValueError, match="row 1 of the data set has no language"):
        pair_rows(nameless)
