"""Folding of duplicates: exact even when hashes collide, whatever memory is given."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.deduplication import fold_duplicates, folding_key

#: Words that differ, words that only look different, and enough repeats of both.
TEXTS = st.lists(
    st.sampled_from(["", " ", "Ja.", " Ja. ", "ja.", "cafe\u0301", "café", "ไทย", "我 们", "我\u3000们", "🙂", "x" * 9])
    | st.text(max_size=2),
    max_size=30,
)


def by_dict(texts):
    """Fold of each row, by plain definition."""
    folds = {}
    return [folds.setdefault(folding_key(text), len(folds)) for text in texts]


@given(TEXTS)
def test_equals_a_dictionary(texts):
    folding = fold_duplicates(texts)
    assert folding.fold_of.tolist() == by_dict(texts)
    assert folding.representatives.tolist() == [by_dict(texts).index(fold) for fold in range(len(folding))]


@given(TEXTS)
def test_expanding_after_folding_is_the_identity(texts):
    folding = fold_duplicates(texts)
    expanded = [folding.members(fold).tolist() for fold in range(len(folding))]
    assert sorted(row for rows in expanded for row in rows) == list(range(len(texts)))
    for fold, rows in enumerate(expanded):
        assert rows == sorted(rows)
        assert rows[0] == folding.representatives[fold]
        assert len({folding_key(texts[row]) for row in rows}) == 1


def test_key():
    assert folding_key("  cafe\u0301\u3000\t ole\u0301\u00a0") == "café olé"
    assert folding_key("Ａ") != folding_key("A")
    assert folding_key("Ja") != folding_key("ja")


def test_a_stream_is_read_once():
    folding = fold_duplicates(f"line {row % 5000}" for row in range(20_000))
    assert len(folding) == 5000
    assert folding.members(7).tolist() == [7, 5007, 10007, 15007]
    assert np.array_equal(folding.fold_of, np.arange(20_000) % 5000)


def test_half_a_surrogate_pair_is_a_text():
    assert fold_duplicates(["\ud800", "x", "\ud800"]).fold_of.tolist() == [0, 1, 0]


def test_nothing():
    folding = fold_duplicates([])
    assert len(folding) == 0
    assert folding.fold_of.tolist() == []
