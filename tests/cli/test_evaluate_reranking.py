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


def squad(path: Path, texts: list[str]) -> Path:
    """An article a text, whose paragraph answers one question that repeats its first words."""
    articles = [
        {
            "title": f"article {row}",
            "paragraphs": [
                {
                    "context": text,
                    "qas": [
                        {
                            "id": f"q{row}",
                            "question": f"{text[:8]}?",
                            "answers": [{"text": text[:4], "answer_start": 0}],
                        }
                    ],
                }
            ],
        }
        for row, text in enumerate(texts)
    ]
    path.write_text(json.dumps({"version": "1", "data": articles}), encoding="utf-8")
    return path


def test_question_answering_files(
    saved_cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"xx": [other for other, _ in PAIRS], "en": [english for _, english in PAIRS]}
    specs = [f"{code}={squad(tmp_path / f'{code}.json', texts)}" for code, texts in sides.items()]
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
    folder = tmp_path / "beir"
    folder.mkdir()
    corpus = [{"_id": f"p{row}", "title": "", "text": other} for row, (other, _) in enumerate(PAIRS)]
    asked = [{"_id": f"q{row}", "text": english} for row, (_, english) in enumerate(PAIRS)]
    for name, rows in (("corpus", corpus), ("queries.en", asked)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    qrels = ["query-id\tcorpus-id\tscore", *(f"q{row}\tp{row}\t1" for row in range(6))]
    (folder / "qrels.tsv").write_text("".join(f"{line}\n" for line in qrels), encoding="utf-8")
    assert main(["evaluate", "reranking", str(saved_cross_encoder), "--data", f"zh={folder}", "--samples", "50"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:1] and lines[4:6] == ["6 queries", "2 without relevant"] and lines[-1].startswith("reranking|n:6|")
    assert next(line for line in lines if line.startswith("en")).split()[0] == "en"


def test_bad_input(saved_cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "reranking", str(saved_cross_encoder), "--data", f"en={tmp_path / 'none.json'}"]) == 2
    assert "none.json" in capsys.readouterr().err
