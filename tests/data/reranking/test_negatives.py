"""Negatives against the rule in plain loops; speed, and requests that cannot be met."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs, draw_apart, draw_negatives, same_text_classes, with_negatives
from st_xling.data.text_columns import leak_key
from tests.data.reranking.aligned_sentences import by_hand, numbered
from tests.data.reranking.test_pairs import WORDS, alike


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


def test_hard_negatives_come_from_the_group_as_far_as_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    groups, rows = np.array([0, 0, 0, 0, 1, 1, 2]), np.arange(7)
    own = np.stack([rows, rows], 1)
    drawn = draw_apart(rows, own, 7, each=3, hard=2, groups=groups, own_groups=groups, seed=0)
    near = [sum(groups[row] == groups[positive] for row in rows) for positive, rows in enumerate(drawn.tolist())]
    assert all(count >= 2 for count in near[:4]) and near[4:] == [1, 1, 0]
    assert all(len({positive, *rows}) == 4 for positive, rows in enumerate(drawn.tolist()))
    assert "3 of 7 positives have fewer than 2 hard negatives" in caplog.text


def test_impossible_requests_are_refused_and_none_is_needed_without_positives() -> None:
    with pytest.raises(ValueError, match="cannot draw 4 negatives for each positive: 4 of 4 have fewer passages"):
        draw_negatives(by_hand("en", "zh"), negatives_per_positive=4)
    with pytest.raises(ValueError, match="must be 0 or more: got -1"):
        draw_negatives(by_hand("en", "zh"), negatives_per_positive=-1)
    assert (
        draw_negatives(numbered(3, "en", labels=[0, 0, 0])).shape == draw_negatives(numbered(0, "en")).shape == (0, 1)
    )
