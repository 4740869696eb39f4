"""``st-xling train ir…`` and ``st-xling evaluate retrieval``: from files to a retriever, its figures beside BM25's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling.cli import main
from tests.retrieval_files import ENGLISH, OTHERS, json_lines, lines, translated

SHORT = ["--model", "tiny", "--tiny", "hidden_size=16", "--tiny", "layers=1", "--tiny", "vocabulary=300"]
SHORT += ["--max-steps", "3", "--batch-size", "4", "--max-length", "32", "--set", "training.eval_steps=3"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("retrieval")
    json_lines(root / "queries.jsonl", [{"query": q, "passage": p} for q, p in zip(ENGLISH, OTHERS)])
    lines(root / "xx-en.tsv", [f"{other}\t{english}" for other, english in zip(OTHERS, ENGLISH)])
    lines(root / "yy.txt", OTHERS)
    translated(root / "set")
    translated(root / "english", texts=ENGLISH)
    return root


def test_train_then_evaluate(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "retriever"
    sources = ["--data", f"queries={root / 'queries.jsonl'}", "--parallel", f"xx-en={root / 'xx-en.tsv'}"]
    words = ["train", "ir-semacl-langcl", *SHORT, *sources, "--mono", f"yy={root / 'yy.txt'}"]
    dev = ["--dev", f"xx={root / 'set'}"]
    assert main([*words, *dev, "--encoders", "separate", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("3 steps in") and "best development MRR@100" in captured.out
    assert "queries en: 8 pairs" in captured.err and "mono yy:yy.txt: 8 sentences" in captured.err
    figures, runs = tmp_path / "figures.json", tmp_path / "runs"
    sets = ["--data", f"xx={root / 'set'}", "--data", f"en={root / 'english'}"]
    judge = ["evaluate", "retrieval", str(out), *sets, "--pool", "mixed", "--bm25", "--measures", "MRR@10", "R@2"]
    assert main([*judge, "--json", str(figures), "--runs", str(runs), "--device", "cpu"]) == 0
    table = capsys.readouterr().out.splitlines()
    heads = [f"{system}{measure}" for system in ("", "BM25 ") for measure in ("MRR@10", "Recall@2")]
    assert table[0].split() == ["language", *" ".join(heads).split()]
    assert [line.split()[0] for line in table[1:3]] == ["en", "xx"] and table[4].startswith("mean")
    assert table[-1].startswith("retrieval|passages:xx,en|pool:mixed|measures:MRR@10,Recall@2|depth:100|ties:id|")
    assert any("BM25, of equally relevant hits in the query's language: 100.0 %" in line for line in table)
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["retrieval"]["BM25"]["figures"]["en"]["MRR@10"] == 1
    assert set(written["retrieval"]["retriever"]["language_bias"]) >= {"own_share", "own_first", "expected"}
    assert sorted(path.name for path in runs.iterdir()) == [
        "en.BM25.trec", "en.retriever.trec", "xx.BM25.trec", "xx.retriever.trec"
    ]  # fmt: skip
    assert (runs / "en.BM25.trec").read_text(encoding="utf-8").startswith("q0 Q0 en:p0 1 ")


def test_others_of_one_file_name_are_all_read(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "yy.txt").write_text((root / "yy.txt").read_text(encoding="utf-8"), encoding="utf-8")
    data = ["--data", f"queries={root / 'queries.jsonl'}", "--parallel", f"xx-en={root / 'xx-en.tsv'}"]
    others = [word for place in (root, tmp_path / "b") for word in ("--mono", f"yy={place / 'yy.txt'}")]
    assert main(["train", "ir-langcl", *SHORT, *data, *others, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().err
    assert "mono yy:yy.txt: 8 sentences" in told and "mono yy:yy.txt-2: 8 sentences" in told


def test_bm25_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "retrieval", "bm25", "--data", f"xx={root / 'set'}", "--query-languages", "xx"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split() == ["xx", "100.0", "100.0"]
    assert "xx: 8 passages; queries: xx 8" in captured.err
