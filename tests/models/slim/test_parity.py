"""Parity of two encoders equals what plain loops find; rows are held out evenly, none lost and none twice."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from st_xling.models.slim import parity, slim_encoder
from st_xling.models.slim.parity import sampled, set_apart
from st_xling.training.retriever import separate_encoders
from st_xling.utils.nearest import retrieval_accuracy
from tests.models.slim.encoders import encoder, german_english, phrases


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any]:
    before = encoder("tiny")
    after = slim_encoder(before, german_english(), min_count=4).model
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
    assert found.texts == len(texts)
    assert found.cosine_mean == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    assert found.cosine_min == pytest.approx(min(cosines), abs=1e-6) and found.cosine_min < 0.9999
    assert found.same_share == sum(cosine >= 0.9999 for cosine in cosines) / len(cosines)
    assert found.largest_difference == pytest.approx(np.abs(old - new).max(), abs=1e-6)
    pieces = [[model.tokenizer.tokenize(text) for text in texts] for model in both]
    assert found.same_tokens_share == sum(a == b for a, b in zip(*pieces)) / len(texts)
    for when, model, rows in zip(("before", "after"), both, pieces):
        tokens = [piece for row in rows for piece in row]
        assert getattr(found.tokens_per_text, when) == len(tokens) / len(texts)
        assert getattr(found.unknown_share, when) == tokens.count("[UNK]") / len(tokens)
        forward, back = retrieval_accuracy(model.encode(sides[0]), model.encode(sides[1]))
        assert getattr(found.retrieval["de-en"]["forward"], when) == forward
        assert getattr(found.retrieval["de-en"]["back"], when) == back


def test_a_model_is_on_a_par_with_itself(both: tuple[Any, Any]) -> None:
    found = parity(both[0], both[0], ["Der Hund.", "犬"])
    assert (found.same_share, found.same_tokens_share, found.largest_difference) == (1.0, 1.0, 0.0)
    assert found.retrieval == {} and found.as_dict()["unknown_share"]["before"] >= 0


def test_both_of_separate_encoders_are_compared() -> None:
    """The query encoder alone is changed, which plain ``encode`` does not use."""
    before, after = separate_encoders(encoder("tiny")), separate_encoders(encoder("tiny"))
    with torch.no_grad():
        next(after[0].sub_modules["query"].parameters()).mul_(-1)  # type: ignore[union-attr, operator]
    found = parity(before, after, ["Der Hund.", "The dog."])
    assert found.cosine_min < 0.999 and found.same_share == 0.5


def test_faults_are_named(both: tuple[Any, Any], make_model: Any) -> None:
    with pytest.raises(ValueError, match="text is needed to compare encoders"):
        parity(*both, [])
    with pytest.raises(ValueError, match="embeddings of one width are needed: got 16 and 32"):
        parity(both[0], make_model(hidden_size=32), ["a"])


@pytest.mark.parametrize("hold_out", [0.0, 0.1, 0.9, 1, 7, 50])
def test_every_row_is_passed_on_or_kept(hold_out: float) -> None:
    kept: list[int] = []
    passed = list(set_apart(range(200), hold_out, kept, seed=3, most=30))
    assert sorted([*passed, *kept]) == list(range(200))
    expected = {0.0: 0, 0.9: 30, 1: 1, 7: 7, 50: 50}
    assert len(kept) == expected.get(hold_out, len(kept)) <= 50
    again: list[int] = []
    assert list(set_apart(range(200), hold_out, again, seed=3, most=30)) == passed and again == kept


@pytest.mark.parametrize(("hold_out", "share"), [(0.25, 0.25), (5, 0.25), (0.9, 0.4), (None, 0.25)])
def test_each_row_is_as_likely_as_any_other(hold_out: float | None, share: float) -> None:
    """20 rows, 2,000 draws: standard error of a share below 0.011. A sample takes nothing away."""
    counts: Counter[int] = Counter()
    for seed in range(2000):
        kept: list[int] = []
        if hold_out is None:
            assert list(sampled(range(20), 5, kept, seed=seed)) == list(range(20)) and len(set(kept)) == 5
        else:
            list(set_apart(range(20), hold_out, kept, seed=seed, most=8))
        counts.update(kept)
    assert all(abs(counts[row] / 2000 - share) < 0.05 for row in range(20)), counts


@pytest.mark.parametrize("hold_out", [-0.1, 1.5, float("nan"), float("inf")])
def test_other_numbers_are_refused(hold_out: float) -> None:
    with pytest.raises(ValueError, match=r"hold_out must be a share in \[0, 1\) or a whole number of rows"):
        list(set_apart([1], hold_out, []))
