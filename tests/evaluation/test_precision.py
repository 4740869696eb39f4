"""P@N as an evaluator over pairs of languages."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from st_xling.evaluation import (
    PrecisionEvaluator,
    precision_at,
)
from st_xling.evaluation.precision import DIRECTIONS
from st_xling.models.normalization import Centering, apply_centering

PAIRS = {"zh-vi": (["你好。", "谢谢。", "再见。"], ["Xin chào.", "Cảm ơn.", "Tạm biệt."])}


def test_faults() -> None:
    with pytest.raises(ValueError, match="1 or more: got \\(\\)"):
        PrecisionEvaluator(PAIRS, at=())
    with pytest.raises(ValueError, match="zh-vi has 2 and 3 texts; align them"):
        PrecisionEvaluator({"zh-vi": (PAIRS["zh-vi"][0][:2], PAIRS["zh-vi"][1])})
    with pytest.raises(ValueError, match="zh-vi: queries must hold finite vectors .* only zeros in row 1"):
        PrecisionEvaluator(PAIRS).measure_vectors({"zh-vi": (np.diag([1.0, 0, 1]), np.eye(3))})


def test_judged_vectors_by_hand() -> None:
    """Source 0 and 1 are swapped, 2 is right: P@1 is 1/3 both ways, P@2 is 1."""
    source = np.array([[0.5, 1, 0], [1, 0.5, 0], [0, 0, 1]])
    evaluator = PrecisionEvaluator({**PAIRS, "zh-en": PAIRS["zh-vi"]}, at=(1, 2))
    metrics = evaluator.measure_vectors({"zh-vi": (source, np.eye(3)), "zh-en": (np.eye(3), np.eye(3))}).metrics
    assert metrics["zh-vi_source_to_target_p@1"] == metrics["zh-vi_mean_p@1"] == pytest.approx(1 / 3)
    assert metrics["zh-vi_mean_p@2"] == 1.0
    assert metrics["mean_p@1"] == metrics["target_to_source_p@1"] == pytest.approx(2 / 3)


def test_evaluates_a_model(make_model) -> None:
    evaluator = PrecisionEvaluator(PAIRS, name="dev")
    model = make_model()
    metrics = evaluator(model, epoch=1)
    assert evaluator.primary_metric == "dev_mean_p@1" and 0 <= metrics["dev_mean_p@1"] <= metrics["dev_mean_p@5"] == 1
    source, target = (model.encode(side) for side in PAIRS["zh-vi"])
    assert metrics["dev_zh-vi_source_to_target_p@1"] == precision_at(source, target)[0][1]
    two = PrecisionEvaluator({**PAIRS, "zh-en": PAIRS["zh-vi"]}, at=(1, 2)).evaluate(model)
    assert [line.split()[0] for line in two.table("pair").splitlines()[:3]] == ["pair", "zh-en", "zh-vi"]
    assert two.rows[-1].values[:2] == [two.metrics[f"precision_{way}_p@1"] for way in DIRECTIONS[:2]]
    assert evaluator.signature.startswith("precision|at:1,5|pairs:zh-vi|direction:both|ties:index|data:dev@")
    other = PrecisionEvaluator({"zh-vi": (PAIRS["zh-vi"][1], PAIRS["zh-vi"][0])}, name="dev")
    assert other.signature != evaluator.signature


def test_means_of_languages_are_found_in_any_spelling(make_model, caplog: pytest.LogCaptureFixture) -> None:
    """And text of a language that has none is told of, and signed."""
    means = {"zho": torch.linspace(-0.3, 0.3, 16), "vie": torch.linspace(0.3, -0.2, 16)}
    model = apply_centering(make_model().eval(), Centering(torch.zeros(16), means))
    evaluator = PrecisionEvaluator(PAIRS, name="dev")
    found = evaluator(model)
    source, target = (model.encode(side, task=task) for side, task in zip(PAIRS["zh-vi"], ("zho", "vie")))
    assert found["dev_zh-vi_source_to_target_p@1"] == precision_at(source, target)[0][1]
    assert "center:joint" not in evaluator.signature and not caplog.text
    other = PrecisionEvaluator({"th-vi": PAIRS["zh-vi"]}, name="dev")
    other(model)
    assert "|center:joint|" in other.signature and "centered by their joint mean" in caplog.text
