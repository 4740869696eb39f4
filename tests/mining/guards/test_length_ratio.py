"""Lengths over scripts of different density."""

import unicodedata

import pytest

from st_xling.mining.guards import LengthRatioGuard, weighted_length
from st_xling.mining.guards.predicates import HAN, HANGUL, KANA
from tests.mining.guards.batches import verdicts


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
    guard = LengthRatioGuard()
    assert guard.ratio("a" * 85, "b" * 10) == pytest.approx(100 / 25)
    assert guard.ratio("b" * 10, "a" * 85) == pytest.approx(100 / 25)
    assert LengthRatioGuard(slack_chars=0).ratio("", "x") == float("inf")
    assert LengthRatioGuard(slack_chars=0).ratio("", "") == 1


def test_short_sentences_are_lenient_long_ones_are_not():
    guard = LengthRatioGuard()
    assert verdicts(guard, ("Да.", "Yes, of course I do.")) == [None]
    assert verdicts(guard, ("да" * 30, "yes, of course I do. " * 20)) == [(5.8, 2.5)]


def test_translations_pass_and_fragments_do_not(pairs):
    guard = LengthRatioGuard()
    assert verdicts(guard, *pairs) == [None] * len(pairs)
    assert verdicts(guard, ("人人生而自由，在尊严和权利上一律平等。", "All human")) != [None]
    long = "All human beings are born free and equal in dignity and rights."
    assert verdicts(guard, ("人人生而自由，在尊严和权利上一律平等。", long)) == [None]


def test_limit_itself_passes():
    assert verdicts(LengthRatioGuard(2.0, slack_chars=0), ("aa", "b"), ("aaa", "b")) == [None, (3.0, 2.0)]


def test_errors():
    with pytest.raises(ValueError, match="length_ratio must be above 1: got 1"):
        LengthRatioGuard(1)
    with pytest.raises(ValueError, match="slack_chars must be 0 or more: got -1"):
        LengthRatioGuard(slack_chars=-1)
