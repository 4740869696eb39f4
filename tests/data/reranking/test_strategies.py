"""Merged, cascade and mixed training data against figure 3 and the counts of section IV-C-2."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import KEY_COLUMNS, PAIR_COLUMNS
from st_xling.data.reranking.strategies import STRATEGIES, cascade, merged, mixed
from tests.data.reranking.aligned_sentences import by_hand, numbered

CODES = ("en", "zh", "ar", "th")


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.lists(st.integers(0, 1), min_size=1, max_size=25), st.integers(0, 5))
def test_mixed_makes_the_rows_of_figure_3(languages: int, labels: list[int], seed: int) -> None:
    codes = CODES[:languages]
    pairs = numbered(len(labels), *codes, labels=labels)
    (stage,) = mixed(pairs, seed=seed)
    seen: dict[int, list[tuple[str, str]]] = {row: [] for row in range(len(labels))}
    for row in stage:
        number = int(row["query"].split()[0][1:])
        assert row["query"] == f"q{number} {row['query_language']}"
        assert row["passage"] == f"p{number} {row['passage_language']}"
        assert row["label"] == labels[number]
        seen[number].append((row["query_language"], row["passage_language"]))
    shown = []
    for number, forms in seen.items():
        assert sorted(query for query, _ in forms) == sorted(codes), number
        assert len({passage for _, passage in forms}) == 1, "the samples of a pair share their passage language"
        shown.append(forms[0][1])
    counts = Counter(shown)
    assert [counts[code] for code in codes] == [
        len(labels) // languages + (place < len(labels) % languages) for place in range(languages)
    ]
    mono = sum(row["query_language"] == row["passage_language"] for row in stage)
    assert mono == len(labels) and len(stage) == languages * len(labels)
    for label in (0, 1):
        own = [language for language, of_row in zip(shown, labels) if of_row == label]
        assert all(abs(own.count(code) - len(own) * counts[code] / len(labels)) <= 2 for code in codes)


def test_merged_holds_every_pair_in_every_language() -> None:
    pairs = by_hand()
    (stage,) = merged(pairs, seed=1)
    assert stage.column_names == [*PAIR_COLUMNS, *KEY_COLUMNS] and stage.features["label"].dtype == "float32"
    wanted = {
        (pairs.queries[code][row], pairs.passages[code][row], 1.0, code, code)
        for code in pairs.languages
        for row in range(4)
    }
    assert {tuple(row[column] for column in PAIR_COLUMNS) for row in stage} == wanted and len(stage) == 20


def test_cascade_has_a_stage_a_language_in_the_order_asked_for() -> None:
    pairs = by_hand("en", "zh", "th")
    assert [set(stage["query_language"]) for stage in cascade(pairs)] == [{"en"}, {"zh"}, {"th"}]
    stages = cascade(pairs, order=["th", "en", "zh"], seed=2)
    for stage, code in zip(stages, ["th", "en", "zh"]):
        assert set(zip(stage["query"], stage["passage"])) == set(zip(pairs.queries[code], pairs.passages[code]))
        assert set(stage["passage_language"]) == {code} and len(stage) == 4
    with pytest.raises(ValueError, match="must name each of en, zh, th: got th, en"):
        cascade(pairs, order=["th", "en"])
    with pytest.raises(ValueError, match="out of en, zh, th: got de"):
        cascade(pairs, order=["de", "th", "en", "zh"])


@pytest.mark.parametrize("name", STRATEGIES)
def test_all_give_as_many_rows_and_each_seed_its_own(name: str) -> None:
    pairs = numbered(31, *CODES[:3], labels=[1, 0, 0] * 10 + [1])
    stages = STRATEGIES[name](pairs, seed=4)
    assert sum(map(len, stages)) == 93
    again, other = STRATEGIES[name](pairs, seed=4), STRATEGIES[name](pairs, seed=5)
    assert [stage[:] for stage in stages] == [stage[:] for stage in again]
    assert [stage[:] for stage in stages] != [stage[:] for stage in other]
