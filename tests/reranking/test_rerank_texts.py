"""Files of queries and passages to ranked passages: the order, first stages, bad input, kills."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import CrossEncoder

from st_xling.cli import main
from st_xling.reranking import rerank_files as module
from st_xling.reranking.rerank_files import rerank_texts
from tests.conftest import PAIRS
from tests.reranking.conftest import LANGUAGES, read, write

NONE = dict.fromkeys(["queries", "passages", "without_candidates", "long_queries", "cut_passages"], 0)


@pytest.fixture(scope="module")
def model(saved_cross_encoder: Path) -> Any:
    return CrossEncoder(str(saved_cross_encoder), device="cpu")


def test_the_order_is_that_of_sentence_transformers(model: Any, queries: Path, passages: Path, tmp_path: Path) -> None:
    report = rerank_texts(model, queries, passages, tmp_path / "out" / "ranked.jsonl")
    rows = read(tmp_path / "out" / "ranked.jsonl")
    texts = [other for other, _ in PAIRS]
    assert len(rows) == report.counts["passages"] == 64 and report.counts["queries"] == 8
    for number, (_, question) in enumerate(PAIRS):
        hits = rows[8 * number : 8 * number + 8]
        expected = model.rank(question, texts)
        assert [hit["passage_id"] for hit in hits] == [f"p{row['corpus_id']}" for row in expected]
        assert [hit["score"] for hit in hits] == pytest.approx([row["score"] for row in expected], abs=1e-5)
        assert [hit["rank"] for hit in hits] == list(range(1, 9))
        assert {hit["query_id"] for hit in hits} == {f"q{number}"}
    named = {row["passage_id"]: (row["language"], row["text"]) for row in rows}
    assert named["p2"] == (LANGUAGES[2], PAIRS[2][0]) and named["p7"] == (None, PAIRS[7][0])
    assert not (tmp_path / "out" / "ranked.jsonl.work").exists()
    parts = report.signature.split("|")
    assert parts[0] == "rerank" and parts[4:6] == ["candidates:all", "top_k:all"]
    assert parts[2].startswith("queries:queries.jsonl@")


def test_a_first_stage(model: Any, queries: Path, passages: Path, tmp_path: Path) -> None:
    run = ["q1 Q0 p3 1 9.5 bm25", "q1 Q0 p0 2 9.1 bm25", "q5 Q0 p5 1 3 bm25", "q1 Q0 p3 3 1 bm25"]
    first = write(tmp_path / "first.trec", run)
    report = rerank_texts(model, queries, passages, tmp_path / "ranked.jsonl", candidates=first)
    ranked = [(row["query_id"], row["passage_id"]) for row in read(tmp_path / "ranked.jsonl")]
    assert sorted(ranked) == [("q1", "p0"), ("q1", "p3"), ("q5", "p5")]
    assert report.counts == {**NONE, "queries": 8, "passages": 3, "without_candidates": 6}
    assert report.lines() == ["6 queries without candidates, skipped"]


def test_tsv_gzip_and_titles(model: Any, tmp_path: Path) -> None:
    tsv = tmp_path / "q.tsv.gz"
    tsv.write_bytes(gzip.compress(b"1\tWho is sleeping?\n2\tWo?\tde\n"))
    beir = write(
        tmp_path / "corpus.jsonl",
        ['{"_id": "a", "title": "Hund", "text": "Er schläft."}', '{"_id": 7, "title": "", "text": "我"}'],
    )
    stream = io.BytesIO()
    rerank_texts(model, tsv, beir, stream, top_k=1)
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row["query_id"] for row in rows] == ["1", "2"] and {row["passage_id"] for row in rows} <= {"a", "7"}
    rerank_texts(model, tsv, beir, tmp_path / "all.jsonl")
    assert {row["text"] for row in read(tmp_path / "all.jsonl")} == {"Hund Er schläft.", "我"}


def test_long_texts_are_counted(model: Any, tmp_path: Path) -> None:
    long = " ".join(english for _, english in PAIRS)
    queries = write(tmp_path / "q.jsonl", [json.dumps({"id": len(text), "text": text}) for text in ("Who?", long)])
    passages = write(tmp_path / "p.jsonl", [json.dumps({"id": 1, "text": long})])
    report = rerank_texts(model, queries, passages, tmp_path / "ranked.jsonl")
    assert report.counts == {**NONE, "queries": 2, "passages": 1, "long_queries": 1, "cut_passages": 1}
    assert report.lines() == ["1 queries too long for the model, skipped", "1 passages cut to the model's length"]


def test_bad_queries(model: Any, passages: Path, tmp_path: Path) -> None:
    lines = ['{"id": "a", "text": "x"}', "{", '{"id": "a", "text": "y"}', '{"text": "z"}', '{"id": 3, "text": " "}']
    bad = write(tmp_path / "bad.jsonl", lines)
    faults = ':2: .*expected JSON.*:3: .*as in line 1.*:4: .*whole number "id".*:5: .*not blank'
    with pytest.raises(ValueError, match=f"(?s){faults}"):
        rerank_texts(model, bad, passages, tmp_path / "ranked.jsonl")


def test_a_header_is_no_query(model: Any, queries: Path, passages: Path, tmp_path: Path) -> None:
    """The header of MS MARCO's queries.tsv was ranked as a query, that of a table of passages as a passage."""
    out = tmp_path / "ranked.jsonl"
    headed = write(tmp_path / "queries.tsv", ["qid\tquery", "q1\tWer schläft?"])
    with pytest.raises(
        ValueError, match=r"queries.tsv:1: .*expected queries, got the header qid, query; .*tail -n \+2"
    ):
        rerank_texts(model, headed, passages, out)
    table = write(tmp_path / "psgs.tsv", ["id\ttext\ttitle", "p1\tDer Hund schläft.\tHund"])
    with pytest.raises(ValueError, match=r"psgs.tsv:1: .*expected passages, got the header id, text, title"):
        rerank_texts(model, queries, table, out)


@pytest.mark.parametrize("score", ["nan", "inf", "high"])
def test_scores_of_a_first_stage_are_numbers(
    score: str, model: Any, queries: Path, passages: Path, tmp_path: Path
) -> None:
    """A run with NaN is of a first stage that failed: its order means nothing, and was taken as it was."""
    first = write(tmp_path / "first", ["q1 Q0 p0 1 2.5 run", f"q1 Q0 p1 2 {score} run"])
    with pytest.raises(ValueError, match=f":2: bad score .expected a finite number, got '{score}'"):
        rerank_texts(model, queries, passages, tmp_path / "ranked.jsonl", candidates=first)


def test_bad_candidates(model: Any, queries: Path, passages: Path, tmp_path: Path) -> None:
    first = write(tmp_path / "first", ["q1 Q0 p99 1 2 run", "q9 Q0 p1 1 2 run", "q1 p1"])
    with pytest.raises(ValueError, match="(?s):1: unknown id .*'p99'.*:2: .*'q9'.*:3: .* got 2 columns"):
        rerank_texts(model, queries, passages, tmp_path / "ranked.jsonl", candidates=first)


def test_bad_input(model: Any, saved_encoder: Path, queries: Path, passages: Path, tmp_path: Path) -> None:
    out = tmp_path / "ranked.jsonl"
    with pytest.raises(ValueError, match="top_k .* got 0"):
        rerank_texts(model, queries, passages, out, top_k=0)
    with pytest.raises(ValueError, match="out must"):
        rerank_texts(model, queries, passages, passages)
    with pytest.raises(ValueError, match="head"):
        rerank_texts(str(saved_encoder), queries, passages, out)
    assert not out.exists()


def test_what_is_done_is_not_done_again(
    model: Any, queries: Path, passages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in its third group of queries; then with other options; then with the same."""
    monkeypatch.setattr(module, "_PAIRS_PER_STEP", 16)
    out = tmp_path / "ranked.jsonl"
    work = tmp_path / "work"
    stream = io.BytesIO()
    rerank_texts(model, queries, passages, stream)
    uninterrupted = [json.loads(line) for line in stream.getvalue().splitlines()]
    rank = module._rank
    groups: list[int] = []

    def stopping(*arguments: Any) -> Any:
        groups.append(arguments[-1].start)
        if len(groups) == 3:
            raise KeyboardInterrupt
        return rank(*arguments)

    monkeypatch.setattr(module, "_rank", stopping)
    with pytest.raises(KeyboardInterrupt):
        rerank_texts(model, queries, passages, out, work=work)
    assert not out.exists()
    with pytest.raises(ValueError, match="top_k was None, is now 3"):
        rerank_texts(model, queries, passages, out, work=work, top_k=3)
    report = rerank_texts(model, queries, passages, out, work=work)
    assert groups == [0, 2, 4, 4, 6] and work.exists()
    assert report.counts == {**NONE, "queries": 8, "passages": 64}
    for row, expected in zip(read(out), uninterrupted, strict=True):
        assert row.pop("score") == pytest.approx(expected.pop("score"), abs=1e-6)
        assert row == expected


def test_the_command(
    saved_cross_encoder: Path, queries: Path, passages: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What a kill leaves is in ``tests/crash``."""
    figures = tmp_path / "figures.json"
    words = ["rerank", str(saved_cross_encoder), "--queries", str(queries), "--passages", str(passages)]
    words += ["--device", "cpu", "--top-k", "3"]
    assert main([*words, "--out", "-", "--json", str(figures)]) == 0
    piped = capfdbinary.readouterr()
    assert len(piped.out.splitlines()) == 24 and b"24 passages for 8 queries: -" in piped.err
    assert piped.err.decode().splitlines()[-1].startswith(f"rerank|model:{saved_cross_encoder}@")
    assert json.loads(figures.read_text(encoding="utf-8"))["rerank"]["passages"] == 24
