"""XPI's mixed-language set: exact proportions, negatives that are none, parallel text."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data import COLUMNS
from st_xling.data.reranking.question_answering import deal
from st_xling.data.reranking.strategies import (
    drop_words,
    even_counts,
    parallel_pools,
    spread,
    xpi_pairs,
    xpi_pairs_from_parallel,
)
from tests.data.reranking.aligned_sentences import PASSAGES, numbered

CODES = ("en", "zh", "ar", "th")


def parallel(first: str, second: str, rows: int | None = None) -> Dataset:
    """The sentences by hand, or as many numbered ones as asked for."""
    sides = [PASSAGES[code] if rows is None else [f"s{row} {code}" for row in range(rows)] for code in (first, second)]
    return Dataset.from_list([dict(zip(COLUMNS, (*row, first, second))) for row in zip(*sides)])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(5, 40), st.integers(0, 2), st.integers(0, 5))
def test_the_proportions_are_exact(languages: int, rows: int, each: int, seed: int) -> None:
    codes = CODES[:languages]
    made = xpi_pairs(numbered(rows, *codes), negatives_per_positive=each, seed=seed)
    size = rows * (1 + each)
    assert len(made) == size and sum(made["label"]) == rows
    forms = Counter(
        tuple(sorted((a, b), key=codes.index)) for a, b in zip(made["query_language"], made["passage_language"])
    )
    mono, crossed = size // 2, list(combinations(codes, 2))
    assert [forms[code, code] for code in codes] == even_counts(mono, languages)
    assert [forms[pair] for pair in crossed] == even_counts(size - mono, len(crossed))
    if languages == 2 and size % 4 == 0:  # the paper's N/4, N/4, N/2
        assert sorted(forms.values()) == [size // 4, size // 4, size // 2]


def test_each_pair_comes_once_and_says_what_its_label_says() -> None:
    made = xpi_pairs(numbered(40, "en", "zh"), negatives_per_positive=1, seed=1)
    assert made[:] == xpi_pairs(numbered(40, "en", "zh"), seed=1)[:] != xpi_pairs(numbered(40, "en", "zh"), seed=2)[:]
    asked = Counter()
    for row in made:
        query, passage = int(row["query"].split()[0][1:]), int(row["passage"].split()[0][1:])
        assert (query == passage) == (row["label"] == 1)
        assert row["query"].endswith(row["query_language"]) and row["passage"].endswith(row["passage_language"])
        asked[query, row["label"]] += 1
    assert set(asked.values()) == {1} and len(asked) == 80


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1), max_size=60), st.integers(1, 7), st.integers(0, 9))
def test_spread_is_exact_and_even_among_the_labels(labels: list[int], parts: int, seed: int) -> None:
    counts = even_counts(len(labels), parts)
    forms = spread(counts, np.array(labels, int), np.random.default_rng(seed))
    assert np.bincount(forms, minlength=parts).tolist() == counts
    for label in (0, 1):
        own = forms[np.array(labels, int) == label]
        assert all(abs((own == form).sum() - len(own) / parts) <= 2 for form in range(parts))


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 500), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_shares_of_articles_add_up(total: int, weights: list[int]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    parts = deal(total, {str(part): share for part, share in enumerate(shares)}, 0)
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


def test_positives_in_one_language_are_the_sentence_or_a_thinner_one() -> None:
    data = {"zh-th": parallel("zh", "th")}
    for kind in ("identical", "word_dropout"):
        for seed in range(4):
            made = xpi_pairs_from_parallel(data, negatives_per_positive=0, mono_positives=kind, seed=seed)
            mono = [row for row in made if row["query_language"] == row["passage_language"]]
            assert len(mono) == 2
            assert all((row["query"] == row["passage"]) == (kind == "identical") for row in mono)
            assert all(len(row["passage"]) <= len(row["query"]) for row in mono)
            assert all(row["query"] in PASSAGES[row["query_language"]] for row in made)


@pytest.mark.parametrize(
    ("data", "options", "facts"),
    [
        ({"x": parallel("en", "en", 3)}, {}, "two known languages, got en and en; say which"),
        ({"x": parallel("und", "en", 3)}, {}, "two known languages, got und and en"),
        ({"zh-en": parallel("zh", "en").to_iterable_dataset()}, {}, "zh-en cannot be streamed"),
        ({}, {}, "at least 1 rows: got 0"),
        ({"zh-en": parallel("zh", "en")}, {"size": 401}, "size=401, 1 or more, rows: got 4"),
        ({"zh-en": parallel("zh", "en", 1)}, {}, "cannot draw 1 negatives"),
        ({"zh-en": parallel("zh", "en")}, {"mono_positives": "same"}, "must be one of .*: got 'same'"),
    ],
)
def test_parallel_text_that_cannot_serve_is_refused(data: object, options: dict[str, object], facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        xpi_pairs_from_parallel(data, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [*(PASSAGES[code][1] for code in PASSAGES), "Él cree que la cafe\u0301"])
def test_whole_words_or_characters_are_dropped(text: str) -> None:
    thin = drop_words(text, np.random.default_rng(0))
    assert thin != text and thin.strip()
    left = iter(text)
    assert all(character in left for character in thin), "what is left stands in its old order"
    assert not any("\u0300" <= character <= "\u036f" for character in thin[:1])
    assert drop_words("Nein", np.random.default_rng(0)) == "Nein"


def test_the_development_set_asks_for_translations_in_the_other_language() -> None:
    data = {"zh-en": parallel("zh", "en", 50), "ar-en": parallel("ar", "en", 8)}
    pools = parallel_pools(data, queries=40, candidates=10, seed=2)
    assert len(pools) == 28 and {pool.query_language for pool in pools} == {"zh", "en", "ar"}
    for pool in pools:
        (language,) = set(pool.passage_languages)
        assert language != pool.query_language and len(pool.passages) == min(10, 50 if "zh" in pool.query_id else 8)
        right = [passage for passage, label in zip(pool.passages, pool.labels) if label]
        assert [text.split()[0] for text in right] == [pool.query.split()[0]]
    assert pools.signature == "translations:zh-en,ar-en|queries:28|candidates:10|seed:2"
    assert pools == parallel_pools(data, queries=40, candidates=10, seed=2)
