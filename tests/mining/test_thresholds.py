"""Thresholds: tuned on gold pairs, published in ``mining.json``, and used by ``mine_texts`` and ``st-xling mine``."""

import json
import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling import mining
from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc import publishable_thresholds
from st_xling.mining.thresholds import canonical_pair, match_published_threshold
from st_xling.models import load_encoder
from tests import reference_mining as reference
from tests.hub.hub_server import Hub
from tests.mining.pipeline.test_text_mining import read, write

pytest_plugins = ["tests.hub.publishing"]

# Tuned on gold pairs

candidates = st.lists(st.tuples(st.sampled_from([0.5, 0.9, 1.0, 1.0 + 2**-52, 1.1, -3.0]), st.booleans()), max_size=12)


@settings(max_examples=200, deadline=None)
@given(candidates, st.integers(0, 3))
def test_best_threshold_equals_loops(pairs: list[tuple[float, bool]], missed: int) -> None:
    scores, correct = [score for score, _ in pairs], [hit for _, hit in pairs]
    n_gold = max(1, sum(correct) + missed)
    best = mining.best_threshold(np.array(scores, dtype=np.float64), np.array(correct, dtype=bool), n_gold)
    assert best.f1 == pytest.approx(reference.best_f1(scores, correct, n_gold), rel=1e-9)
    assert best.f1 == pytest.approx(reference.f1_at(scores, correct, n_gold, best.threshold), rel=1e-9)
    if pairs:
        assert mining.best_threshold(scores[::-1], correct[::-1], n_gold) == best


@pytest.mark.parametrize(
    ("scores", "correct", "n_gold", "expected"),
    [
        ([1.5, 1.25, 1.0], [True, True, False], 2, (1.125, 1.0, 1.0)),  # midway
        ([1.5, 1.25, 1.0], [True, True, True], 3, (1.0, 1.0, 1.0)),  # the lowest score; LASER reads past the list
        ([1.0, 1.0], [True, False], 1, (1.0, 0.5, 1.0)),  # equal scores are kept together
        ([1.0, 1.0], [False, True], 1, (1.0, 0.5, 1.0)),
        ([4.0, 3.0, 2.0, 1.0], [True, False, False, True], 2, (3.5, 1.0, 0.5)),  # F1 2/3 twice: fewer pairs
        ([1.0, 0.5], [False, False], 3, (math.inf, 0.0, 0.0)),
        ([], [], 3, (math.inf, 0.0, 0.0)),
    ],
)
def test_best_threshold_by_hand(
    scores: list[float], correct: list[bool], n_gold: int, expected: tuple[float, float, float]
) -> None:
    best = mining.best_threshold(scores, correct, n_gold)
    assert (best.threshold, best.precision, best.recall) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_adjacent_floats_are_separated(dtype: Any) -> None:
    low = dtype(1.0)
    scores = np.array([np.nextafter(low, dtype(2)), low], dtype=dtype)
    assert (scores >= mining.best_threshold(scores, [True, False], 1).threshold).tolist() == [True, False]


def test_metrics_count_gold_that_was_not_mined() -> None:
    assert mining.precision_recall_f1(3, 4, 6) == pytest.approx((3 / 4, 1 / 2, 3 / 5), rel=1e-9)
    assert mining.precision_recall_f1(0, 0, 2) == (0.0, 0.0, 0.0)
    mined = mining.MinedPairs(np.array([1.3, 1.2, 1.1]), np.array([0, 1, 2]), np.array([0, 4, 2]))
    gold = [(0, 0), (2, 2), (7, 7), (2, 8)]  # two gold pairs may share a sentence
    assert mining.correct_pairs(mined, iter(gold)).tolist() == [True, False, True]
    assert mining.evaluate_pairs(mined, iter(gold), 1.1) == mining.Threshold(1.1, 2 / 3, 1 / 2, pytest.approx(4 / 7))
    assert mining.evaluate_pairs(mined, gold, 9.0) == mining.Threshold(9.0, 0.0, 0.0, 0.0)


TWICE = mining.MinedPairs(np.array([1.0, 0.9]), np.array([0, 0]), np.array([0, 0]))


def test_errors() -> None:
    for hits, n_gold, message in (
        ([True, True], 1, "got 2 correct of 2 predicted and 1 gold"),
        ([True], 2, r"\(2,\) and \(1,\)"),
        ([False, False], 0, "n_gold must be at least 1: got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            mining.best_threshold([1.0, 0.5], hits, n_gold)
    with pytest.raises(ValueError, match=r"gold must .* got \(0, 1\) twice"):
        mining.evaluate_pairs(TWICE, [(0, 1), (0, 1)], 0.5)
    for pair in ("de_AT-en", "de", "de-", "de-en-fr", "German-English", "DE-en", "de-AT", ""):
        with pytest.raises(ValueError, match=f"two language codes .* got '{pair}'"):
            canonical_pair(pair)
    for threshold in (math.inf, math.nan, "1.06"):
        with pytest.raises(ValueError, match=f"finite number: got {threshold!r}"):
            published(threshold)  # type: ignore[arg-type]


# Published in mining.json

VALUES: dict[str, Any] = {
    **{"threshold": 1.06, "precision": 0.75, "recall": 0.5, "f1": 0.6, "margin": "ratio", "k": 4},
    **{"retrieval": "max", "signature": "bucc|x"},
}
QUERY = {"prompt": "query: ", "layer": "7"}


def published(threshold: float = 1.06, **changes: Any) -> mining.PublishedThreshold:
    return mining.PublishedThreshold(**{**VALUES, "threshold": threshold, **changes})


def test_published_thresholds_are_loaded(tmp_path: Path) -> None:
    """Other spellings of the same languages replace a pair; the swapped languages are another pair."""
    assert mining.load_published_thresholds(tmp_path) == {}
    first = {"de-en": published(), "fr-en": published(1, precision=None, options=QUERY)}
    path = mining.publish_thresholds(tmp_path, first)
    assert path == tmp_path / "mining.json" and mining.load_published_thresholds(str(tmp_path)) == first
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": 1,
        "pairs": {"de-en": VALUES, "fr-en": {**VALUES, "threshold": 1, "precision": None, "options": QUERY}},
    }
    mining.publish_thresholds(tmp_path, {"deu-eng": published(2.0), "en-de": published(k=3)})
    found = mining.load_published_thresholds(tmp_path)
    assert list(found) == ["fr-en", "deu-eng", "en-de"] and found["deu-eng"].threshold == 2.0
    path.write_text(json.dumps({"version": 1, "pairs": {"de-en": {**VALUES, "precision": math.nan}}}))
    assert mining.load_published_thresholds(tmp_path)["de-en"].precision is None


def entry(**changes: Any) -> str:
    return json.dumps({"version": 1, "pairs": {"de-en": {**VALUES, **changes}, "fr-en": VALUES}})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (entry(threshold="1.06"), "de-en.*threshold.*'1.06'"),
        ("{", "expected JSON"),
        ('{"version": 2, "pairs": {}}', "version 1, got 2"),
        ('{"version": 1, "pairs": {"de-en": {"threshold": 1}}}', "de-en.*'precision'.*'signature'"),
        (json.dumps({"version": 1, "pairs": {"deen": VALUES}}), "deen"),
    ],
)
def test_an_invalid_file_is_an_error_and_is_kept(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mining.json"
    path.write_text(content, encoding="utf-8")
    for call in (
        mining.load_published_thresholds,
        lambda folder: mining.publish_thresholds(folder, {"de-en": published()}),
    ):
        with pytest.raises(ValueError, match=rf"mining\.json: .*{message}"):
            call(tmp_path)
    assert path.read_text(encoding="utf-8") == content


def test_a_model_of_the_hub(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is downloaded and cached; offline the cached one is used; a bare name may be ST's own model."""
    names = ["somebody/mining", "somebody/bare", "old"]
    content = mining.publish_thresholds(tmp_path, {"de-en": published()}).read_bytes()
    for name in ("somebody/mining", "somebody/bare", "sentence-transformers/old"):
        hub.put(name, {"config.json": b"{}"} if name.endswith("bare") else {"mining.json": content})
    expected: list[Any] = [{"de-en": 1.06}, {}, {"de-en": 1.06}]
    for offline in (False, True):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
        found = [mining.load_published_thresholds(name) for name in names]
        assert [{pair: one.threshold for pair, one in each.items()} for each in found] == expected


def match(
    thresholds: dict[str, mining.PublishedThreshold], source: str = "de", target: str = "en", **changes: Any
) -> str:
    run: dict[str, Any] = {"margin": "ratio", "k": 4, "retrieval": "max", **changes}
    pair, threshold = match_published_threshold(thresholds, source, target, run)
    assert threshold is thresholds[pair]
    return pair


def test_matching_languages() -> None:
    """In any spelling, and in both directions, that of the run first."""
    for codes in (("de", "en"), ("deu", "eng"), ("de-AT", "en_GB"), (" DE ", "eng")):
        assert match({"fr-en": published(), "deu-en": published()}, *codes) == "deu-en"
    assert match({"en-de": published(), "de-en": published()}) == "de-en"
    assert match({"en-de": published(), "de-en": published(k=5)}) == "en-de"
    for way in ("forward", "backward"):
        with pytest.raises(ValueError, match=f"that of en-de is for the other direction of {way}"):
            match({"en-de": published(retrieval=way)}, retrieval=way)
        assert match({"de-en": published(retrieval=way)}, retrieval=way) == "de-en"
    assert match({"en-de": published(retrieval="intersect")}, retrieval="intersect") == "en-de"


@pytest.mark.parametrize(
    ("measured", "mined", "words"),
    [
        ({"k": 8, "margin": "absolute"}, {}, "margin absolute, not ratio, k 8, not 4"),
        ({"retrieval": "forward"}, {}, "retrieval forward, not max"),
        ({"options": QUERY}, {}, "prompt query: , not default, layer 7, not default"),
        ({}, QUERY, "prompt default, not query: , layer default, not 7"),
        ({"options": {"dim": "8", "dtype": "bfloat16"}}, {"dim": "8"}, "dtype bfloat16, not default"),
    ],
)
def test_mined_in_another_way(measured: dict[str, Any], mined: dict[str, Any], words: str) -> None:
    """Scores of another layer, prompt or type are others: a threshold of theirs would cut anywhere."""
    with pytest.raises(ValueError, match=f"that of de-en is for {words}$"):
        match({"de-en": published(**measured)}, **mined)
    same = {**measured, **measured.get("options", {})}
    same.pop("options", None)
    assert match({"de-en": published(**measured)}, **same) == "de-en"


# Used by a run

TEXTS = mining_phrases("de", "en", split="test", size=150, gold=60)
GERMAN = mining.FilterOptions(source_language="de", target_language="en", disable=["all"])


@pytest.fixture
def run(saved_encoder: Path, tmp_path: Path) -> dict[str, Any]:
    """Options of ``mine_texts`` with a copy of the model, in which to publish."""
    model = str(shutil.copytree(saved_encoder, tmp_path / "my-encoder"))
    sides = write(tmp_path / "news.de", TEXTS.source), write(tmp_path / "news.en", TEXTS.target)
    return {"source": sides[0], "target": sides[1], "out": tmp_path / "o.tsv", "model": model, "filters": GERMAN}


@pytest.fixture
def middle(run: dict[str, Any]) -> float:
    """A score that about half of the pairs reach."""
    scores = sorted(row[0] for row in (mining.mine_texts(**run), read(run["out"]))[1])
    return scores[len(scores) // 2]


def test_a_run_uses_the_published_threshold(
    run: dict[str, Any], middle: float, logged: Callable[[], str], tmp_path: Path
) -> None:
    """Like the same number; without being asked for it, or with a calibration, it is not used."""
    mining.publish_thresholds(run["model"], {"de-en": published(middle), "fr-en": published(9.0)})
    everything = mining.mine_texts(**run)
    assert everything.threshold is everything.published is None and "|threshold:none|" in everything.signature
    assert mining.mine_texts(**{**run, "out": tmp_path / "number.tsv"}, threshold=middle).published is None
    for how in ("auto", "published"):
        report = mining.mine_texts(**run, threshold=how, progress=True)
        assert run["out"].read_bytes() == (tmp_path / "number.tsv").read_bytes()
        assert 0 < report.pairs < 120 and report.threshold == middle
        assert f"|threshold:{middle:.6g} published|" in report.signature
        line = f"threshold {middle:.4f} of {run['model']} for de-en, precision 0.750, recall 0.500"
        assert line in logged() and any(one.startswith(line) for one in report.lines())
        assert json.loads(json.dumps(report.as_dict()))["published"]["signature"] == "bucc|x"
    known = write(tmp_path / "known.tsv", [f"{text}!\t{text}!" for text in TEXTS.source[:40]])
    assert mining.mine_texts(**run, threshold="auto", calibrate_with=known).published is None


@pytest.mark.parametrize(
    ("thresholds", "options", "message", "level"),
    [
        ({}, {}, "it has none", logging.INFO),
        ({"fr-en": published(99.0)}, {}, "it has one for fr-en, none for de-en", logging.WARNING),
        (
            {"de-en": published(99.0)},
            {"search": mining.SearchOptions(k=3)},
            "that of de-en is for k 4, not 3",
            logging.WARNING,
        ),
        (
            {"de-en": published(99.0)},
            {"encoding": mining.EncodingOptions(prompt="query: ")},
            "prompt default, not query: ",
            logging.WARNING,
        ),
    ],
)
def test_a_mismatch_is_logged_or_an_error(
    thresholds: Any, options: Any, message: str, level: int, run: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    mining.publish_thresholds(run["model"], thresholds)
    with caplog.at_level(logging.INFO, logger="st_xling"):
        assert mining.mine_texts(**run, **options, threshold="auto").threshold is None
    (record,) = [record for record in caplog.records if "published threshold" in record.getMessage()]
    assert record.levelno == level and f"{message}; it is estimated" in record.getMessage()
    with pytest.raises(ValueError, match=rf"threshold 'published' .*{message}; give a number, or calibrate"):
        mining.mine_texts(**run, **options, threshold="published")


USED: dict[str, Any] = {"prompt": "query: ", "layer": 1, "truncate_dim": 8, "dtype": "bfloat16"}


def test_settings_of_the_model_count(run: dict[str, Any], tmp_path: Path) -> None:
    """Prompt, layer, dimensions and type of weights, of a loaded model and of stores that one wrote."""
    dev, test = (mining_phrases("de", "en", split=split, size=30, gold=20) for split in ("dev", "test"))
    corpora = [(part.source, part.target, part.gold) for part in (dev, test)]
    evaluator = BuccEvaluator({"de-en": corpora[1]}, train={"de-en": corpora[0]})
    model = load_encoder(run["model"], device="cpu", **USED)
    thresholds = publishable_thresholds(evaluator, evaluator.evaluate(model))
    assert thresholds["de-en"].options == {"dim": "8", "layer": "1", "prompt": "query: ", "dtype": "bfloat16"}
    mining.publish_thresholds(run["model"], thresholds)
    run["threshold"] = "published"
    report = mining.mine_texts(**{**run, "model": model})
    assert report.published is not None
    assert "|dim:8|layer:1|prompt:query: |dtype:bfloat16|margin:" in report.signature
    stores = {
        f"{side}_embeddings": mining.encode(model, run[side], tmp_path / side).path for side in ("source", "target")
    }
    assert mining.mine_texts(**{**run, "model": model, **stores}).published is not None
