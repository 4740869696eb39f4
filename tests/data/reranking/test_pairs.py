"""Aligned pairs, which rows mean the same, and negatives against the rule in plain loops."""

from collections import Counter

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs, same_text_classes, with_negatives
from st_xling.data.text_cells import leak_key
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, numbered

WORDS = st.sampled_from(
    ["Katze", "KATZE!", "猫", "แมว", "قطة", "кот", "gatto", "chat", "neko", "macska", "кішка", "pisică"]
)


def alike(columns: list[list[str]], first: int, second: int) -> bool:
    """Whether two rows have the same key in some language, or are joined by a third row."""
    keys = [[leak_key(text) for text in column] for column in columns]
    reached = {first}
    waiting = [first]
    while waiting:
        row = waiting.pop()
        for other in range(len(keys[0])):
            if other not in reached and any(column[row] == column[other] for column in keys):
                reached.add(other)
                waiting.append(other)
    return second in reached


@pytest.mark.parametrize(
    ("queries", "passages", "labels", "facts"),
    [
        ({"zh": QUERIES["zh"][:3]}, {"zh": PASSAGES["zh"]}, [1] * 4, "zh has 3 texts for 4 labels"),
        ({"en": QUERIES["en"]}, {"zh": PASSAGES["zh"]}, [1] * 4, "same languages"),
        ({}, {}, [], "same languages"),
        *(
            ({"en": ["q"] * 3}, {"en": ["p"] * 3}, [1, label, 0], f"0 or 1: got {label!r}")
            for label in (2, 0.5, None, "1")
        ),
    ],
)
def test_faults(queries: object, passages: object, labels: object, facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        AlignedPairs(queries, passages, labels)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=7, max_size=7), min_size=1, max_size=3))
def test_classes_are_the_rows_that_texts_join(columns: list[list[str]]) -> None:
    classes = same_text_classes(columns)
    assert list(dict.fromkeys(classes.tolist())) == list(range(classes.max() + 1)), "in the order of their first rows"
    for first in range(7):
        for second in range(7):
            assert (classes[first] == classes[second]) == alike(columns, first, second)


def is_negative(pairs: AlignedPairs, positive: int, row: int) -> bool:
    """The rule, as the docstring has it: no passage that is relevant to the query, in any language, nor the query."""
    queries = list(pairs.queries.values())
    passages = list(pairs.passages.values())
    for other in range(len(pairs)):
        if pairs.labels[other] and alike(queries, positive, other) and alike(passages, other, row):
            return False
    for code in pairs.languages:
        for query_row in range(len(pairs)):
            for passage_row in range(len(pairs)):
                same = leak_key(pairs.queries[code][query_row]) == leak_key(pairs.passages[code][passage_row])
                if same and alike(queries, positive, query_row) and alike(passages, passage_row, row):
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
def test_exactly_what_the_rule_allows_is_drawn(pairs: AlignedPairs, seed: int, count: int) -> None:
    positives = [row for row, label in enumerate(pairs.labels) if label]
    passages = list(zip(*pairs.passages.values()))
    classes = same_text_classes(pairs.passages.values())
    allowed = [
        {classes[row] for row in range(len(pairs)) if is_negative(pairs, positive, row)} for positive in positives
    ]
    if any(len(row_allowed) < count for row_allowed in allowed):
        with pytest.raises(ValueError, match=f"cannot draw {count} negatives"):
            with_negatives(pairs, negatives_per_positive=count, seed=seed)
        return
    full = with_negatives(pairs, negatives_per_positive=count, seed=seed)
    assert full.select(range(len(pairs))) == pairs and full.labels[len(pairs) :] == [0] * count * len(positives)
    drawn = list(zip(*full.passages.values()))[len(pairs) :]
    for index, (positive, row_allowed) in enumerate(zip(positives, allowed)):
        rows = range(len(pairs) + index * count, len(pairs) + (index + 1) * count)
        assert all(full.queries[code][row] == pairs.queries[code][positive] for row in rows for code in ("de", "it"))
        row_drawn = {classes[passages.index(passage)] for passage in drawn[index * count : (index + 1) * count]}
        assert len(row_drawn) == count and row_drawn <= row_allowed


def test_passages_are_drawn_evenly() -> None:
    counts: Counter[str] = Counter()
    for seed in range(500):  # each seed is its own draw
        drawn = with_negatives(numbered(5, "en", "zh"), negatives_per_positive=2, seed=seed)
        counts.update(drawn.passages["zh"][5:])
    assert len(counts) == 5 and all(abs(count - 1000) < 120 for count in counts.values())


def test_columns_of_data_sets_and_arrays_will_do() -> None:
    columns = Dataset.from_dict({"en": QUERIES["en"], "zh": QUERIES["zh"]})
    queries = {code: columns[code] for code in ("en", "zh")}
    passages = {code: tuple(PASSAGES[code]) for code in ("en", "zh")}
    pairs = AlignedPairs(queries, passages, np.array([1.0, 0.0, 1.0, 0.0]))
    assert pairs.labels == [1, 0, 1, 0] and pairs.queries["zh"] == QUERIES["zh"]
    assert pairs.select(np.array([3, 0])).passages["en"] == [PASSAGES["en"][3], PASSAGES["en"][0]]


def test_a_seed_draws_the_same_again() -> None:
    pairs = numbered(30, "en", "zh")
    first, again, other = [with_negatives(pairs, seed=seed) for seed in (3, 3, 4)]
    assert first == again != other


def test_without_positives_nothing_is_drawn() -> None:
    for pairs in (numbered(3, "en", labels=[0, 0, 0]), numbered(0, "en")):
        assert with_negatives(pairs) == pairs
