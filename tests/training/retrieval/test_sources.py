"""Three sources of different sizes as one stream: cycled each, apart in their batches, the same again."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from st_xling.training.retrieval import RetrievalSources, join_sources, load_retrieval_recipe
from tests.training.retrieval.phrases import phrase_sources

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
