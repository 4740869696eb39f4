"""Test pools: languages drawn for queries and in even shares for candidates, what is counted, what is skipped."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs
from st_xling.data.reranking.pools import AlignedQuestions, candidate_pools, questions_of_pairs
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, numbered

CODES = ("en", "zh", "ar", "th")


def asked(rows: int, *codes: str) -> AlignedQuestions:
    pairs = numbered(rows, *codes)
    return AlignedQuestions(pairs.queries, pairs.passages, [[row] for row in range(rows)])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 9))
def test_candidates_are_split_as_evenly_as_can_be(languages: int, passages: int, seed: int) -> None:
    pools = candidate_pools(asked(passages, *CODES[:languages]), seed=seed)
    assert len(pools) == passages
    for row, pool in enumerate(pools):
        shares = Counter(pool.passage_languages)
        assert all(shares[code] in (passages // languages, -(-passages // languages)) for code in CODES[:languages])
        assert pool.query == f"q{row} {pool.query_language}"
        assert list(pool.passages) == [f"p{number} {code}" for number, code in enumerate(pool.passage_languages)]
        assert [number for number, label in enumerate(pool.labels) if label] == [row]


def test_languages_are_drawn() -> None:
    pools = candidate_pools(asked(400, "en", "zh"), seed=0)
    forms = Counter((pool.query_language, pool.passage_languages[pool.labels.index(1)]) for pool in pools)
    assert len(forms) == 4 and all(60 < count < 140 for count in forms.values())
    odd = [candidate_pools(asked(3, "en", "zh"), seed=seed)[0].passage_languages for seed in range(200)]
    extra = Counter(languages.count("en") for languages in odd)
    assert set(extra) == {1, 2} and min(extra.values()) > 60
    assert pools == candidate_pools(asked(400, "en", "zh"), seed=0) != candidate_pools(asked(400, "en", "zh"), seed=1)


@pytest.mark.parametrize(
    ("options", "facts"),
    [({"query_languages": ["fr"]}, "en, zh: got fr"), ({"max_candidates": 0}, "at least 1: got 0")],
)
def test_what_is_refused(options: dict[str, object], facts: str) -> None:
    """No candidate but the relevant ones made every model perfect."""
    with pytest.raises(ValueError, match=facts):
        candidate_pools(asked(4, "en", "zh"), **options)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=12), st.integers(1, 14), st.integers(0, 5))
def test_a_cap_keeps_the_relevant_ones(relevant: set[int], most: int, seed: int) -> None:
    data = AlignedQuestions({"en": ["q"]}, numbered(12, "en", "zh").passages, [list(relevant)])
    [pool] = pools = candidate_pools(data, max_candidates=most, seed=seed)
    assert len(pool.passages) == min(12, max(most, len(relevant))) and sum(pool.labels) == len(relevant)
    chosen = [int(passage.split()[0][1:]) for passage in pool.passages]
    assert chosen == sorted(chosen) and [row in relevant for row in chosen] == [bool(label) for label in pool.labels]
    shares = Counter(pool.passage_languages)
    assert abs(shares["en"] - shares["zh"]) <= 1
    assert f"|candidates:{most}+relevant|" in pools.signature


def test_queries_with_nothing_to_find_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    queries, passages = {"en": QUERIES["en"]}, {"zh": PASSAGES["zh"], "ar": PASSAGES["ar"]}
    data = AlignedQuestions(queries, passages, [[], [1], [2], [3]], [[0, 1], [3, 1], [], [2]])
    [pool] = pools = candidate_pools(data)
    assert pools.without_relevant == 3 and "3 of 4 queries have no relevant candidate" in caplog.text
    assert pool.query == QUERIES["en"][1] and pool.labels == [0, 1]
    assert pool.passages == [PASSAGES[code][row] for code, row in zip(pool.passage_languages, (3, 1))]
    assert pools.signature == "queries:en|passages:zh,ar-even|candidates:own|seed:0|without_relevant:exclude"


def test_rows_of_one_query_are_its_pool() -> None:
    pairs = AlignedPairs(
        {"en": ["Who?", "who", "Where?", "Who?", "WHO"], "zh": ["谁？", "何人？", "哪里？", "谁", "谁"]},
        {"en": ["he", "she", "here", "HE", "She"], "zh": ["他", "她", "这里", "他。", "她"]},
        [0, 1, 0, 1, 0],
    )
    data = questions_of_pairs(pairs)
    assert data.queries == {"en": ["Who?", "Where?"], "zh": ["谁？", "哪里？"]}
    assert data.passages["zh"] == ["他", "她", "这里"]
    assert (data.relevant, data.candidates) == ([[0, 1], []], [[0, 1], [2]])
    assert questions_of_pairs(numbered(4, "en")).candidates is None, "one passage each: all are candidates"
