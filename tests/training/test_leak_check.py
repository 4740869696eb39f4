"""A run looks for what judges it in what it learns from, tells, and drops or stops when told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers.base.evaluation import SequentialEvaluator

from st_xling.data import LeakError
from st_xling.evaluation import TatoebaEvaluator
from st_xling.training import train
from st_xling.training.run import evaluation_texts
from st_xling.training.run_folder import RunFolder
from tests.training.test_run_folder import TINY, short


@pytest.fixture
def evaluator(data: Any) -> TatoebaEvaluator:
    """Judges by two rows of the training data and one that is not in it."""
    rows = data["vi-en"].select([3, 7])
    source, target = [*rows["source"], "Xin chào các bạn!"], [*rows["target"], "Hello, friends!"]
    return TatoebaEvaluator({"vie": (source, target)}, name="dev")


def test_the_texts_of_evaluators(evaluator: TatoebaEvaluator) -> None:
    other = TatoebaEvaluator({"fra": (["a"], ["b"])}, name="test")
    assert list(evaluation_texts(SequentialEvaluator([evaluator, other]))) == ["dev vie", "test fra"]
    assert evaluation_texts(evaluator)["dev vie"] == evaluator.pairs["vie"]
    assert evaluation_texts(None) == {} == evaluation_texts(object())


def test_telling(data: Any, evaluator: TatoebaEvaluator, tmp_path: Path, logged: Any) -> None:
    options: dict[str, Any] = {"model": "tiny", "tiny": TINY, "evaluator": evaluator, "evaluation": {"later": ["x"]}}
    train(short(), data, tmp_path / "run", **options)
    leak = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["leak"]
    assert {name: part["pair"]["leaked"] for name, part in leak["sets"].items() if "pair" in part} == {"dev vie": 2}
    assert "later" in leak["sets"] and leak["dropped"] is False
    assert "dev vie" in logged()


def test_a_run_without_the_leaked_rows(data: Any, evaluator: TatoebaEvaluator, tmp_path: Path) -> None:
    """What is trained on, and what a resumed run must repeat, are the rows that are left."""
    out = tmp_path / "run"
    train(short(), data, out, model="tiny", tiny=TINY, evaluator=evaluator, on_leak="drop")
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    dropped = leak["train"]["vi-en"]["leaked"]
    assert leak["sets"]["dev vie"]["source"]["leaked"] == 2
    assert leak["signature"].startswith("leak|key:nfkc-casefold-lmn|match:exact|train:vi-en@")
    assert leak["dropped"] is True and leak["train"]["vi-en"]["rows"] == 24 and dropped >= 2
    assert RunFolder(out).read_manifest()["data"]["vi-en"]["rows"] == 24 - dropped
    with pytest.raises(ValueError, match=r"data\.vi-en\.rows"):
        train(short(), data, out, model="tiny", tiny=TINY, evaluator=evaluator, resume=True)


def test_a_run_that_stops_leaves_nothing(data: Any, evaluator: TatoebaEvaluator, tmp_path: Path) -> None:
    with pytest.raises(LeakError, match=r"1 of 1 evaluation sets share some \(dev vie\)"):
        train(short(), data, tmp_path / "run", model="tiny", tiny=TINY, evaluator=evaluator, on_leak="fail")
    assert not (tmp_path / "run").exists()
