"""Copies and near-copies in many scripts, and what is neither."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.guards import CopyGuard, NearCopyGuard, letter_key
from tests.mining.guards.batches import verdicts


def turned_down(guard, *pairs):
    return [verdict is not None for verdict in verdicts(guard, *pairs)]


COPIES = [
    ("Hello, world!", "hello world"),
    ("Der Fluß.", "DER FLUSS"),
    ("cafe\u0301 🙂", "CAFÉ"),
    ("ＩＢＭ　３６０", "IBM 360"),
    ("محمـــد رسول", "محمد، رسول"),
    ("แมวดำ", "แมว ดำ"),
    ("१२ मार्च", "१२ — मार्च"),
    ("12.03.2004", "12/03/2004"),
    ("https://example.org/a", "https://example.org/a"),
    ("🙂🙂", "!!!"),
    ("สวัสดี\u200bครับ", "สวัสดีครับ"),
]


@pytest.mark.parametrize(("source", "target"), COPIES)
def test_copies(source, target):
    assert turned_down(CopyGuard(), (source, target), (target, source)) == [True, True]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Der Hund schläft.", "The dog is sleeping."),
        ("कि", "की"),  # vowel signs are marks: without them both would be "क"
        ("กา", "กี"),
        ("二零一九", "2019"),
        ("1984", "1985"),
        ("année", "annee"),
    ],
)
def test_no_copies(source, target):
    assert turned_down(CopyGuard(), (source, target)) == [False]


def test_fixture_pairs_are_neither(pairs):
    assert not any(turned_down(CopyGuard(), *pairs))
    assert not any(turned_down(NearCopyGuard(), *pairs))


@given(st.text(max_size=40))
def test_key_is_stable_and_blind_to_unicode_form(text):
    key = letter_key(text)
    assert letter_key(key) == key
    assert letter_key(unicodedata.normalize("NFD", text)) == key
    assert all(unicodedata.category(character)[0] in "LMN" for character in key)


NEAR = [
    ("Serug, Nahor, Tarah und Lot,", "Serug, Nahor, Terah und Lot,"),
    ("https://example.org/page?id=1041", "https://example.org/page?id=1042"),
    ("Автор: Иван Петрович Сидоров, Москва", "Автор: Иван Петрович Сидоров, г. Москва"),
    ("北京市海淀区中关村大街27号院", "北京市海淀区中关村大街29号院"),
]


@pytest.mark.parametrize(("source", "target"), NEAR)
def test_near_copies(source, target):
    assert turned_down(NearCopyGuard(), (source, target), (target, source)) == [True, True]
    assert turned_down(CopyGuard(), (source, target)) == [False]


def test_similarity_is_twice_the_common_subsequence():
    """ "kitten" and "sitting" share i, t, t, n: 2 * 4 / 13."""
    assert turned_down(NearCopyGuard(8 / 13 - 1e-6), ("kitten", "sitting")) == [True]
    assert turned_down(NearCopyGuard(8 / 13 + 1e-6), ("kitten", "sitting")) == [False]
    (verdict,) = verdicts(NearCopyGuard(0.5), ("kitten", "sitting"))
    assert verdict == (0.6154, 0.5)


def test_exact_copies_are_near_and_empty_sides_are_not():
    assert turned_down(NearCopyGuard(1.0), ("Ja!", "ja"), ("", "ja"), ("…", "!")) == [True, False, True]


@pytest.mark.parametrize("limit", [0, -1, 1.01, float("nan")])
def test_limit(limit):
    with pytest.raises(ValueError, match=r"near_copy must lie in \(0, 1\]"):
        NearCopyGuard(limit)
