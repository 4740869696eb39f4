"""Filters of translations: probabilities from logits, the threshold, and what is saved."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import CrossEncoder

from st_xling.models.cross_encoders import tiny_cross_encoder
from st_xling.models.pair_filter import PairFilter, calibrate_filter, load_pair_filter, platt_scaling
from st_xling.models.pair_scorer import PairScorer

WORDS = [
    "the",
    "dog",
    "cat",
    "sleeps",
    "here",
    "there",
    "old",
    "new",
    "book",
    "house",
    "red",
    "blue",
    "green",
    "two",
    "three",
]


def texts(number: int, rng: np.random.Generator) -> list[str]:
    return [" ".join(rng.choice(WORDS, 5)) for _ in range(number)]


def test_platt_scaling_finds_what_made_the_labels() -> None:
    """Of labels drawn by a known scale and offset, both as often; the counts of the labels do not move it."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=60_000) * 3
    labels = rng.random(len(logits)) < 1 / (1 + np.exp(-(1.7 * logits - 0.8)))
    scale, offset = platt_scaling(logits, labels)
    share = labels.mean()
    assert scale == pytest.approx(1.7, rel=0.05)
    # Equal weights move the offset by the log odds of the labels.
    assert offset == pytest.approx(-0.8 - np.log(share / (1 - share)), abs=0.1)
    rare = labels & (rng.random(len(labels)) < 0.2)
    kept = rare | ~labels
    assert platt_scaling(logits[kept], labels[kept]) == pytest.approx((scale, offset), abs=0.12)


@pytest.mark.parametrize("head", ["cls", "pooler"])
def test_a_calibrated_model_predicts_the_probability_anywhere(head: Any, tmp_path: Path) -> None:
    """The numbers are in the weights: sentence-transformers alone gives the probabilities, after a save as well."""
    rng = np.random.default_rng(1)
    pairs = list(zip(texts(60, rng), texts(60, rng)))
    model = tiny_cross_encoder([text for pair in pairs for text in pair], head=head, vocabulary=100, hidden_size=16)
    before = PairScorer(model).score(pairs, raw=True).astype(np.float64)
    labels = before + rng.normal(size=60) * before.std() > np.median(before)
    facts = calibrate_filter(model, pairs, labels)
    expected = 1 / (1 + np.exp(-(facts.scale * before + facts.offset)))
    model.save_pretrained(str(tmp_path))
    assert CrossEncoder(str(tmp_path), device="cpu").predict(pairs) == pytest.approx(expected, abs=1e-3)

    # The best F1 if both labels are as frequent, by trying every score.
    def f1(threshold: float) -> float:
        kept = expected >= threshold
        right = (kept & labels).sum() / labels.sum()
        wrong = (kept & ~labels).sum() / (~labels).sum()
        return float(2 * right / (right + wrong + 1))

    assert facts.f1 == pytest.approx(max(map(f1, expected)), abs=1e-3)
    assert f1(facts.threshold) == pytest.approx(facts.f1, abs=1e-3)


def test_what_cannot_be_calibrated_is_said() -> None:
    labels = np.arange(40) % 2 == 0
    with pytest.raises(ValueError, match="at least 10 held-out translations.*got 5 and 5"):
        platt_scaling(np.zeros(10), labels[:10])
    with pytest.raises(ValueError, match="no higher"):
        platt_scaling(np.where(labels, -1.0, 1.0), labels)


def test_a_saved_filter_is_read_and_a_broken_one_named(tmp_path: Path) -> None:
    facts = PairFilter(threshold=0.4, precision=0.9, recall=0.8, f1=0.85, scale=1.5, offset=-0.2, pairs=400)
    path = tmp_path / "results.json"
    assert load_pair_filter(tmp_path) is None
    path.write_text(json.dumps({"training": {"filter": facts.as_dict(), "steps": 3}}), encoding="utf-8")
    assert load_pair_filter(str(tmp_path)) == facts
    for content, message in (({"threshold": 0.5}, "'precision'"), ({**facts.as_dict(), "threshold": 7}, "got 7")):
        path.write_text(json.dumps({"training": {"filter": content}}), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"results\.json: .*{message}"):
            load_pair_filter(tmp_path)
