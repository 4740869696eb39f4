"""Scores of pairs: those of ST' predict, whatever the batches; only passages are cut, and it is counted."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from st_xling.models.pair_scorer import PairScorer, rerank
from tests.conftest import PAIRS
from tests.models.tiny_cross_encoder import tiny_cross_encoder

QUERIES = ["Who is sleeping?", "谁买了书？", "", "أين المفتاح؟"]
PASSAGES = [side for pair in PAIRS for side in pair] + [" ".join(side for _, side in PAIRS), "", "🙂"]
TEXTS = [*QUERIES[:2], *PASSAGES]


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_cross_encoder(TEXTS, architecture=request.param)


@pytest.fixture
def pairs() -> list[tuple[str, str]]:
    return [(query, passage) for query in QUERIES for passage in PASSAGES]


def host_scores(model: Any, pairs: list[tuple[str, str]], **options: Any) -> np.ndarray:
    """Sentence-transformers', told to cut passages as we do, a pair at a time: no padding at all."""
    cut = {"text": {"truncation": "only_second"}}
    return np.array([model.predict([pair], processing_kwargs=cut, **options)[0] for pair in pairs])


def test_the_same_scores_as_predict(model: Any, pairs: list[tuple[str, str]]) -> None:
    expected = host_scores(model, pairs)
    assert np.ptp(expected) > 0.1, "scores that differ, or the test says nothing"
    for budget in (None, 1, 100):
        scores = PairScorer(model, token_budget=budget).score(pairs)
        assert scores.dtype == np.float32 and scores.shape == (len(pairs),)
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_raw_scores_and_autocast(model: Any, pairs: list[tuple[str, str]]) -> None:
    scorer = PairScorer(model)
    raw = scorer.score(pairs, raw=True)
    np.testing.assert_allclose(raw, host_scores(model, pairs, activation_fn=torch.nn.Identity()), atol=1e-5)
    np.testing.assert_allclose(scorer.activate(raw), PairScorer(model).score(pairs), atol=1e-7)
    rough = PairScorer(model, autocast="bfloat16").score(pairs, raw=True)
    assert 0 < np.abs(rough - raw).max() < 0.3


def test_only_the_passage_is_cut_and_counted(model: Any) -> None:
    tokenizer = model.tokenizer
    limit = model.max_seq_length
    query = "Who is sleeping under the table?"
    long = " ".join(["The dog is sleeping."] * 20)
    room = limit - len(tokenizer(query, "")["input_ids"])
    assert 0 < room < len(tokenizer(long, add_special_tokens=False)["input_ids"])
    scorer = PairScorer(model)
    scorer.score([(query, long), (query, "The dog."), (query, long + " And the cat?")])
    assert scorer.cut_passages == 2
    kept = tokenizer.decode(tokenizer(long, add_special_tokens=False)["input_ids"][:room])
    scores = scorer.score([(query, long), (query, kept)])
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_a_query_is_never_cut(model: Any) -> None:
    long = " ".join(["Who is sleeping?"] * 30)
    pairs = [("Who?", "The dog."), (long, "The dog."), (long, "")]
    with pytest.raises(ValueError, match="40 tokens: got 1 .*'Who is"):
        PairScorer(model).score(pairs)
    scorer = PairScorer(model, long_queries="lowest")
    scores = scorer.score(pairs)
    assert np.isneginf(scores[1:]).all() and np.isfinite(scores[0])
    assert scorer.cut_passages == 0


def test_a_prompt_goes_before_the_query(model: Any) -> None:
    model = copy.deepcopy(model)
    pair = ("Who?", "The dog.")
    plain = model.predict([pair])
    model.prompts = {"ask": "Where is the dog: "}
    model.default_prompt_name = "ask"
    np.testing.assert_allclose(PairScorer(model).score([pair]), model.predict([pair]), atol=1e-6)
    assert plain[0] != pytest.approx(model.predict([pair])[0], abs=1e-6)


def test_rerank(model: Any) -> None:
    ranking = rerank(model, QUERIES[0], PASSAGES[:6])
    assert [(row.index, pytest.approx(row.score, abs=1e-5)) for row in ranking] == [
        (row["corpus_id"], row["score"]) for row in model.rank(QUERIES[0], PASSAGES[:6])
    ]
    assert rerank(model, QUERIES[0], PASSAGES[:6], top_k=2) == ranking[:2]
    assert [row.index for row in rerank(model, "Who?", ["The dog."] * 3)] == [0, 1, 2]
    assert rerank(model, "Who?", []) == []


def test_what_a_sigmoid_rounds_into_one_keeps_its_order() -> None:
    model = tiny_cross_encoder(TEXTS)
    order = [row.index for row in rerank(model, "Who?", PASSAGES[:6])]
    with torch.no_grad():
        model.model.classifier.bias += 60
    ranking = rerank(model, "Who?", PASSAGES[:6])
    assert {row.score for row in ranking} == {1.0} and [row.index for row in ranking] == order != sorted(order)
    model.config.num_labels = 3
    with pytest.raises(ValueError, match="one label: got 3"):
        PairScorer(model)
    with pytest.raises(ValueError, match="top_k .* got 0"):
        rerank(model, "Who?", ["The dog."], top_k=0)


def test_no_pairs_have_no_scores(model: Any) -> None:
    assert PairScorer(model).score([]).shape == (0,)


def test_pairs_are_computed_by_length(model: Any, pairs: list[tuple[str, str]]) -> None:
    """Each once, the longest first, as many as the budget holds."""
    shapes: list[tuple[int, int]] = []
    hook = model[0].register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0]["input_ids"].shape)))
    try:
        PairScorer(model, token_budget=100).score(pairs)
    finally:
        hook.remove()
    assert sum(rows for rows, _ in shapes) == len(pairs)
    assert all(rows * width <= 100 for rows, width in shapes)
    widths = [width for _, width in shapes]
    assert widths == sorted(widths, reverse=True) and widths[0] > widths[-1]
