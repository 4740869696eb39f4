"""Three sources of different sizes as one stream: cycled each, apart in their batches, the same again."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from st_xling.training.retriever import RetrievalSources, join_sources, load_retrieval_recipe
from st_xling.training.retriever.sources import batch_rows
from tests.training.retriever.phrases import phrase_sources

IR = load_retrieval_recipe("ir", overrides={"training.batch_size": 8})
RECIPE = load_retrieval_recipe("ir-semacl-langcl", overrides={"training.batch_size": 16})


def test_each_source_is_cycled() -> None:
    sources = phrase_sources(queries=48, parallel=64, others=40)
    stream = join_sources(sources, RECIPE)
    assert list(stream.features) == [
        "query", "passage", "semantic_source", "semantic_target", "language_source", "language_target", "other"
    ]  # fmt: skip
    rows = list(itertools.islice(stream, 16 * 60))
    asked = dict(zip(sources.queries["en"]["source"][:], sources.queries["en"]["target"][:]))
    assert {row["query"]: row["passage"] for row in rows} == asked
    aligned = {pair for part in sources.parallel.values() for pair in zip(part["source"][:], part["target"][:])}
    assert {(row["semantic_source"], row["semantic_target"]) for row in rows} == aligned
    assert {(row["language_source"], row["language_target"]) for row in rows} == aligned
    assert {row["other"] for row in rows} == set(sources.others["fr"]["source"][:])
    times = Counter(row["query"] for row in rows)
    assert max(times.values()) - min(times.values()) <= 8  # 20 each, but for what does not fill the last batch
    assert rows == list(itertools.islice(join_sources(sources, RECIPE), 16 * 60))


def test_batches_mix_languages_and_hold_no_text_twice() -> None:
    rows = list(itertools.islice(join_sources(phrase_sources(), RECIPE), 16 * 20))
    mixed = 0
    for start in range(0, len(rows), 16):
        batch = rows[start : start + 16]
        for name in ("passage", "semantic_source", "other"):
            assert len({row[name] for row in batch}) == 16
        mixed += len({row["semantic_source"].isascii() or "ß" in row["semantic_source"] for row in batch}) > 1
    assert mixed > 10
    assert [row["semantic_source"] for row in rows] != [row["language_source"] for row in rows]


def test_without_others_and_without_contrast() -> None:
    sources = phrase_sources(others=0)
    assert "other" not in join_sources(sources, RECIPE).features
    plain = phrase_sources(parallel=0, others=0)
    assert list(join_sources(plain, load_retrieval_recipe("ir")).features) == ["query", "passage"]


def test_sources_that_do_not_fit_the_recipe() -> None:
    everything = phrase_sources()
    for sources, name, message in (
        (phrase_sources(parallel=0, others=0), "ir-semacl", "learns from parallel text too"),
        (phrase_sources(others=0), "ir", "has no use for parallel text"),
        (everything, "ir-semacl", "has no use for other text"),
        (RetrievalSources({}), "ir", "at least one data set"),
        (RetrievalSources({"en": everything.queries["en"].select([])}), "ir", "'en' is empty"),
        (RetrievalSources({"en": everything.queries["en"].select_columns(["source"])}), "ir", "lacks target"),
    ):
        with pytest.raises(ValueError, match=message):
            sources.check(load_retrieval_recipe(name))
    few = RetrievalSources({"en": everything.queries["en"].select(range(8))})
    with pytest.raises(ValueError, match="too few distinct texts for a batch of 48"):
        next(iter(join_sources(few, load_retrieval_recipe("ir"))))


def with_negatives(sources: RetrievalSources, count: int = 2) -> RetrievalSources:
    """Passages of other queries, none of which is asked for, as negatives."""
    asked = sources.queries["en"]
    for number in range(1, count + 1):
        asked = asked.add_column(f"negative_{number}", [f"{number}: {text}" for text in asked["target"]])
    return RetrievalSources({"en": asked}, sources.parallel, sources.others)


def test_hard_negatives_stay_with_their_query() -> None:
    sources = with_negatives(phrase_sources())
    stream = join_sources(sources, RECIPE)
    assert list(stream.features)[:4] == ["query", "passage", "negative_1", "negative_2"]
    for row in itertools.islice(stream, 16 * 10):
        assert (row["negative_1"], row["negative_2"]) == (f"1: {row['passage']}", f"2: {row['passage']}")
    assert sources.manifest()["queries:en"]["sha8"] != phrase_sources().manifest()["queries:en"]["sha8"]


def test_a_negative_is_no_other_rows_passage() -> None:
    """In a batch it would count as wrong what is right."""
    asked = phrase_sources(queries=48).queries["en"]
    texts = asked["target"][:]
    asked = asked.add_column("negative_1", [*texts[1:], texts[0]])
    rows = list(itertools.islice(join_sources(RetrievalSources({"en": asked}), IR), 8 * 12))
    for start in range(0, len(rows), 8):
        batch = rows[start : start + 8]
        assert len({text for row in batch for text in (row["passage"], row["negative_1"])}) == 16


@pytest.mark.parametrize("parallel", [4, 24])
def test_parallel_batches_of_their_own_size(parallel: int) -> None:
    changes = {"training.batch_size": 16, "retrieval.parallel_batch_size": parallel}
    recipe = load_retrieval_recipe("ir-semacl-langcl", overrides=changes)
    size = batch_rows(recipe)
    rows = list(itertools.islice(join_sources(phrase_sources(), recipe), size * 6))
    assert size == max(16, parallel)
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        for name in rows[0]:
            found = [row[name] for row in batch if row[name] is not None]
            assert len(found) == (16 if name in ("query", "passage") else parallel)
            assert name not in ("passage", "semantic_source", "other") or len(set(found)) == len(found)


def test_unequal_numbers_of_negatives() -> None:
    one, two = (with_negatives(phrase_sources(), count).queries["en"] for count in (1, 2))
    with pytest.raises(ValueError, match="got en 1, fi 2"):
        RetrievalSources({"en": one, "fi": two}).check(IR)
