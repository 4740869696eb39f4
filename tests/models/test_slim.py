"""Parity of two encoders equals what plain loops find."""

from __future__ import annotations

import math
from typing import Any

import pytest

from st_xling.models.slim import parity, slim_encoder
from tests.models.slim_encoders import encoder, german_english, phrases


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any]:
    before = encoder("tiny")
    after = slim_encoder(before, german_english(), min_count=4)
    return before, after


def test_figures_are_those_of_plain_loops(both: tuple[Any, Any]) -> None:
    before, after = both
    texts = ["Übrigens: Äpfel!", *phrases()["de"][:40], *phrases()["en"][:40]]
    found = parity(before, after, [*texts, texts[1]])
    old, new = before.encode(texts).astype(float), after.encode(texts).astype(float)
    cosines = [
        sum(a * b for a, b in zip(x, y)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))
        for x, y in zip(old.tolist(), new.tolist())
    ]
    assert found["texts"] == len(texts)
    assert found["cosine_mean"] == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    assert found["cosine_min"] == pytest.approx(min(cosines), abs=1e-6) and found["cosine_min"] < 0.9999
    assert found["same_share"] == sum(cosine >= 0.9999 for cosine in cosines) / len(cosines)
    for when, model in zip(("before", "after"), both):
        tokens = [piece for text in texts for piece in model.tokenizer.tokenize(text)]
        assert found["unknown_share"][when] == tokens.count("[UNK]") / len(tokens)


def test_a_model_is_on_a_par_with_itself(both: tuple[Any, Any]) -> None:
    assert parity(both[0], both[0], ["Der Hund.", "犬"])["same_share"] == 1.0
    with pytest.raises(ValueError, match="text is needed"):
        parity(*both, [])
