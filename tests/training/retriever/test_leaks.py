"""A retriever's sources are looked through for the queries that judge the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentence_transformers.base.evaluation import SequentialEvaluator

from st_xling.data import load_evaluation_specs
from st_xling.data.leak import LeakError
from st_xling.data.retrieval import load_retrieval_specs
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.training.retriever.leaks import check_query_leaks
from st_xling.training.retriever.sources import RetrievalSources
from tests.retrieval_files import ENGLISH, translated
from tests.training.retriever.phrases import phrase_sources


@pytest.fixture
def judge(tmp_path: Path) -> RetrievalEvaluator:
    translated(tmp_path / "set", texts=ENGLISH)
    return RetrievalEvaluator(load_retrieval_specs([f"en={tmp_path / 'set'}"]), name="dev", write_csv=False)


def leaking(judge: RetrievalEvaluator) -> tuple[RetrievalSources, list[str]]:
    """Sources of which the first rows of the queries, and one of the others, are what judges."""
    asked = list(judge.sets[0].queries["en"].values())[:2]
    sources = phrase_sources(queries=20, parallel=20, others=10)

    def put(part: Any, texts: list[str]) -> Any:
        return part.map(lambda row, at: {"source": texts[at].upper()} if at < len(texts) else {}, with_indices=True)

    return RetrievalSources(
        {name: put(part, asked) for name, part in sources.queries.items()},
        sources.parallel,
        {name: put(part, asked[:1]) for name, part in sources.others.items()},
    ), asked


def test_nothing_shared_leaves_the_sources_alone(judge: RetrievalEvaluator) -> None:
    sources = phrase_sources(queries=20, parallel=20, others=10)
    kept, report = check_query_leaks(sources, judge)
    assert kept is sources and report is not None and not report.leaking
    assert report.sets["dev en, queries en"]["text"].rows == len(judge.sets[0].queries["en"])


def test_found_dropped_and_refused(judge: RetrievalEvaluator) -> None:
    sources, asked = leaking(judge)
    kept, report = check_query_leaks(sources, judge)
    assert kept is sources and report is not None
    assert report.sets["dev en, queries en"]["text"].leaked == 2
    kept, report = check_query_leaks(sources, judge, on_leak="drop")
    assert report is not None and report.dropped
    assert len(kept.queries["en"]) == 18 and len(kept.others["fr"]) == 9
    assert {name: len(part) for name, part in kept.parallel.items()} == {
        name: len(part) for name, part in sources.parallel.items()
    }
    assert not {text.upper() for text in asked} & set(kept.queries["en"]["source"][:])
    with pytest.raises(LeakError):
        check_query_leaks(sources, judge, on_leak="fail")


def test_an_evaluator_in_a_sequence_is_seen(judge: RetrievalEvaluator) -> None:
    sources, _ = leaking(judge)
    _, report = check_query_leaks(sources, SequentialEvaluator([judge]))
    assert report is not None and report.sets["dev en, queries en"]["text"].leaked == 2


def test_later_test_text_by_spec(judge: RetrievalEvaluator, tmp_path: Path) -> None:
    sources, _ = leaking(judge)
    texts = load_evaluation_specs([f"en={tmp_path / 'set'}"])
    assert list(texts) == ["en, queries en", "en, queries xx"]
    _, report = check_query_leaks(sources, evaluation=texts)
    assert report is not None and report.sets["en, queries en"]["text"].leaked == 2
    assert check_query_leaks(sources) == (sources, None)
