"""Guards by texts and neighbours: copies and near copies in many scripts, lengths over scripts, hubs."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining import neighbours
from st_xling.mining.guards import (
    CopyGuard,
    HubGuard,
    LengthRatioGuard,
    NearCopyGuard,
    NeighbourCounts,
    letter_key,
    weighted_length,
)
from st_xling.mining.guards.predicates import HAN, HANGUL, KANA
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


NO_COPIES = [
    ("Der Hund schläft.", "The dog is sleeping."),
    ("कि", "की"),  # vowel signs are marks: without them both would be "क"
    ("กา", "กี"),
    ("二零一九", "2019"),
    ("1984", "1985"),
    ("année", "annee"),
]


def test_copies(pairs):
    assert all(turned_down(CopyGuard(), *COPIES, *[pair[::-1] for pair in COPIES]))
    assert not any(turned_down(CopyGuard(), *NO_COPIES))
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


def test_near_copies():
    assert all(turned_down(NearCopyGuard(), *NEAR, *[pair[::-1] for pair in NEAR]))
    assert not any(turned_down(CopyGuard(), *NEAR))
    assert turned_down(NearCopyGuard(1.0), ("Ja!", "ja"), ("", "ja"), ("…", "!")) == [True, False, True]


def test_similarity_is_twice_the_common_subsequence():
    """ "kitten" and "sitting" share i, t, t, n: 2 * 4 / 13."""
    assert turned_down(NearCopyGuard(8 / 13 - 1e-6), ("kitten", "sitting")) == [True]
    assert turned_down(NearCopyGuard(8 / 13 + 1e-6), ("kitten", "sitting")) == [False]
    (verdict,) = verdicts(NearCopyGuard(0.5), ("kitten", "sitting"))
    assert verdict == (0.6154, 0.5)


def test_limits_out_of_range():
    counts = NeighbourCounts(np.zeros(1), np.zeros(1), 4)
    for call, message in (
        (lambda: NearCopyGuard(0), r"near_copy must lie in \(0, 1\]"),
        (lambda: NearCopyGuard(float("nan")), r"near_copy must lie in \(0, 1\]"),
        (lambda: LengthRatioGuard(1), "length_ratio must be above 1: got 1"),
        (lambda: HubGuard(counts, limit=0.5), "hub must be at least 1: got 0.5"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("Yes.", 4),
        ("cafe\u0301", 4),
        ("书。", HAN + 1),
        ("カタカナ", 4 * KANA),
        ("한국", 2 * HANGUL),
        (unicodedata.normalize("NFD", "한국"), 2 * HANGUL),
        ("我用Python写", 3 * HAN + 6),
        ("𠮷", HAN),
        ("แมวดำ", 5),
        ("🙂", 1),
        ("Привет", 6),
    ],
)
def test_weighted_length(text, length):
    assert weighted_length(text) == pytest.approx(length)


def test_ratio_by_hand():
    """Short sentences are lenient, long ones are not; the limit itself passes."""
    for pair in (("a" * 85, "b" * 10), ("b" * 10, "a" * 85)):
        assert verdicts(LengthRatioGuard(3.9), pair) == [(4.0, 3.9)]
        assert verdicts(LengthRatioGuard(4.0), pair, ("", "")) == [None, None]
    assert verdicts(LengthRatioGuard(), ("Да.", "Yes, of course I do.")) == [None]
    assert verdicts(LengthRatioGuard(), ("да" * 30, "yes, of course I do. " * 20)) == [(5.8, 2.5)]


def test_translations_pass_and_fragments_do_not(pairs):
    guard = LengthRatioGuard()
    assert verdicts(guard, *pairs) == [None] * len(pairs)
    assert verdicts(guard, ("人人生而自由，在尊严和权利上一律平等。", "All human")) != [None]
    long = "All human beings are born free and equal in dignity and rights."
    assert verdicts(guard, ("人人生而自由，在尊严和权利上一律平等。", long)) == [None]


def test_hub_of_real_neighbours():
    """Target 0 is the mean of all sources, so it is in the list of each; nothing else is."""
    random = np.random.default_rng(0)
    sources = random.normal(size=(200, 64)) + 1.0
    targets = np.concatenate([np.ones((1, 64)), random.normal(size=(199, 64))])
    forward, backward = neighbours(sources, targets, k=2)
    counts = NeighbourCounts.of(forward, backward)
    for found, lists in ((counts.target, forward), (counts.source, backward)):
        assert found.tolist() == [sum(row == near for near in lists.indices.ravel()) for row in range(200)]
    assert counts.target[0] == 200
    guard = HubGuard(counts, limit=20)
    first, second = verdicts(guard, ("a", "b"), ("c", "d"))
    assert first == ({"side": "target", "neighbour_of": 200}, 40.0)
    assert (second is None) == (counts.target[1] <= 40 and counts.source[1] <= 40)


def test_bound_of_hubs():
    """k 4, 10 sources, 1000 targets: a source may occur 20 * 4 * 100 times, a target 20 * 4."""
    for sources, targets, expected in (
        (8000, 80, None),
        (8001, 81, ({"side": "source", "neighbour_of": 8001}, 8000.0)),
        (8000, 81, ({"side": "target", "neighbour_of": 81}, 80.0)),
    ):
        counts = NeighbourCounts(np.full(10, sources, np.int32), np.full(1000, targets, np.int32), 4)
        assert verdicts(HubGuard(counts), ("a", "b")) == [expected]
