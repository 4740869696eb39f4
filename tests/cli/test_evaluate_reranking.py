"""``st-xling evaluate reranking``: SQuAD's form and BEIR's layout; table, matrix, signature, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentence_transformers import CrossEncoder

from st_xling.cli import main
from st_xling.data.reranking.specs import load_pool_specs
from st_xling.evaluation import RerankingEvaluator
from tests.conftest import PAIRS
from tests.data.reranking.aligned_sentences import question, squad
from tests.retrieval_files import beir


def articles(path: Path, texts: list[str]) -> Path:
    """An article a text, whose paragraph answers one question that repeats its first words."""
    asked = [[question(f"q{row}", f"{text[:8]}?", text[:4])] for row, text in enumerate(texts)]
    return squad(path, [(f"article {row}", [(text, asked[row])]) for row, text in enumerate(texts)])


def test_question_answering_files(
    saved_cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"xx": [other for other, _ in PAIRS], "en": [english for _, english in PAIRS]}
    specs = [f"{code}={articles(tmp_path / f'{code}.json', texts)}" for code, texts in sides.items()]
    figures = tmp_path / "figures.json"
    words = ["evaluate", "reranking", str(saved_cross_encoder), *(word for spec in specs for word in ("--data", spec))]
    assert main([*words, "--seed", "3", "--name", "toy", "--device", "cpu", "--json", str(figures)]) == 0
    captured = capsys.readouterr()
    evaluator = RerankingEvaluator(load_pool_specs(specs, seed=3), name="toy")
    report = evaluator.report(CrossEncoder(str(saved_cross_encoder), device="cpu"))
    assert captured.out == f"{report.table()}\n{evaluator.signature}\n"
    assert "|data:toy@" in evaluator.signature and "seed:3" in evaluator.signature
    assert "acc@1 by language of query (down) and passages (across)" in captured.out
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps({"reranking": report.as_dict(), "signature": evaluator.signature}))
    assert written["reranking"]["counts"]["n_queries"] == 8 and "scoring" in captured.err


def test_a_retrieval_folder(saved_cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages = {f"p{row}": other for row, (other, _) in enumerate(PAIRS)}
    queries = {f"q{row}": english for row, (_, english) in enumerate(PAIRS)}
    folder = beir(tmp_path / "beir", passages, {"en": queries}, [(f"q{row}", f"p{row}", 1) for row in range(6)])
    assert main(["evaluate", "reranking", str(saved_cross_encoder), "--data", f"zh={folder}", "--samples", "50"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:1] and lines[4:6] == ["6 queries", "2 without relevant"] and lines[-1].startswith("reranking|n:6|")
    assert next(line for line in lines if line.startswith("en")).split()[0] == "en"
