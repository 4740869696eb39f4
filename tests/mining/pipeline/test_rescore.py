"""Mined pairs scored again by a cross-encoder: its order, its threshold, the margins beside, and going on."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import SearchOptions, mine_texts, score_texts
from st_xling.mining.pipeline import rescore as module
from st_xling.models.cross_encoders import tiny_cross_encoder
from st_xling.models.pair_filter import PairFilter
from st_xling.models.pair_scorer import PairScorer
from tests.mining.pipeline.test_text_mining import OFF, read_cells, write

TEXTS = mining_phrases("de", "en", split="test", size=80, gold=40)


@pytest.fixture(scope="module")
def reranker() -> Any:
    texts = [*TEXTS.source, *TEXTS.target]
    model = tiny_cross_encoder(texts, vocabulary=500, hidden_size=32, layers=1, max_length=64)
    model[-1].linear.weight.data.mul_(20)  # scores that differ
    return model


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "a.de", TEXTS.source), write(tmp_path / "a.en", TEXTS.target)


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scores_by_pair(path: Path) -> dict[tuple[str, ...], float]:
    """Score of each pair by its ids and texts."""
    return {tuple(row[1:5]): float(row[0]) for row in read_cells(path, "margin")}


def test_order_threshold_and_rejects(model, reranker, files, tmp_path):
    plain = mine_texts(*files, tmp_path / "plain", model=model, filters=OFF)
    report = mine_texts(*files, tmp_path / "again", model=model, filters=OFF, rescore=reranker)
    rows = read_cells(tmp_path / "again", "margin")
    scores = [float(row[0]) for row in rows]
    assert np.allclose(scores, reranker.predict([tuple(row[3:5]) for row in rows]), atol=1e-6)
    assert scores == sorted(scores, reverse=True) and len(set(scores)) > 10
    # Every pair has its margin as well.
    assert {tuple(row[3:5]): row[5] for row in rows} == {
        tuple(row[3:5]): row[0] for row in read_cells(tmp_path / "plain")
    }
    assert report.pairs == plain.pairs and report.rejected == {} and "|rescore:" in report.signature

    options = {"rescore": reranker, "rescore_threshold": scores[9], "rejects": tmp_path / "rejects"}
    report = mine_texts(*files, tmp_path / "some.jsonl", model=model, filters=OFF, **options)
    best = read_records(tmp_path / "some.jsonl")
    removed = read_records(tmp_path / "rejects")
    assert [(row["score"], row["margin"]) for row in best] == [(float(row[0]), float(row[5])) for row in rows[:10]]
    assert list(best[0]) == ["score", "source_ids", "target_ids", "source", "target", "margin", "threshold"]
    assert [(reject["reason"], reject["value"], reject["score"], reject["source"]) for reject in removed] == [
        ("rescore", float(row[0]), float(row[5]), row[3]) for row in rows[10:]
    ]
    assert report.rejected == {"rescore": len(rows) - 10} and f"|rescore_threshold:{scores[9]:g}|" in report.signature
    assert f"rejected: {len(removed)} rescore" in report.lines()


def test_resumes_after_an_interruption(model, reranker, files, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PAIRS_PER_STEP", 16)
    mine_texts(*files, tmp_path / "whole", model=model, filters=OFF, rescore=reranker)
    score = PairScorer.score
    calls: list[int] = []

    def counted(self: PairScorer, pairs: Any, **options: Any) -> np.ndarray:
        calls.append(len(pairs))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(self, pairs, **options)

    monkeypatch.setattr(PairScorer, "score", counted)
    with pytest.raises(KeyboardInterrupt):
        mine_texts(*files, tmp_path / "pairs", model=model, filters=OFF, rescore=reranker)
    assert not (tmp_path / "pairs").exists()
    mine_texts(*files, tmp_path / "pairs", model=model, filters=OFF, rescore=reranker)
    uninterrupted = scores_by_pair(tmp_path / "whole")
    assert scores_by_pair(tmp_path / "pairs") == pytest.approx(uninterrupted, abs=1e-6)
    assert sum(calls) == len(uninterrupted) + 16  # the chunk that was interrupted, twice; those before it, once


@pytest.mark.parametrize("damage", [slice(-40), slice(0), slice(1, None)])
def test_damaged_scores_are_computed_again(damage, model, reranker, files, tmp_path, caplog):
    """A work folder whose last file the disk had lost half of ended in an EOFError that named no file."""
    options = {"model": model, "filters": OFF, "rescore": reranker, "work": tmp_path / "work"}
    mine_texts(*files, tmp_path / "pairs", **options)
    pairs = (tmp_path / "pairs").read_bytes()
    (part,) = (tmp_path / "work").glob("rescored-*.npy")
    part.write_bytes(part.read_bytes()[damage])
    mine_texts(*files, tmp_path / "pairs", **options)
    assert (tmp_path / "pairs").read_bytes() == pairs and f"{part} is damaged" in caplog.text


def test_scores_in_another_type_of_numbers_are_not_taken_for_these(model, reranker, files, tmp_path):
    """A work folder keeps the scores of a model in float32 and of the same in bfloat16 apart."""
    scores = []
    for cross_encoder in (reranker, deepcopy(reranker).bfloat16()):
        mine_texts(*files, tmp_path / "pairs", model=model, filters=OFF, rescore=cross_encoder, work=tmp_path / "work")
        rows = read_cells(tmp_path / "pairs", "margin")
        scores.append({tuple(row[3:5]): float(row[0]) for row in rows})
    assert scores[0] != scores[1] == pytest.approx(scores[0], abs=0.05)


def test_an_encoder_is_no_reranker(model, files, tmp_path):
    """Said before anything is embedded."""
    model.save_pretrained(str(tmp_path / "encoder"))
    with pytest.raises(ValueError, match="expected a cross-encoder .*/encoder'"):
        mine_texts(*files, tmp_path / "pairs", model=model, rescore=str(tmp_path / "encoder"))
    assert not list(tmp_path.glob("pairs*"))


def test_a_source_that_fills_the_model_is_left_out_and_counted(model, reranker, files, tmp_path):
    lines = files[0].read_text(encoding="utf-8").splitlines()
    long = " ".join(lines[:30])
    files[0].write_text("".join(f"{line}\n" for line in [*lines, long]), encoding="utf-8")
    every_source = SearchOptions(retrieval="forward")
    report = mine_texts(*files, tmp_path / "pairs", model=model, search=every_source, filters=OFF, rescore=reranker)
    assert report.rejected == {"too_long": 1}
    assert long not in {row[3] for row in read_cells(tmp_path / "pairs", "margin")}


def test_a_filter_brings_its_threshold(model, reranker, files, tmp_path, caplog):
    """Of a filter that `train filter` saved, in its folder: users had to know the number; 0 keeps all pairs."""
    folder = tmp_path / "filter"
    reranker.save_pretrained(str(folder))
    plain = mine_texts(*files, tmp_path / "all", model=model, filters=OFF, rescore=str(folder))
    assert "rescore_threshold" not in plain.signature
    middle = sorted(float(row[0]) for row in read_cells(tmp_path / "all", "margin"))[plain.pairs // 2]
    facts = PairFilter(threshold=middle, precision=0.9, recall=0.8, f1=0.85, scale=1.0, offset=0.0, pairs=400)
    (folder / "results.json").write_text(json.dumps({"training": {"filter": facts.as_dict()}}), encoding="utf-8")

    report = mine_texts(*files, tmp_path / "some", model=model, filters=OFF, rescore=str(folder))
    assert 0 < report.pairs == plain.pairs - report.rejected["rescore"] < plain.pairs
    assert f"|rescore_threshold:{middle:g}|" in report.signature
    whole = mine_texts(*files, tmp_path / "whole", model=model, filters=OFF, rescore=str(folder), rescore_threshold=0)
    assert whole.pairs == plain.pairs


def test_scored_pairs_are_rescored_and_rejected(model, reranker, tmp_path):
    """Of a corpus: the cross-encoder's score and the margin of each kept pair, in their order, and why others went."""
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text("".join(f"{s}\t{t}\n" for s, t in zip(TEXTS.source, TEXTS.target)), encoding="utf-8")
    options = {"model": model, "search": SearchOptions(k=2)}
    plain = score_texts(corpus, tmp_path / "plain", **options)
    margins = {row[1]: row[0] for row in read_cells(tmp_path / "plain")}
    report = score_texts(corpus, tmp_path / "again", rescore=reranker, **options)
    rows = read_cells(tmp_path / "again", "margin")
    scores = [float(row[0]) for row in rows]
    assert np.allclose(scores, reranker.predict([tuple(row[3:5]) for row in rows]), atol=1e-6)
    assert {row[1]: row[5] for row in rows} == margins and report.kept == plain.kept == len(TEXTS.source)

    middle = sorted(scores)[len(scores) // 2]
    report = score_texts(
        corpus, tmp_path / "some", rescore=reranker, rescore_threshold=middle, rejects=tmp_path / "rejects", **options
    )
    assert [row[1] for row in read_cells(tmp_path / "some", "margin")] == [
        row[1] for row, score in zip(rows, scores) if score >= middle
    ]
    removed = read_records(tmp_path / "rejects")
    assert {row["reason"] for row in removed} == {"rescore"} and all(row["value"] < middle for row in removed)
    assert report.rejected == {"rescore": len(removed)} and report.kept + len(removed) == report.pairs
    with pytest.raises(ValueError, match="rescore_threshold needs rescore"):
        score_texts(corpus, tmp_path / "none", rescore_threshold=0.5, **options)
