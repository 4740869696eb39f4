"""Test pools: the toss, the even halves, what is counted, what is shared."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs
from st_xling.data.reranking.pools import CandidatePool, candidate_pools, pools_of_pairs
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, by_hand, numbered

CODES = ("en", "zh", "ar", "th")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 9))
def test_candidates_are_split_as_evenly_as_can_be(languages: int, passages: int, seed: int) -> None:
    pairs = numbered(passages, *CODES[:languages])
    pools = candidate_pools(pairs.queries, pairs.passages, [[row] for row in range(passages)], seed=seed)
    assert len(pools) == passages
    for row, pool in enumerate(pools):
        shares = Counter(pool.passage_languages)
        assert all(shares[code] in (passages // languages, -(-passages // languages)) for code in CODES[:languages])
        assert pool.query == f"q{row} {pool.query_language}" and pool.query_id == str(row)
        assert list(pool.passages) == [f"p{number} {code}" for number, code in enumerate(pool.passage_languages)]
        assert pool.passage_ids == tuple(map(str, range(passages)))
        assert [number for number, label in enumerate(pool.labels) if label] == [row]


def test_query_and_relevant_passage_have_their_languages_by_chance() -> None:
    pairs = numbered(400, "en", "zh")
    pools = candidate_pools(pairs.queries, pairs.passages, [[row] for row in range(400)], seed=0)
    tossed = Counter((pool.query_language, pool.passage_languages[pool.labels.index(1)]) for pool in pools)
    assert len(tossed) == 4 and all(60 < count < 140 for count in tossed.values())
    odd = numbered(3, "en", "zh")
    extra = Counter(
        Counter(candidate_pools(odd.queries, odd.passages, [[0]] * 3, seed=seed)[0].passage_languages)["en"]
        for seed in range(200)
    )
    assert set(extra) == {1, 2} and min(extra.values()) > 60


def test_a_seed_gives_one_set_of_pools_which_share_their_strings() -> None:
    pairs = by_hand()
    relevant = [[0], [1], [2], [3]]
    pools = candidate_pools(pairs.queries, pairs.passages, relevant, seed=7)
    assert pools == candidate_pools(pairs.queries, pairs.passages, relevant, seed=7)
    assert pools != candidate_pools(pairs.queries, pairs.passages, relevant, seed=8)
    for pool in pools:
        for text, code, identity in zip(pool.passages, pool.passage_languages, pool.passage_ids):
            assert text is pairs.passages[code][int(identity)]
    alone = candidate_pools(pairs.queries, {"th": PASSAGES["th"]}, relevant)
    assert alone[0].passages is alone[1].passages and set(alone[0].passage_languages) == {"th"}


def test_passages_may_be_in_other_languages_than_queries() -> None:
    pools = candidate_pools(
        {"en": QUERIES["en"]}, {"zh": PASSAGES["zh"], "ar": PASSAGES["ar"]}, [[0, 2], [1], [2], [3]]
    )
    assert pools.signature == "queries:en|passages:zh,ar-even|candidates:all|seed:0|without_relevant:exclude"
    assert pools[0].labels == (1, 0, 1, 0) and {pool.query_language for pool in pools} == {"en"}


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 11), max_size=12), st.integers(1, 14), st.integers(0, 5))
def test_a_cap_keeps_the_relevant_ones(relevant: set[int], most: int, seed: int) -> None:
    pairs = numbered(12, "en", "zh")
    pools = candidate_pools(
        {"en": ["q"]}, pairs.passages, [relevant], max_candidates=most, without_relevant="keep", seed=seed
    )
    pool = pools[0]
    assert len(pool.passages) == min(12, max(most, len(relevant))) and sum(pool.labels) == len(relevant)
    chosen = [int(identity) for identity in pool.passage_ids]
    assert chosen == sorted(chosen) and [row in relevant for row in chosen] == [bool(label) for label in pool.labels]
    shares = Counter(pool.passage_languages)
    assert abs(shares["en"] - shares["zh"]) <= 1
    assert f"|candidates:{most}+relevant|" in pools.signature


def test_what_a_cap_leaves_out_is_drawn_for_each_query() -> None:
    pairs = numbered(50, "en", "zh")
    pools = candidate_pools(pairs.queries, pairs.passages, [[row] for row in range(50)], max_candidates=5, seed=0)
    met = Counter(identity for pool in pools for identity in pool.passage_ids)
    assert len(met) == 50 and all(1 <= count <= 15 for count in met.values())


@pytest.mark.parametrize(("policy", "kept"), [("exclude", ["1"]), ("keep", ["0", "1", "2", "3"])])
def test_queries_with_nothing_to_find_are_counted(
    policy: str, kept: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    pairs = by_hand("en", "zh")
    pools = candidate_pools(
        pairs.queries,
        pairs.passages,
        [[], [1], [2], [3]],
        candidates=[[0, 1], [3, 1], [], [2]],
        without_relevant=policy,  # type: ignore[arg-type]
    )
    assert (pools.without_candidates, pools.without_relevant) == (1, 2)
    assert [pool.query_id for pool in pools] == kept
    assert "1 of 4 queries have no candidates, 2 no relevant one (rows 0, 2, 3)" in caplog.text
    asked = next(pool for pool in pools if pool.query_id == "1")
    assert asked.passage_ids == ("3", "1") and asked.labels == (0, 1)
    assert pools.signature.endswith(f"candidates:own|seed:0|without_relevant:{policy}")


def test_queries_with_nothing_to_find_can_be_an_error() -> None:
    pairs = by_hand("en", "zh")
    with pytest.raises(ValueError, match=re.escape("0 of 4 queries have no candidates, 2 no relevant one (rows 1, 3)")):
        candidate_pools(pairs.queries, pairs.passages, [[0], [], [2], []], without_relevant="error")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relevant": [[0]]}, "relevant must have 4 entries, one for each text: got 1"),
        ({"relevant": [[0], [4], [], []]}, "query 1: passages must be different numbers from 0 to 3: got 4"),
        ({"candidates": [[0, 0], [1], [2], [3]]}, "query 0: passages must be different numbers"),
        ({"candidates": [[0]]}, "candidates must have 4 entries"),
        ({"query_ids": ["a"]}, "query_ids must have 4 entries"),
        ({"passage_ids": ["a"]}, "passage_ids must have 4 entries"),
        ({"queries": {"en": ["a"], "zh": ["b", "c"]}}, "the same in every language, row by row: got 1 in en, 2 in zh"),
        ({"passages": {}}, "passages must be the same in every language, row by row: got no language"),
        ({"max_candidates": 0}, "max_candidates must be 1 or more: got 0"),
        ({"without_relevant": "drop"}, "without_relevant must be one of"),
    ],
)
def test_what_is_not_aligned_is_refused(change: dict[str, object], message: str) -> None:
    pairs = by_hand("en", "zh")
    given = {"queries": pairs.queries, "passages": pairs.passages, "relevant": [[0], [1], [2], [3]], **change}
    with pytest.raises(ValueError, match=message):
        candidate_pools(**given)  # type: ignore[arg-type]


def test_a_pool_checks_itself() -> None:
    assert CandidatePool("q", "en", ["a", "b"], ["en", "zh"], [0, 1]).passage_ids == ("0", "1")
    with pytest.raises(ValueError, match="each of 2 passages, got 1, 2 and 2"):
        CandidatePool("q", "en", ["a", "b"], ["en"], [0, 1])
    with pytest.raises(ValueError, match="query 'x': labels must be 0 or 1: got"):
        CandidatePool("q", "en", ["a"], ["en"], [2], "x")


def test_rows_of_one_query_are_its_pool() -> None:
    pairs = AlignedPairs(
        {"en": ["Who?", "who", "Where?", "Who?"], "zh": ["谁？", "何人？", "哪里？", "谁"]},
        {"en": ["he", "she", "here", "HE"], "zh": ["他", "她", "这里", "他。"]},
        [0, 1, 0, 1],
    )
    pools = pools_of_pairs(pairs, without_relevant="keep")
    assert [(pool.passage_ids, pool.labels) for pool in pools] == [(("0", "1"), (1, 1)), (("2",), (0,))]
    assert (pools.without_candidates, pools.without_relevant) == (0, 1)
    every = pools_of_pairs(pairs, candidates="all", query_languages=["zh"], passage_languages=["en"])
    assert [(pool.query, pool.passages, pool.labels) for pool in every] == [("谁？", ("he", "she", "here"), (1, 1, 0))]
    with pytest.raises(ValueError, match="must be 'own' or 'all': got 'some'"):
        pools_of_pairs(pairs, candidates="some")  # type: ignore[arg-type]
