"""Merged, cascade, mixed and XPI training data against figure 3 and the counts of the paper."""

from collections import Counter

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data import COLUMNS
from st_xling.data.reranking.pairs import PAIR_COLUMNS
from st_xling.data.reranking.specs import deal
from st_xling.data.reranking.strategies import (
    STRATEGIES,
    cascade,
    merged,
    mixed,
    parallel_pools,
    xpi_pairs_from_parallel,
)
from tests.data.reranking.aligned_sentences import PASSAGES, by_hand, numbered

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


def test_merged_and_cascade_show_every_pair_in_every_language() -> None:
    pairs = by_hand("en", "zh", "th")
    (stage,) = merged(pairs, seed=1)
    assert stage.column_names == [*PAIR_COLUMNS] and stage.features["label"].dtype == "float32"
    expected = [{(pairs.queries[code][row], pairs.passages[code][row], 1.0, code, code) for row in range(4)}
              for code in pairs.languages]  # fmt: skip
    rows_of_stages = [
        {tuple(row[column] for column in PAIR_COLUMNS) for row in stage_rows} for stage_rows in (stage, *cascade(pairs))
    ]
    assert rows_of_stages == [set().union(*expected), *expected] and len(stage) == 12


@pytest.mark.parametrize("name", STRATEGIES)
def test_all_give_as_many_rows_and_each_seed_its_own(name: str) -> None:
    pairs = numbered(31, *CODES[:3], labels=[1, 0, 0] * 10 + [1])
    one, again, other = ([stage[:] for stage in STRATEGIES[name](pairs, seed=seed)] for seed in (4, 4, 5))
    assert sum(len(stage["query"]) for stage in one) == 93
    assert one == again != other


def parallel(first: str, second: str, rows: int | None = None) -> Dataset:
    """The sentences by hand, or as many numbered ones as asked for."""
    sides = [PASSAGES[code] if rows is None else [f"s{row} {code}" for row in range(rows)] for code in (first, second)]
    return Dataset.from_list([dict(zip(COLUMNS, (*row, first, second))) for row in zip(*sides)])


@settings(max_examples=30, deadline=None)
@given(st.integers(5, 40), st.integers(0, 2), st.integers(0, 5))
def test_the_papers_proportions(rows: int, negatives: int, seed: int) -> None:
    made = xpi_pairs_from_parallel({"zh-en": parallel("zh", "en", rows)}, negatives_per_positive=negatives, seed=seed)
    size = rows * (1 + negatives)
    counts = Counter[tuple[str, float]]()
    forms = Counter(frozenset(pair) for pair in zip(made["query_language"], made["passage_language"]))
    assert len(made) == size and forms[frozenset(["zh", "en"])] == size - size // 2
    assert sorted([forms[frozenset(["zh"])], forms[frozenset(["en"])]]) == sorted([size // 2 - size // 4, size // 4])
    for row in made:
        query = row["query"].split()
        passage = row["passage"].split()
        assert (query[0] == passage[0]) == (row["label"] == 1)
        assert (query[1], passage[1]) == (row["query_language"], row["passage_language"])
        counts[query[0], row["label"]] += 1
        if row["label"] and row["query_language"] == row["passage_language"]:
            assert row["query"] == row["passage"], "a row of parallel text has one sentence of a language"
    assert set(counts.values()) <= {1, negatives} and sum(made["label"]) == rows


def test_each_seed_has_its_own_pairs() -> None:
    data = {"zh-en": parallel("zh", "en", 20)}
    first, again, other = [xpi_pairs_from_parallel(data, seed=seed)[:] for seed in (1, 1, 2)]
    assert first == again != other


def test_rows_that_share_a_text_are_no_negatives() -> None:
    """0 and 1 share their Chinese, 1 and 2 their English: a negative of them is row 3 alone."""
    texts = [("甲", "a"), ("甲。", "b"), ("乙", "B"), ("丙", "c")]
    data = Dataset.from_list([dict(zip(COLUMNS, (*row, "zh", "en"))) for row in texts])
    for seed in range(10):
        made = xpi_pairs_from_parallel({"zh-en": data}, seed=seed)
        negatives = [{row["query"], row["passage"]} for row in made if not row["label"]]
        assert len(negatives) == 4 and all(texts & {"丙", "c"} for texts in negatives)


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 500), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_shares_of_articles_add_up(total: int, weights: list[int]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    parts = deal(total, {str(part): share for part, share in enumerate(shares)})
    assert sorted(np.concatenate(list(parts.values()))) == list(range(total))
    counts = list(map(len, parts.values()))
    assert sum(counts) == total and min(counts) >= 1
    if min(total * share for share in shares) >= 1:
        assert all(abs(count - total * share) < 1 for count, share in zip(counts, shares))


def test_parallel_text_of_several_pairs_keeps_the_proportions_of_each() -> None:
    data = {"zh-en": parallel("zh", "en", 40), "ar-zh": parallel("ar", "zh", 20), "en-zh": parallel("en", "zh", 40)}
    made = xpi_pairs_from_parallel(data, seed=1)
    forms = Counter(frozenset(pair) for pair in zip(made["query_language"], made["passage_language"]))
    # 80 rows of zh and en, whichever came first, make 160 pairs; 20 of ar and zh make 40.
    assert forms == {
        frozenset(["zh", "en"]): 80, frozenset(["en"]): 40, frozenset(["zh"]): 40 + 10,
        frozenset(["ar", "zh"]): 20, frozenset(["ar"]): 10,
    }  # fmt: skip
    for row in made:
        assert (row["query"].split()[0] == row["passage"].split()[0]) == (row["label"] == 1)
    assert sum(made["label"]) == 100


@pytest.mark.parametrize(
    ("data", "options", "facts"),
    [
        ({"x": parallel("en", "en", 3)}, {}, "two known languages, got en and en; say which"),
        ({"zh-en": parallel("zh", "en")}, {"size": 401}, "size=401 .*got 4"),
        ({"zh-en": parallel("zh", "en", 1)}, {}, "cannot draw 1 negatives"),
    ],
)
def test_parallel_text_that_cannot_serve_is_refused(data: object, options: dict[str, object], facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        xpi_pairs_from_parallel(data, **options)  # type: ignore[arg-type]


def test_the_development_set_asks_for_translations_in_the_other_language() -> None:
    data = {"zh-en": parallel("zh", "en", 50), "ar-en": parallel("ar", "en", 8)}
    pools = parallel_pools(data, queries=40, candidates=10, seed=2)
    assert len(pools) == 28 and {pool.query_language for pool in pools} == {"zh", "en", "ar"}
    for pool in pools:
        (language,) = set(pool.passage_languages)
        assert language != pool.query_language and len(pool.passages) in (10, 8)
        right = [passage for passage, label in zip(pool.passages, pool.labels) if label]
        assert [text.split()[0] for text in right] == [pool.query.split()[0]]
    assert pools.signature == "translations:zh-en,ar-en|queries:28|candidates:10|seed:2"
    assert pools == parallel_pools(data, queries=40, candidates=10, seed=2)
