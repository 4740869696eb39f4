"""Two-stage search: exact neighbors in one direction, then the cross-encoder's order, languages, bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling.cli import main
from st_xling.mining import EmbeddingStore, encode, find_neighbors
from st_xling.mining.search import exact as nearest_module
from st_xling.mining.search.exact import nearest_rows
from st_xling.reranking.search_files import search_texts
from tests.conftest import PAIRS
from tests.reranking.conftest import LANGUAGES, write

QUERIES = ["I met her yesterday.", "买书"]


@pytest.fixture
def store(saved_encoder: Path, passages: Path, tmp_path: Path) -> Path:
    return Path(encode(str(saved_encoder), passages, tmp_path / "p.store", format="jsonl").path)


def test_nearest_rows_are_those_of_a_full_search(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    queries, rows = generator.normal(size=(40, 12)), generator.normal(size=(900, 12)).astype(np.float32)
    rows[[5, 500, 899]] = rows[100]  # ties, within and across blocks
    queries[3] = rows[100]
    expected = find_neighbors(queries, rows, k=20)[0]
    for blocks in ((40, 900), (16, 64)):
        monkeypatch.setattr(nearest_module, "block_sizes", lambda *_, blocks=blocks, **__: blocks)
        found = nearest_rows(queries, rows, k=20)
        assert np.array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)
    assert found.indices[3, :4].tolist() == [5, 100, 500, 899]
    one = nearest_rows(queries[:1], rows, k=900)
    assert sorted(one.indices[0].tolist()) == list(range(900)), "more neighbors than queries"
    with pytest.raises(ValueError, match="got k=901 for 900"):
        nearest_rows(queries, rows, k=901)


def test_cosines_alone(saved_encoder: Path, store: Path, passages: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = search_texts(QUERIES, str(saved_encoder), store, passages)
    model = SentenceTransformer(str(saved_encoder), device="cpu")
    passage_texts = [passage for passage, _ in PAIRS]
    cosines = model.similarity(model.encode(QUERIES), model.encode(passage_texts)).numpy()
    for hits, row in zip(results, cosines):
        assert [hit.passage_id for hit in hits] == [f"p{number}" for number in np.argsort(-row)]
        assert [hit.cosine for hit in hits] == pytest.approx(sorted(row, reverse=True), abs=1e-5)
        assert all(hit.score == hit.cosine for hit in hits) and [hit.rank for hit in hits] == list(range(1, 9))
    assert not caplog.messages
    search_texts([f"{QUERIES[0]} " * 99], str(saved_encoder), store, passages)
    assert "1 of 1 sentences are longer" in caplog.text
    np.save(store.with_suffix(".npy"), EmbeddingStore.open(store)[:])
    assert search_texts(QUERIES, str(saved_encoder), store.with_suffix(".npy"), passages) == results
    for hits in results:
        for hit in hits:  # languages are those of the file, or identified
            number = int(hit.passage_id[1:])
            assert hit.identified == (number == 7) and hit.language == LANGUAGES[number]


def test_then_the_cross_encoder(saved_encoder: Path, saved_cross_encoder: Path, store: Path, passages: Path) -> None:
    model = CrossEncoder(str(saved_cross_encoder), device="cpu")
    first = search_texts(QUERIES, str(saved_encoder), store, passages, top_k=4)
    results = search_texts(QUERIES, str(saved_encoder), store, passages, reranker=model, candidates=4, top_k=3)
    for query, hits, candidates in zip(QUERIES, results, first):
        expected = model.rank(query, [hit.text for hit in candidates], top_k=3)
        assert [hit.passage_id for hit in hits] == [candidates[row["corpus_id"]].passage_id for row in expected]
        assert [hit.score for hit in hits] == pytest.approx([row["score"] for row in expected], abs=1e-5)
        cosines = {hit.passage_id: hit.cosine for hit in candidates}
        assert all(hit.cosine == cosines[hit.passage_id] for hit in hits)


def test_bad_input(saved_encoder: Path, make_model: Any, store: Path, passages: Path, tmp_path: Path) -> None:
    arguments: Any = (str(saved_encoder), store, passages)
    with pytest.raises(ValueError, match="candidates .* top_k: got 5 and 10"):
        search_texts(QUERIES, *arguments, reranker="x", candidates=5)
    with pytest.raises(ValueError, match="blank"):
        search_texts(["Who?", " "], *arguments)
    with pytest.raises(
        ValueError, match="the queries must be encoded by the model of the store: got .* but .*p.store is of"
    ):
        search_texts(QUERIES, make_model(seed=7), store, passages)
    other = write(tmp_path / "other.jsonl", passages.read_text(encoding="utf-8").replace("Hund", "Kater").splitlines())
    with pytest.raises(ValueError, match="the text is not"):
        search_texts(QUERIES, str(saved_encoder), store, other)


def test_the_command(
    saved_encoder: Path, saved_cross_encoder: Path, store: Path, passages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["search", *QUERIES, "--model", str(saved_encoder), "--store", str(store), "--passages", str(passages)]
    words += ["--reranker", str(saved_cross_encoder), "--top-k", "2", "--device", "cpu"]
    assert main([*words, "--json", "-"]) == 0
    captured = capsys.readouterr()
    results = json.loads(captured.out)["search"]
    printed = captured.err.splitlines()[-1]
    assert [(result["query"], len(result["hits"])) for result in results] == [(query, 2) for query in QUERIES]
    assert main([*words, "--max-candidates", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == QUERIES[0] and lines[3] == QUERIES[1] and len(lines) == 6
    hit, first = results[0]["hits"][0], lines[1].split()
    assert first[0] == "1" and first[2].rstrip("?") == hit["language"] and first[3] == hit["passage_id"]
    assert printed == lines[-1]
