"""Retrieval sets, training queries and other text of the phrasebook."""

from __future__ import annotations

import json

import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.retrieval import Passages, load_query_passage_specs, load_retrieval_specs, read_others
from st_xling.evaluation.retrieval.pool import mixed_pool


def test_held_passages_are_as_those_of_a_file(tmp_path) -> None:
    rows = [("a", "Der Hund 🐕 schläft."), ("b", "狗在睡觉。"), ("c", "con chó đang ngủ")]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in rows), encoding="utf-8")
    held, read = Passages.in_memory(rows), Passages(path)
    assert (held.ids, held.sha256, len(held), list(held)) == (read.ids, read.sha256, len(read), list(read))
    assert held[1:3] == read[1:3] and held[0] == read[0] and list(held.records()) == list(read.records()) == rows


def test_specs() -> None:
    sets = load_retrieval_specs(["de=phrasebook?size=4&queries=de,en", "zh=phrasebook?split=dev&size=3&seed=2"])
    assert [found.language for found in sets] == ["de", "zh"]
    assert {code: list(asked) for code, asked in sets[0].queries.items()} == {
        code: [f"test-0-{number}" for number in range(4)] for code in ("de", "en")
    }
    assert list(sets[1].queries) == ["zh"] and sets[1].relevant["dev-2-1"] == {"dev-2-1": 1}
    (chosen,) = load_retrieval_specs(["de=phrasebook?size=2"], split="dev", query_languages=["fr", "en"])
    assert list(chosen.queries) == ["fr", "en"] and list(chosen.passages.ids) == ["dev-0-0", "dev-0-1"]
    (default,) = load_retrieval_specs(["vi=phrasebook"])
    assert len(default.passages) == 300


def test_a_mixed_pool_has_an_equally_relevant_passage_in_each_language() -> None:
    specs = [f"{code}=phrasebook?size=5&queries=de,en" for code in ("de", "en", "fr")]
    pool = mixed_pool(load_retrieval_specs(specs))
    assert len(pool.passages) == 15 and len(pool.queries) == 10
    for query in pool.queries:
        name = query.id.split(":", 1)[1]
        assert query.relevant == {f"{code}:{name}": 1 for code in ("de", "en", "fr")}


def test_sets_of_several_seeds_ask_for_different_things() -> None:
    one, two = load_retrieval_specs(["de=phrasebook?size=3", "en=phrasebook?size=3&seed=1&queries=de"])
    assert len(mixed_pool([one, two]).queries) == 6


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("de=phrasebook:fr", "one language of passages a spec"),
        ("de=phrasebook?corpus=x", "expected the options size, split, seed, queries"),
        ("de=phrasebook?queries=ru", "expected queries=de,en"),
        ("ru=phrasebook", "language must be one of"),
        ("phrasebook:de", "xx=phrasebook"),
    ],
)
def test_malformed(spec: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        load_retrieval_specs([spec])


def test_training_queries() -> None:
    pairs = load_query_passage_specs(["queries=phrasebook?size=6", "de=phrasebook?size=4&seed=5&queries=en,de"])
    assert {name: len(part) for name, part in pairs.items()} == {"en": 6, "de": 8}
    row = pairs["en"][0]
    assert row["source"].endswith("?") and not row["target"].endswith("?")
    assert set(pairs["de"]["source_language"]) == {"de", "en"} and set(pairs["de"]["target_language"]) == {"de"}
    test = load_query_passage_specs(["queries=phrasebook?size=6"], split="test")["en"]
    assert not set(test["source"]) & set(pairs["en"]["source"])
    assert len(load_query_passage_specs(["queries=phrasebook"])["en"]) == 2000


def test_other_text_is_not_that_of_parallel_text() -> None:
    others = read_others("phrasebook?size=200", language="fr")
    assert len(others) == 200 and others["source"][:] == others["target"][:]
    parallel = parallel_phrases("fr", "en", size=4000)["source"][:]
    assert len(set(others["source"]) & set(parallel)) < 10
    assert read_others("phrasebook?size=200&seed=0", language="fr")["source"][:] == parallel[:200]
    with pytest.raises(ValueError, match="expected fr=phrasebook, one language a spec"):
        read_others("phrasebook:de", language="fr")
