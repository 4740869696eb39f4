"""Retrieval sets in BEIR's layout as pools; MLQA itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from st_xling.data.reranking.pools import read_retrieval
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thai passages; questions in Arabic and French, of which one has no relevant passage."""

    def texts(prefix: str, column: list[str]) -> str:
        return "".join(json.dumps({"_id": f"{prefix}{row}", "text": text}) + "\n" for row, text in enumerate(column))

    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(texts("p", PASSAGES["th"]).encode()))
    (tmp_path / "queries.ar.jsonl").write_text(texts("q", QUERIES["ar"]))
    (tmp_path / "queries.fr.jsonl.gz").write_bytes(gzip.compress(texts("q", QUERIES["fr"][:2]).encode()))
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\tp0\t1\nq0\tp3\t2\nq1\tp1\t1\nq1\tp2\t0\nq2\tp2\t1\n"
    )
    return tmp_path


def test_each_query_in_each_language_makes_a_pool(folder: Path) -> None:
    pools = read_retrieval(folder, language="th")
    assert [(pool.query_id, pool.query_language) for pool in pools] == [
        ("q0", "ar"), ("q1", "ar"), ("q2", "ar"), ("q0", "fr"), ("q1", "fr"),
    ]  # fmt: skip
    assert pools[0].labels == (1, 0, 0, 1) and pools[4].labels == (0, 1, 0, 0)
    assert pools[0].passages == tuple(PASSAGES["th"]) and pools[0].passages is pools[1].passages
    assert pools[3].query == QUERIES["fr"][0] and set(pools[3].passage_languages) == {"th"}
    assert (pools.without_candidates, pools.without_relevant) == (0, 1)
    assert pools.signature == "queries:ar,fr|passages:th|candidates:all|seed:0|without_relevant:exclude"
    assert len(read_retrieval(folder, language="th", query_languages=["ar"], without_relevant="keep")) == 4
    with pytest.raises(ValueError, match="1 no relevant one"):
        read_retrieval(folder, language="th", without_relevant="error")


def test_a_cap_keeps_the_relevant_ones_and_says_so(folder: Path) -> None:
    pools = read_retrieval(folder, language="th", max_candidates=2, seed=4)
    assert [sum(pool.labels) for pool in pools] == [2, 1, 1, 2, 1] and {len(pool.passages) for pool in pools} == {2}
    assert "|candidates:2+relevant|seed:4|" in pools.signature


def test_faulty_files_are_told_line_by_line(folder: Path) -> None:
    (folder / "qrels.tsv").write_text("q0\tp0\t1\nq0\tp9\t1\nq0 p0 1\n")
    with pytest.raises(
        ValueError, match=r"qrels.tsv:2: unknown passage \(p9 is not in the corpus\)\n.*:3: wrong columns"
    ):
        read_retrieval(folder, language="th")
    (folder / "queries.ar.jsonl").write_text(
        '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n{"_id": "b", "text": " "}\n{\n'
    )
    (folder / "qrels.tsv").write_text("a\tp0\t1\n")
    with pytest.raises(ValueError, match=r":2: id twice \(a, with .*\n.*:3: no id or text \(.*\n.*:4: bad JSON"):
        read_retrieval(folder, language="th", query_languages=["ar"])
    with pytest.raises(ValueError, match="queries in ar, fr: asked for de"):
        read_retrieval(folder, language="th", query_languages=["de"])
    (folder / "qrels.tsv").unlink()
    with pytest.raises(FileNotFoundError, match="qrels.tsv"):
        read_retrieval(folder, language="th")
    with pytest.raises(FileNotFoundError, match="expected a folder .*none is none"):
        read_retrieval(folder / "none", language="th")


def test_mlqa_as_it_lies(real_data: Path) -> None:
    folder = real_data / "retrieval" / "mlqa-dev-zh"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    pools = read_retrieval(folder, language="zh", query_languages=["en", "zh"])
    assert len(pools) == 1008 and all(len(pool.passages) == 443 and sum(pool.labels) == 1 for pool in pools)
    capped = read_retrieval(folder, language="zh", query_languages=["en"], max_candidates=50, seed=1)
    assert all(len(pool.passages) == 50 and sum(pool.labels) == 1 for pool in capped)
