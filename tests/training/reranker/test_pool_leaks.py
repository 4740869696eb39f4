"""A run of a cross-encoder looks for its pools' queries and relevant passages in what it learns from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from st_xling.data import LeakError
from st_xling.data.reranking.pools import CandidatePool, pool_texts
from st_xling.data.reranking.strategies import merged
from st_xling.evaluation import RerankingEvaluator
from st_xling.training.reranker.pool_leaks import check_pool_leaks
from st_xling.training.reranker.recipe_files import load_cross_encoder_recipe
from st_xling.training.reranker.stages import Stage, plan_stages
from tests.training.reranker.ranking_run import aligned, run, sentences, xpi_rows

GERMAN, ENGLISH = sentences()


def judge() -> RerankingEvaluator:
    """A query of the training pairs in other spelling, and one that is new; an answer of theirs, and a new one."""
    pools = [
        CandidatePool(GERMAN[3].upper(), "de", ["Not there at all.", ENGLISH[5]], ["en", "en"], [1, 0]),
        CandidatePool("Ganz neu?", "de", [ENGLISH[7], "Not there at all."], ["en", "en"], [1, 0]),
    ]
    return RerankingEvaluator(pools, name="dev", write_csv=False)


def plan(**options: Any) -> list[Stage]:
    recipe = load_cross_encoder_recipe("xpr-merged", tiny=True, xpi="xpi" in options)
    return plan_stages(recipe, merged(aligned()), **options)


def test_queries_and_relevant_passages_once_each() -> None:
    pool = CandidatePool("Wer?", "de", ["He.", "There.", "He."], ["en"] * 3, [1, 0, 1])
    assert pool_texts([pool, pool]) == {"queries": ["Wer?"], "relevant passages": ["He."]}
    assert pool_texts([CandidatePool("Wer?", "de", ["There."], ["en"], [0])]) == {"queries": ["Wer?"]}
    assert pool_texts([]) == {}


def test_what_is_found_is_told_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    same, report = check_pool_leaks(plan(evaluator=judge(), xpi=xpi_rows()), {"later": [ENGLISH[0]]})
    assert report is not None and [stage.name for stage in same] == ["xpi", "xpr-merged"]
    found = {name: (side["text"].leaked, side["text"].rows) for name, side in report.sets.items()}
    assert found == {"xpr-merged dev queries": (1, 2), "xpr-merged dev relevant passages": (1, 2), "later": (1, 1)}
    assert report.sets["xpr-merged dev queries"]["text"].train == {"xpi": 1, "xpr-merged": 1}
    assert "xpr-merged dev queries" in capsys.readouterr().err


def test_leaks_are_dropped_from_every_stage() -> None:
    before = plan(evaluator=judge(), xpi=xpi_rows(), xpi_evaluator=judge())
    after, report = check_pool_leaks(before, on_leak="drop")
    assert report is not None and report.dropped
    gone = {GERMAN[3], ENGLISH[7]}
    for old, new in zip(before, after):
        assert new.pairs.column_names == old.pairs.column_names
        assert new.pairs.to_list() == [row for row in old.pairs if not gone & {row["query"], row["passage"]}]
        assert len(new.pairs) < len(old.pairs)


def test_nothing_to_compare_with() -> None:
    stages, report = check_pool_leaks(plan())
    assert report is None and len(stages) == 1
    with pytest.raises(ValueError, match="needs evaluation data to check against: got none"):
        check_pool_leaks(plan(), on_leak="fail")


def test_a_run_keeps_the_figures_or_stops(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(LeakError, match="training data must not hold evaluation text"):
        run(out, judged=False, evaluation={"later": [GERMAN[0]]}, on_leak="fail")
    assert not out.exists()
    run(out, judged=False, evaluation={"later": [GERMAN[0], "Neu."]}, on_leak="drop", training__max_steps=1)
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    assert leak["dropped"] and leak["sets"]["later"]["text"]["leaked"] == 1
