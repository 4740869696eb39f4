"""Folding of duplicates: exact even when hashes collide, whatever memory is given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.text.folding import fold_duplicates, folding_key, hash_text

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


@given(TEXTS, st.integers(1, 3), st.integers(0, 20))
def test_collisions_never_join_sentences(texts, hashes, held_chars):
    folding = fold_duplicates(texts, hash_text=lambda key: len(key) % hashes << 62, held_chars=held_chars)
    assert folding.fold_of.tolist() == by_dict(texts)


def test_key():
    assert folding_key("  cafe\u0301\u3000\t ole\u0301\u00a0") == "café olé"
    assert folding_key("Ａ") != folding_key("A")
    assert folding_key("Ja") != folding_key("ja")


def test_hash_is_the_same_everywhere():
    """``printf 'ไทย 🙂' | b2sum -l 64`` of GNU coreutils, its bytes read as a little-endian number."""
    assert hash_text("ไทย 🙂") == int.from_bytes(bytes.fromhex("e2c4bc4c719e4ec9"), "little")
    assert 0 <= hash_text("\ud800") < 2**64


class Lines:
    """Text that can be read again and again but never held, and counts how often it was read."""

    def __init__(self, rows, change=0):
        self.rows, self.change, self.readings = rows, change, 0

    def __iter__(self):
        self.readings += 1
        yield from (f"line {row % 5000}" for row in range(self.rows + self.change * (self.readings > 1)))


def test_streamed_text():
    lines = Lines(20_000)
    folding = fold_duplicates(lines)
    assert lines.readings == 2
    assert len(folding) == 5000
    assert folding.members(7).tolist() == [7, 5007, 10007, 15007]
    assert np.array_equal(folding.fold_of, np.arange(20_000) % 5000)


def test_less_memory_takes_more_readings():
    lines = Lines(10_000)
    folding = fold_duplicates(lines, held_chars=9 * 1000)
    assert 5 < lines.readings < 9
    assert np.array_equal(folding.fold_of, np.arange(10_000) % 5000)


def test_without_repeats_it_reads_once():
    lines = Lines(5000)
    assert len(fold_duplicates(lines)) == 5000
    assert lines.readings == 1


@pytest.mark.parametrize("change", [-1, 1])
def test_text_that_changes(change):
    with pytest.raises(ValueError, match="must be the same at each reading: got 6000 rows"):
        fold_duplicates(Lines(6000, change))


def test_generator_is_refused():
    with pytest.raises(ValueError, match="readable several times: got an iterator"):
        fold_duplicates(line for line in ["a"])


def test_nothing():
    folding = fold_duplicates([])
    assert len(folding) == 0
    assert folding.fold_of.tolist() == []
