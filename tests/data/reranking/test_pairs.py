"""Aligned pairs: what they hold, what each fault names, and which rows say the same."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs, same_text_classes
from st_xling.data.text_columns import leak_key
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, by_hand, numbered

EN, ZH = ({"en": QUERIES["en"]}, {"en": PASSAGES["en"]}), ({"zh": QUERIES["zh"]}, {"zh": PASSAGES["zh"]})

WORDS = st.sampled_from(
    ["Katze", "KATZE!", "猫", "แมว", "قطة", "кот", "gatto", "chat", "neko", "macska", "кішка", "pisică"]
)


def alike(columns: list[list[str]], one: int, two: int) -> bool:
    """Whether two rows have the same key in some language, or are joined by a third row."""
    keys = [[leak_key(text) for text in column] for column in columns]
    reached, waiting = {one}, [one]
    while waiting:
        row = waiting.pop()
        for other in range(len(keys[0])):
            if other not in reached and any(column[row] == column[other] for column in keys):
                reached.add(other)
                waiting.append(other)
    return two in reached


def test_rows_and_languages_can_be_picked() -> None:
    pairs = by_hand()
    assert pairs.languages == ("en", "zh", "ar", "th", "fr") and len(pairs) == 4
    picked = pairs.select(np.array([3, 0]))
    assert picked.languages == pairs.languages
    assert picked.queries["th"] == ["อะไรสีแดง", "แมวนั่งที่ไหน"]
    assert picked.passages["ar"] == ["التفاح أحمر.", "القطة تجلس على السطح."]


def test_columns_of_data_sets_and_arrays_will_do() -> None:
    columns = Dataset.from_dict({"en": QUERIES["en"], "zh": QUERIES["zh"]})
    pairs = AlignedPairs(
        {code: columns[code] for code in ("en", "zh")},
        {code: tuple(PASSAGES[code]) for code in ("en", "zh")},
        np.array([1.0, 0.0, 1.0, 0.0]),
    )
    assert pairs.labels == [1, 0, 1, 0] and pairs.queries["zh"] == QUERIES["zh"]


@pytest.mark.parametrize(
    ("queries", "passages", "labels", "facts"),
    [
        ({"zh": QUERIES["zh"][:3]}, ZH[1], [1] * 4, "zh has 3 texts for 4 labels"),
        (ZH[0], ZH[1], [1] * 5, "zh has 4 texts for 5 labels"),
        (EN[0], ZH[1], [1] * 4, "same languages"),
        ({}, {}, [], "same languages"),
        ({"en": ["q"] * 12}, {"en": ["p"] * 12}, [7] * 12, "rows 0, 1, 2, 3, 4 and 7 more"),
        *(
            (*EN, [1, label, 0, label], "0 or 1: got .* in rows 1, 3")
            for label in (2, -1, 0.5, float("nan"), None, "1")
        ),
    ],
)
def test_faults_name_language_and_rows(queries: object, passages: object, labels: object, facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        AlignedPairs(queries, passages, labels)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=7, max_size=7), min_size=1, max_size=3))
def test_classes_are_the_rows_that_texts_join(columns: list[list[str]]) -> None:
    classes = same_text_classes(columns)
    assert list(dict.fromkeys(classes.tolist())) == list(range(classes.max() + 1)), "in the order of their first rows"
    for one in range(7):
        for two in range(7):
            assert (classes[one] == classes[two]) == alike(columns, one, two)


def test_texts_that_say_the_same_share_a_key() -> None:
    """So do texts that are equal in one language alone, with their translations; also in another set."""
    pairs = AlignedPairs(
        {"de": ["Wer?", "wer", "Wo?"], "en": ["Who?", "Which one?", "Where?"]},
        {"de": ["Er.", "Sie.", "Da."], "en": ["He.", "She.", "She!"]},
        [1, 1, 1],
    )
    queries, passages = pairs.keys
    assert queries[0] == queries[1] != queries[2] and passages[0] != passages[1] == passages[2]
    again = numbered(2, "de", "en"), pairs.select([2, 1])
    assert again[1].keys[0].tolist() == queries[[2, 1]].tolist() and not set(again[0].keys[0].tolist()) & set(queries)
