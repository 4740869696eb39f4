"""Shares by definition, epochs that keep to them, and batches in which no two rows share a text."""

import math
from collections import Counter

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.batches import apportion, arrange, draw, language_shares
from st_xling.data.pairs import pair_rows

SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=8)


@given(SIZES, st.floats(0, 1))
def test_shares_are_those_of_the_formula(rows: list[int], alpha: float) -> None:
    total = sum(count**alpha for count in rows)
    assert language_shares(rows, alpha=alpha) == pytest.approx([count**alpha / total for count in rows], rel=1e-9)
    assert language_shares(rows) == language_shares(rows, alpha=1)


@pytest.mark.parametrize("alpha", [-0.1, 5, math.nan])
def test_exponents_out_of_range(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"alpha .*got {alpha}"):
        language_shares([3, 4], alpha=alpha)


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
    """Languages of equal size would always give the same rows to a batch."""
    rows = np.arange(50)
    made = {tuple(draw(rows, 20, epoch=epoch, seed=[seed, place])) for epoch, seed, place in np.ndindex(3, 2, 2)}
    assert len(made) == 12
    assert list(draw(rows, 20, epoch=7, seed=[0, 1])) == list(draw(rows, 20, epoch=7, seed=[0, 1]))


def test_pairs_are_told_apart_by_both_languages() -> None:
    languages = {"source_language": ["de", "en", "de", "zh"], "target_language": ["en", "de", "en", "vi"]}
    rows_by_pair = {pair: rows.tolist() for pair, rows in pair_rows(Dataset.from_dict(languages)).items()}
    assert rows_by_pair == {("de", "en"): [0, 2], ("en", "de"): [1], ("zh", "vi"): [3]}
    with pytest.raises(ValueError, match="columns source_language and target_language: got source"):
        pair_rows(Dataset.from_dict({"source": ["a"]}))


def shared(batch: np.ndarray, keys: np.ndarray) -> bool:
    """Plain definition: two places of the batch with a text in common, on whatever side."""
    texts = [set(keys[row].tolist()) for row in batch]
    return any(texts[i] & texts[j] for i in range(len(texts)) for j in range(i))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    rows = draw(st.integers(1, 80))
    texts = draw(st.integers(1, 60))
    keys = draw(st.lists(st.tuples(*[st.integers(0, texts)] * 2), min_size=rows, max_size=rows))
    order = draw(st.permutations(range(rows)))
    return np.array(keys, dtype=np.uint64), np.array(order), draw(st.integers(1, 12))


@settings(max_examples=120, deadline=None)
@given(corpora())
def test_never_a_shared_text(corpus: tuple[np.ndarray, np.ndarray, int]) -> None:
    keys, order, size = corpus
    batches, left_out = arrange(order, size, keys=keys, lengths=keys.sum(axis=1).astype(np.int64))
    assert not any(shared(batch, keys) for batch in batches)
    assert len(batches) == -(-len(order) // size) and all(1 <= len(batch) <= size for batch in batches)
    if not left_out:
        assert sorted(np.concatenate(batches).tolist()) == sorted(order.tolist())
        assert all(len(batch) == size for batch in batches[:-1])


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(2, 10), st.integers(0, 5), st.randoms(use_true_random=False))
def test_what_can_be_placed_is_placed(batches: int, size: int, repeated: int, random: object) -> None:
    """Texts that come in half as many rows as there are batches, each beside unique ones, always find a place."""
    rows = batches * size
    keys = np.stack([np.arange(rows), rows + np.arange(rows)], axis=1).astype(np.uint64)
    for text in range(min(repeated, size // 2)):
        keys[text * batches : text * batches + batches // 2, 1] = 10**6 + text
    order = list(range(rows))
    random.shuffle(order)  # type: ignore[attr-defined]
    made, left_out = arrange(np.array(order), size, keys=keys)
    assert left_out == 0 and sorted(np.concatenate(made).tolist()) == list(range(rows))
    assert not any(shared(batch, keys) for batch in made)


def test_sides_of_one_row_and_of_several() -> None:
    """Names and numbers are their own translation: such a row is no duplicate; the target of another row is one."""
    keys = np.array([[1, 1], [2, 2], [3, 3], [4, 4]], dtype=np.uint64)
    made, left_out = arrange(np.arange(4), 2, keys=keys)
    assert [batch.tolist() for batch in made] == [[0, 1], [2, 3]] and left_out == 0
    keys = np.array([[1, 2], [2, 3], [4, 5], [6, 7]], dtype=np.uint64)
    made, _ = arrange(np.arange(4), 2, keys=keys)
    assert not any({0, 1} <= set(batch.tolist()) for batch in made)


def test_text_that_is_nearly_all_alike_ends_in_time() -> None:
    """Two sentences 25,000 times each: no place to find, and no hours to look for one."""
    keys = np.random.default_rng(0).integers(0, 2, size=50_000).astype(np.uint64)[:, None]
    made, left_out = arrange(np.arange(50_000), 4, keys=keys)
    assert left_out > 25_000 and {len(batch) for batch in made} <= {1, 2}
    assert not any(shared(batch, keys) for batch in made)


def test_swapping_keeps_lengths_together() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 200, size=4000)
    keys = np.stack([np.arange(4000), generator.integers(0, 2000, size=4000) + 10**6], axis=1).astype(np.uint64)
    order = generator.permutation(4000)
    plain, _ = arrange(order, 50, lengths=lengths)
    apart, left_out = arrange(order, 50, lengths=lengths, keys=keys)
    assert left_out == 0 and sum(shared(batch, keys) for batch in plain) > 20
    padding = [sum(int(lengths[b].max()) * len(b) - int(lengths[b].sum()) for b in made) for made in (plain, apart)]
    assert padding[1] < 1.3 * padding[0]
