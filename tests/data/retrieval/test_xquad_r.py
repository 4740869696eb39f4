"""XQuAD-R: sentences of all languages as candidates; LAReQA's mean average precision over the mixed pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.data.retrieval import load_retrieval_specs, read_xquad_r
from st_xling.evaluation.retrieval import mixed_pool
from st_xling.evaluation.retrieval.measures import Measures
from tests.xquad_r_files import TEXTS, write_xquad_r


def test_sentences_of_every_language_answer_questions_in_any(tmp_path: Path) -> None:
    sets = read_xquad_r({code: write_xquad_r(tmp_path, code) for code in TEXTS})
    assert [(found.language, list(found.passages)) for found in sets] == [(code, TEXTS[code][0]) for code in TEXTS]
    for found in sets:
        assert {code: list(asked.values()) for code, asked in found.queries.items()} == {
            code: TEXTS[code][1] for code in TEXTS
        }
        assert found.relevant == {"q0": {"0/0": 1}, "q1": {"0/2": 1}}
    pool = mixed_pool(sets)
    assert len(pool.queries) == 4 and len(pool.passages) == 6
    assert {query.id: set(query.relevant) for query in pool.queries}["zh:q1"] == {"en:0/2", "zh:0/2"}


def test_map_over_the_mixed_pool_is_the_formula(tmp_path: Path) -> None:
    """AP of a question: mean, over its relevant sentences of all languages, of the precision at their ranks."""
    pytest.importorskip("ir_measures")
    sets = load_retrieval_specs([f"{code}={write_xquad_r(tmp_path, code)}" for code in TEXTS])
    pool = mixed_pool(sets)
    names = pool.passage_ids
    rankings = {
        query.id: [(names[(place * 5 + shift) % 6], 6.0 - place) for place in range(6)]
        for shift, query in enumerate(pool.queries)
    }
    found = Measures(["MAP", "MAP@2"]).per_query(pool.queries, rankings)
    for query in pool.queries:
        hits, total, cut = 0, 0.0, 0.0
        for rank, (name, _) in enumerate(rankings[query.id], 1):
            if name in query.relevant:
                hits += 1
                total += hits / rank
                cut += hits / rank * (rank <= 2)
        assert found["MAP"][query.id] == pytest.approx(total / len(query.relevant), rel=1e-9)
        assert found["MAP@2"][query.id] == pytest.approx(cut / len(query.relevant), rel=1e-9)


def test_specs(tmp_path: Path) -> None:
    specs = [f"{code}={write_xquad_r(tmp_path, code)}" for code in TEXTS]
    sets = load_retrieval_specs([f"{spec}?size=1&seed=1" for spec in specs], query_languages=["zh"])
    assert [list(found.queries) for found in sets] == [["zh"], ["zh"]]
    assert sets[0].queries == sets[1].queries and len(sets[0].queries["zh"]) == 1
    assert len(sets[0].passages) == 3 and sets[0].relevant.keys() == sets[0].queries["zh"].keys()
    for bad, fact in (
        ([specs[0], f"{specs[1]}?size=1"], "same .size"),
        ([specs[0], specs[0]], "once a language"),
        ([f"{specs[0]}?split=dev"], "no other options"),
    ):
        with pytest.raises(ValueError, match=fact):
            load_retrieval_specs(bad)
    with pytest.raises(ValueError, match="expected queries in en, which have a file: got de"):
        load_retrieval_specs(specs[:1], query_languages=["de"])


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"sentence_breaks": None}, r"paragraphs\[0\].sentence_breaks: expected .* got None"),
        ({"sentence_breaks": [[0, 15], [10, 20]]}, r"got \[10, 20\]"),
        ({"sentence_breaks": [[0, 1500]]}, r"got \[0, 1500\]"),
        ({"sentence_breaks": [[5, 15]]}, r"answer_start: expected a place in one of the sentences, got 4"),
    ],
)
def test_faults(tmp_path: Path, changes: dict[str, Any], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        read_xquad_r({"en": write_xquad_r(tmp_path, "en", **changes)})


def test_real_files(real_data: Path) -> None:
    """Candidates by language as LAReQA counts them; a relevant sentence in every language for every question."""
    folder = real_data / "xquad_r"
    sets = read_xquad_r({code: folder / f"{code}.json.gz" for code in ("ar", "en", "zh")})
    assert {found.language: len(found.passages) for found in sets} == {"ar": 1222, "en": 1180, "zh": 1196}
    queries = mixed_pool(sets).queries
    assert len(queries) == 3 * 1190 and all(len(query.relevant) == 3 for query in queries)
