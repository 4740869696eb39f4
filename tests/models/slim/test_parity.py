"""Parity of two encoders equals what plain loops find; both of separate encoders are compared."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from st_xling.models.slim import parity, slim_encoder
from st_xling.training.retriever import separate_encoders
from st_xling.utils.nearest import retrieval_accuracy
from tests.models.slim.encoders import encoder, german_english, phrases


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any]:
    before = encoder("tiny")
    after = slim_encoder(before, german_english(), min_count=4)
    return before, after


def test_figures_are_those_of_plain_loops(both: tuple[Any, Any]) -> None:
    before, after = both
    sides = (phrases()["de"][:40], phrases()["en"][:40])
    extra = ["Übrigens: Äpfel!", sides[0][0]]
    found = parity(before, after, extra, pairs={"de-en": sides})
    texts = list(dict.fromkeys([*extra, *sides[0], *sides[1]]))
    old, new = before.encode(texts).astype(float), after.encode(texts).astype(float)
    cosines = [
        sum(a * b for a, b in zip(x, y)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))
        for x, y in zip(old.tolist(), new.tolist())
    ]
    assert found["texts"] == len(texts)
    assert found["cosine_mean"] == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    assert found["cosine_min"] == pytest.approx(min(cosines), abs=1e-6) and found["cosine_min"] < 0.9999
    assert found["same_share"] == sum(cosine >= 0.9999 for cosine in cosines) / len(cosines)
    pieces = [[model.tokenizer.tokenize(text) for text in texts] for model in both]
    assert found["same_tokens_share"] == sum(a == b for a, b in zip(*pieces)) / len(texts)
    for when, model, rows in zip(("before", "after"), both, pieces):
        tokens = [piece for row in rows for piece in row]
        assert found["unknown_share"][when] == tokens.count("[UNK]") / len(tokens)
        forward, back = retrieval_accuracy(model.encode(sides[0]), model.encode(sides[1]))
        assert found["retrieval"]["de-en"]["forward"][when] == forward
        assert found["retrieval"]["de-en"]["back"][when] == back


def test_a_model_is_on_a_par_with_itself(both: tuple[Any, Any]) -> None:
    found = parity(both[0], both[0], ["Der Hund.", "犬"])
    assert (found["same_share"], found["same_tokens_share"]) == (1.0, 1.0)
    assert found["retrieval"] == {} and found["unknown_share"]["before"] >= 0


def test_both_of_separate_encoders_are_compared() -> None:
    """The query encoder alone is changed, which plain ``encode`` does not use."""
    before, after = separate_encoders(encoder("tiny")), separate_encoders(encoder("tiny"))
    with torch.no_grad():
        next(after[0].sub_modules["query"].parameters()).mul_(-1)  # type: ignore[union-attr, operator]
    found = parity(before, after, ["Der Hund.", "The dog."])
    assert found["cosine_min"] < 0.999 and found["same_share"] == 0.5


def test_faults_are_named(both: tuple[Any, Any], make_model: Any) -> None:
    with pytest.raises(ValueError, match="text is needed to compare encoders"):
        parity(*both, [])
    with pytest.raises(ValueError, match="embeddings of one width are needed: got 16 and 32"):
        parity(both[0], make_model(hidden_size=32), ["a"])
