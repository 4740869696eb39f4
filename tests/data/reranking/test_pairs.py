"""Aligned pairs, which rows mean the same, and negatives against the rule in plain loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs, draw_negatives, same_text_classes, with_negatives
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
        *((*EN, [1, label, 0, label], "0 or 1: got .* in rows 1, 3") for label in (2, 0.5, None, "1")),
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


def is_negative(pairs: AlignedPairs, positive: int, row: int) -> bool:
    """The rule, as the docstring has it: no passage that is relevant to the query, in any language, nor the query."""
    queries, passages = list(pairs.queries.values()), list(pairs.passages.values())
    for other in range(len(pairs)):
        if pairs.labels[other] and alike(queries, positive, other) and alike(passages, other, row):
            return False
    for code in pairs.languages:
        for asked in range(len(pairs)):
            for shown in range(len(pairs)):
                same = leak_key(pairs.queries[code][asked]) == leak_key(pairs.passages[code][shown])
                if same and alike(queries, positive, asked) and alike(passages, shown, row):
                    return False
    return True


@st.composite
def small_sets(draw: st.DrawFn) -> AlignedPairs:
    rows = draw(st.integers(4, 9))
    texts = lambda: draw(st.lists(WORDS, min_size=rows, max_size=rows))  # noqa: E731
    labels = draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    return AlignedPairs({"de": texts(), "it": texts()}, {"de": texts(), "it": texts()}, labels)


@settings(max_examples=60, deadline=None)
@given(small_sets(), st.integers(0, 3), st.integers(0, 2))
def test_exactly_what_the_rule_allows_is_drawn(pairs: AlignedPairs, seed: int, each: int) -> None:
    positives = [row for row, label in enumerate(pairs.labels) if label]
    passages = list(pairs.passages.values())
    allowed = {
        positive: [row for row in range(len(pairs)) if is_negative(pairs, positive, row)] for positive in positives
    }
    classes = same_text_classes(passages)
    if any(len(set(classes[rows])) < each for rows in allowed.values()):
        with pytest.raises(ValueError, match=f"cannot draw {each} negatives"):
            draw_negatives(pairs, negatives_per_positive=each, seed=seed)
        return
    drawn = draw_negatives(pairs, negatives_per_positive=each, seed=seed)
    assert drawn.shape == (len(positives), each)
    for positive, rows in zip(positives, drawn.tolist()):
        assert set(rows) <= set(allowed[positive])
        assert len({classes[row] for row in rows}) == each


def test_paraphrases_of_paraphrases_are_the_same_where_the_task_is_symmetric() -> None:
    # 0 says that "a" is "b", 1 that "b" is "c": then "c" is no negative of "a", but of "x" it is.
    pairs = AlignedPairs(
        {"en": ["a", "b", "x"], "zh": ["甲", "乙", "丙"]}, {"en": ["b", "c", "y"], "zh": ["乙", "丁", "戊"]}, [1] * 3
    )
    assert {draw_negatives(pairs, symmetric=True, seed=seed)[0, 0] for seed in range(20)} == {2}
    assert {draw_negatives(pairs, seed=seed)[0, 0] for seed in range(40)} == {1, 2}


def test_negatives_follow_the_pairs_in_every_language() -> None:
    pairs = by_hand("en", "th", "ar")
    full = with_negatives(pairs, negatives_per_positive=2, seed=3)
    drawn = draw_negatives(pairs, negatives_per_positive=2, seed=3)
    assert full.labels == [1] * 4 + [0] * 8
    for code in pairs.languages:
        assert full.queries[code] == [*pairs.queries[code], *(q for q in pairs.queries[code] for _ in range(2))]
        assert full.passages[code] == [*pairs.passages[code], *(pairs.passages[code][row] for row in drawn.ravel())]
    assert with_negatives(pairs, negatives_per_positive=0) == pairs
    assert np.array_equal(draw_negatives(pairs, seed=1), draw_negatives(pairs, seed=1))


def test_passages_are_drawn_evenly() -> None:
    drawn = np.concatenate(
        [draw_negatives(numbered(5, "en", "zh"), negatives_per_positive=2, seed=seed) for seed in range(500)]
    )
    counts = Counter(drawn.ravel().tolist())  # also: each seed is its own draw
    assert set(counts) == set(range(5)) and all(abs(count - 1000) < 120 for count in counts.values())


def test_impossible_requests_are_refused_and_none_is_needed_without_positives() -> None:
    with pytest.raises(ValueError, match="cannot draw 4 negatives for each positive: 4 of 4 have fewer passages"):
        draw_negatives(by_hand("en", "zh"), negatives_per_positive=4)
    assert (
        draw_negatives(numbered(3, "en", labels=[0, 0, 0])).shape == draw_negatives(numbered(0, "en")).shape == (0, 1)
    )
