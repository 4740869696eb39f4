"""A threshold from the model's ``mining.json``: taken where it fits, told, kept for the work begun with it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import FilterOptions, PublishedThreshold, encode, mine_texts, publish_thresholds
from tests.mining.pipeline.test_mine_texts import read, stop_before_the_pairs, write

TEXTS = mining_phrases("de", "en", split="test", size=150, gold=60)
GERMAN = FilterOptions(source_language="de", target_language="en", disable=["all"])


def published(threshold: float, **changes: Any) -> PublishedThreshold:
    metrics: dict[str, Any] = {"precision": 0.75, "recall": 0.5, "f1": 0.6, "margin": "ratio", "k": 4}
    metrics["retrieval"] = "max"
    return PublishedThreshold(**{**metrics, "signature": "bucc|x", "threshold": threshold, **changes})


@pytest.fixture
def asked(make_model: Callable[..., Any], tmp_path: Path) -> dict[str, Any]:
    """A model of its own for each test, in which to publish, and what to mine with it."""
    make_model().save_pretrained(str(tmp_path / "my-encoder"))
    sides = write(tmp_path / "news.de", TEXTS.source), write(tmp_path / "news.en", TEXTS.target)
    model = str(tmp_path / "my-encoder")
    return {"source": sides[0], "target": sides[1], "out": tmp_path / "o.tsv", "model": model, "filters": GERMAN}


@pytest.fixture
def middle(asked: dict[str, Any]) -> float:
    """A score that some pairs reach and others do not."""
    scores = sorted(row[0] for row in (mine_texts(**asked), read(asked["out"]))[1])
    return scores[len(scores) // 2]


def test_it_is_taken_told_and_signed(asked: dict[str, Any], middle: float, logged: Any, tmp_path: Path) -> None:
    """By those who ask for it: a number, or a calibration, comes before it."""
    publish_thresholds(asked["model"], {"de-en": published(middle), "fr-en": published(9.0)})
    everything = mine_texts(**asked)
    assert everything.threshold is None and everything.published is None and "|threshold:none|" in everything.signature
    assert mine_texts(**{**asked, "out": tmp_path / "by-hand.tsv"}, threshold=middle).published is None
    for how in ("auto", "published"):
        report = mine_texts(**asked, threshold=how, progress=True)
        assert asked["out"].read_bytes() == (tmp_path / "by-hand.tsv").read_bytes()
        assert 0 < report.pairs < 120 and report.threshold == middle
        assert f"|threshold:{middle:.6g} published|" in report.signature
        told = f"threshold {middle:.4f} of {asked['model']} for de-en; it yielded precision 0.750, recall 0.5"
        assert told in logged() and any(line.startswith(told) for line in report.lines())
        figures = json.loads(json.dumps(report.as_dict()))["published"]
        assert figures["pair"] == "de-en" and figures["published"]["signature"] == "bucc|x"
    known = write(tmp_path / "known.tsv", [f"{text}!\t{text}!" for text in TEXTS.source[:40]])
    assert mine_texts(**asked, threshold="auto", calibrate_with=known).published is None


def test_the_other_way_round(asked: dict[str, Any], middle: float, caplog: pytest.LogCaptureFixture) -> None:
    asked |= {"source": asked["target"], "target": asked["source"], "threshold": "auto"}
    asked["filters"] = replace(GERMAN, source_language="en", target_language="de")
    publish_thresholds(asked["model"], {"de-en": published(middle, retrieval="forward")})
    assert mine_texts(**asked, retrieval="forward").threshold is None
    assert "that of de-en is for retrieval forward, not backward; all pairs are kept" in caplog.text
    taken = mine_texts(**asked, retrieval="backward").published
    assert taken is not None and taken.pair == "de-en"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"k": 3, "margin": "distance"}, "margin ratio, not distance, k 4, not 3"),
        ({"prompt": "query: "}, "prompt none, not query: "),
    ],
)
def test_for_another_way_to_mine_it_means_nothing(
    option: dict[str, Any], words: str, asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    publish_thresholds(asked["model"], {"de-en": published(99.0)})
    with caplog.at_level(logging.WARNING):
        report = mine_texts(**asked, **option, threshold="auto")
    assert report.threshold is None and report.pairs > 40
    told = f"no threshold of {asked['model']} is taken: that of de-en is for {words}; all pairs are kept"
    assert [record.getMessage() for record in caplog.records if "threshold" in record.getMessage()] == [told]
    with pytest.raises(ValueError, match=rf"threshold 'published' .*{words}"):
        mine_texts(**asked, **option, threshold="published")


def test_where_there_is_none(asked: dict[str, Any], logged: Any) -> None:
    auto = {**asked, "threshold": "auto", "progress": True}
    assert mine_texts(**auto).threshold is None
    assert f"no threshold of {asked['model']} is taken: it has none; all pairs are kept" in logged()
    with pytest.raises(ValueError, match="it has none; give a number, or calibrate with known translations"):
        mine_texts(**{**asked, "threshold": "published"})
    publish_thresholds(asked["model"], {"fr-en": published(99.0)})
    assert mine_texts(**auto).threshold is None
    assert "it has one for fr-en, none for de-en; all pairs are kept" in logged()
    assert mine_texts(**{**auto, "filters": None}).threshold is None
    assert "it has one for fr-en, none for de-en (languages by the text" in logged()


def test_embeddings_know_their_prompt(asked: dict[str, Any], middle: float, tmp_path: Path) -> None:
    publish_thresholds(asked["model"], {"de-en": published(middle)})
    stores: dict[str | None, dict[str, Any]] = {
        prompt: {
            f"{side}_embeddings": encode(asked["model"], asked[side], tmp_path / f"{side}{prompt}", prompt=prompt).path
            for side in ("source", "target")
        }
        for prompt in (None, "query: ")
    }
    assert mine_texts(**asked, **stores[None], threshold="auto").threshold == middle
    assert mine_texts(**asked, **stores["query: "], threshold="auto").threshold is None
    mixed: dict[str, Any] = {"source_embeddings": stores[None]["source_embeddings"], "prompt": "query: "}
    with pytest.raises(ValueError, match="prompt 'none' and 'query: ' for .*source.* and the model"):
        mine_texts(**asked, **mixed, threshold="auto")
    alone: dict[str, Any] = {**asked, "model": None, **stores[None]}
    assert mine_texts(**alone, threshold="auto").threshold is None  # whose thresholds?


def test_the_work_goes_on_as_it_was_begun(
    asked: dict[str, Any],
    middle: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    logged: Any,
) -> None:
    """Whatever becomes of the model's file meanwhile; another choice, or new work, looks again."""
    auto, file = {**asked, "threshold": "auto", "progress": True}, Path(asked["model"]) / "mining.json"
    stop_before_the_pairs(monkeypatch, **auto)
    publish_thresholds(asked["model"], {"de-en": published(middle)})
    assert mine_texts(**auto).threshold is None
    assert "it has none (as when this work was begun); all pairs are kept" in logged()
    assert mine_texts(**{**auto, "out": tmp_path / "whole.tsv"}).threshold == middle
    stop_before_the_pairs(monkeypatch, **auto)
    publish_thresholds(asked["model"], {"de-en": published(99.0)})
    assert mine_texts(**auto, keep_work=True).threshold == middle
    assert asked["out"].read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert "recall 0.500; published with bucc|x (as when this work was begun)" in logged()
    file.write_text("broken", encoding="utf-8")
    assert mine_texts(**auto, keep_work=True).threshold == middle
    assert mine_texts(**{**auto, "threshold": None}, keep_work=True).threshold is None
    with pytest.raises(ValueError, match=r"mining\.json: expected JSON"):
        mine_texts(**auto, retrieval="intersect")
    for content in ("[]", "{", '{"fit": 1}'):
        (tmp_path / "o.tsv.work" / "published.json").write_text(content)
        with pytest.raises(ValueError, match=r"o\.tsv\.work/published\.json: expected"):
            mine_texts(**auto)
    file.unlink()
    stop_before_the_pairs(monkeypatch, **{**auto, "out": tmp_path / "p.tsv"})
    publish_thresholds(asked["model"], {"de-en": published(99.0)})
    insisted = mine_texts(**{**auto, "out": tmp_path / "p.tsv", "threshold": "published"})
    assert insisted.threshold == 99.0 and insisted.pairs == 0  # who insists is not told of then


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": "best"}, "threshold must be a number, 'auto', 'published' or None: got 'best'"),
        ({"threshold": ""}, "threshold must be a number, 'auto', 'published' or None: got ''"),
        ({"threshold": "published", "filters": None}, "it has none"),
        ({"threshold": "published", "model": None}, r"the folder or the Hub id of a model \(--model\): got none"),
        ({"threshold": "published", "model": object()}, "got a loaded object"),
        ({"threshold": "published", "calibrate_with": "known.tsv"}, "both set the threshold"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], message: str, asked: dict[str, Any], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        mine_texts(**{**asked, **change})
    assert sorted(tmp_path.iterdir()) == before
