"""Distinct sentences: those that a dictionary would find, in one reading and little memory."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.deduplication import UniqueSentences, folding_key

#: Words that differ, words that only look different, and enough repeats of both.
TEXTS = st.lists(
    st.sampled_from(["", " ", "Ja.", " Ja. ", "ja.", "cafe\u0301", "café", "ไทย", "我 们", "我\u3000们", "\ud800"])
    | st.text(max_size=2),
    max_size=30,
)


@given(TEXTS)
def test_equals_a_dictionary(texts: list[str]) -> None:
    texts = [*texts, "a sentence"]
    numbers: dict[str, int] = {}
    keys = [folding_key(text) for text in texts]
    expected = [numbers.setdefault(key, len(numbers)) if key else -1 for key in keys]
    distinct = UniqueSentences(texts, "the text")
    assert distinct.place_of.tolist() == expected and len(distinct) == len(numbers)
    assert distinct.rows.tolist() == [expected.index(number) for number in range(len(numbers))]
    assert distinct.blank_rows == expected.count(-1)
    for number in range(len(distinct)):
        assert distinct.members(number) == [row for row, own in enumerate(expected) if own == number]
        assert distinct[number] == texts[expected.index(number)]


def test_bytes_a_row(peak_growth: Callable[[Callable[[], Any]], int]) -> None:
    texts = [f"{row % 90_000}" for row in range(100_000)]
    assert peak_growth(lambda: UniqueSentences(texts, "the text")) < 100_000 * 80


def test_key() -> None:
    assert folding_key("  cafe\u0301\u3000\t ole\u0301\u00a0") == "café olé"
    assert len({folding_key(text) for text in ("Ａ", "A", "a")}) == 3
    assert folding_key("\ufeffAuto\u00adbahn\u200b.") == "Autobahn."
    assert folding_key("می\u200cروم") == "می\u200cروم"  # a joiner that shapes the word
    assert not any(map(folding_key, ("\u200b", " \u00ad ", "\u2060", "\u3164", "\u2800", "\ufe0f")))
