"""Which thresholds of an evaluation of mining may be published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc_thresholds import publishable_thresholds

Corpus = tuple[list[str], list[str], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> SentenceTransformer:
    return make_model()


def corpus(split: str) -> Corpus:
    texts = mining_phrases("de", "en", split=split, size=30, gold=10)
    return texts.source, texts.target, [tuple(pair) for pair in texts.gold]  # type: ignore[misc]


@pytest.mark.parametrize("name", ["bucc", ""])
def test_of_a_training_split_or_given(name: str, model: SentenceTransformer) -> None:
    """With the figures of the split that was judged."""
    ways: Any = {"k": 3, "margin": "distance", "retrieval": "intersect", "name": name}
    for source in ({"train": {"de-en": corpus("dev")}}, {"threshold": 0.01}):
        evaluator = BuccEvaluator({"de-en": corpus("test")}, **source, **ways)
        metrics = evaluator(model)
        found, left_out = publishable_thresholds(evaluator, metrics)
        assert not left_out and list(found) == ["de-en"]
        (judged,) = evaluator.scores(model).values()
        published = found["de-en"].as_dict()
        assert [published.pop(figure) for figure in ("threshold", "precision", "recall", "f1")] == [
            *(judged.threshold, judged.precision, judged.recall, judged.f1)
        ]
        assert published == {
            **{key: ways[key] for key in ("k", "margin", "retrieval")},
            "signature": evaluator.signature,
        }


def test_of_text_that_judges_itself_or_of_cut_vectors(model: SentenceTransformer) -> None:
    same = BuccEvaluator({"de-en": corpus("test")}, train={"de-en": corpus("test")})
    assert publishable_thresholds(same, same(model)) == (
        {}, {"de-en": "it was tuned on the gold that it was judged by"}
    )  # fmt: skip
    cut = BuccEvaluator({"de-en": corpus("test")}, train={"de-en": corpus("dev")}, truncate_dim=8)
    assert publishable_thresholds(cut, cut(model)) == (
        {}, {"de-en": "embeddings were cut to 8 dimensions, which mining does not do"}
    )  # fmt: skip


def test_those_that_mean_nothing_elsewhere(model: SentenceTransformer) -> None:
    tuned = BuccEvaluator({"de-en": corpus("test")}, threshold="tune")
    assert publishable_thresholds(tuned, tuned(model)) == (
        {},
        {"de-en": "it was tuned on the gold that it was judged by"},
    )
    corpora = {"de-en": corpus("test"), "fr-en": corpus("test"), "Deutsch": corpus("test")}
    given = BuccEvaluator(corpora, threshold={"de-en": float("inf"), "fr-en": 1.0, "Deutsch": 1.0})
    found, left_out = publishable_thresholds(given, given(model))
    assert list(found) == ["fr-en"] and left_out["de-en"] == "it is inf"
    assert left_out["Deutsch"].startswith("a pair must be two language codes")
