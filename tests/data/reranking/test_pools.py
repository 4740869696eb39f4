"""Test pools: languages drawn for queries and in even shares for candidates, what is counted, what is shared."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.reranking.pairs import AlignedPairs
from st_xling.data.reranking.pools import candidate_pools, pools_of_pairs, read_retrieval
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, by_hand, numbered
from tests.retrieval_files import beir, lines

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
    forms = Counter((pool.query_language, pool.passage_languages[pool.labels.index(1)]) for pool in pools)
    assert len(forms) == 4 and all(60 < count < 140 for count in forms.values())
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
    alone = candidate_pools(pairs.queries, pairs.passages, relevant, passage_languages=["th"])
    assert alone[0].passages is alone[1].passages and set(alone[0].passage_languages) == {"th"}
    other = candidate_pools({"en": QUERIES["en"]}, {code: PASSAGES[code] for code in ("zh", "ar")}, relevant)
    assert other.signature == "queries:en|passages:zh,ar-even|candidates:all|seed:0|without_relevant:exclude"


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


@pytest.mark.parametrize(("policy", "ids"), [("exclude", ["1"]), ("keep", ["0", "1", "2", "3"]), ("error", [])])
def test_queries_with_nothing_to_find(policy: str, ids: list[str], caplog: pytest.LogCaptureFixture) -> None:
    pairs = by_hand("en", "zh")
    own = [[0, 1], [3, 1], [], [2]]
    counts = "1 of 4 queries have no candidates, 2 no relevant one (rows 0, 2, 3)"

    def pools() -> object:
        relevant = [[], [1], [2], [3]]
        return candidate_pools(pairs.queries, pairs.passages, relevant, candidates=own, without_relevant=policy)

    if policy == "error":
        with pytest.raises(ValueError, match=re.escape(counts)):
            pools()
        return
    made = pools()
    assert (made.without_candidates, made.without_relevant) == (1, 2) and counts in caplog.text
    assert [pool.query_id for pool in made] == ids
    answered = next(pool for pool in made if pool.query_id == "1")
    assert answered.passage_ids == ("3", "1") and answered.labels == (0, 1)
    assert made.signature.endswith(f"candidates:own|seed:0|without_relevant:{policy}")


def test_a_language_that_is_not_there() -> None:
    pairs = by_hand("en", "zh")
    with pytest.raises(ValueError, match="en, zh: got fr"):
        candidate_pools(pairs.queries, pairs.passages, [[0], [1], [2], [3]], query_languages=["fr"])


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thai passages; questions in Arabic and French, of which one has no relevant passage."""
    queries = {"ar": QUERIES["ar"], "fr": QUERIES["fr"][:2]}
    qrels = [("q0", "p0", 1), ("q0", "p3", 2), ("q1", "p1", 1), ("q1", "p2", 0), ("q2", "p2", 1)]
    return beir(
        tmp_path,
        {f"p{row}": text for row, text in enumerate(PASSAGES["th"])},
        {code: {f"q{row}": text for row, text in enumerate(column)} for code, column in queries.items()},
        qrels,
    )


def test_each_query_of_a_retrieval_set_makes_a_pool_in_each_language(folder: Path) -> None:
    pools = read_retrieval(folder, language="th")
    assert [(pool.query_id, pool.query_language) for pool in pools] == [
        ("q0", "ar"), ("q1", "ar"), ("q2", "ar"), ("q0", "fr"), ("q1", "fr"),
    ]  # fmt: skip
    assert pools[0].labels == (1, 0, 0, 1) and pools[4].labels == (0, 1, 0, 0)
    assert pools[0].passages == tuple(PASSAGES["th"]) and pools[0].passages is pools[1].passages
    assert pools[3].query == QUERIES["fr"][0] and set(pools[3].passage_languages) == {"th"}
    assert (pools.without_candidates, pools.without_relevant) == (0, 1)
    assert pools.signature == "queries:ar,fr|passages:th|candidates:all|seed:0|without_relevant:exclude"
    assert len(read_retrieval(folder, language="th", query_languages=["ar"], without_relevant="keep")) == 4
    capped = read_retrieval(folder, language="th", max_candidates=2, seed=4)
    assert [sum(pool.labels) for pool in capped] == [2, 1, 1, 2, 1] and {len(pool.passages) for pool in capped} == {2}
    lines(folder / "qrels.tsv", ["q0\tp0\t1", "q0\tp9\t1", "q0 p0 1"])
    with pytest.raises(ValueError, match=r"qrels.tsv:2: unknown passage \(p9 .*\n.*:3: wrong columns"):
        read_retrieval(folder, language="th")
