"""Token states before and after a training, also one that was stopped in between; scores counted in bins."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from safetensors.torch import load_file

from st_xling.evaluation.measures import EvaluatedPairs
from st_xling.evaluation.pictures import TrainingPicture, score_histogram


@pytest.fixture
def data(pairs) -> dict[str, Dataset]:
    rows = [
        {"source": source, "target": target, "source_language": "xx", "target_language": "en"}
        for source, target in pairs
    ]
    return {"xx-en": Dataset.from_list(rows)}


def test_the_start_is_kept_until_the_picture_is_drawn(data, make_model, tmp_path):
    (tmp_path / "training").mkdir()
    model = make_model().train()
    TrainingPicture(data, "tr").begin(model, tmp_path / "training")
    assert model.training
    kept = load_file(tmp_path / "training" / "token_states.safetensors")
    tokens = sum(len(model.tokenizer(text)["input_ids"][:24]) - 2 for text in data["xx-en"]["source"])
    assert kept["source"].shape == (tokens, 2)
    shown = len(data["xx-en"]["source"][:14])
    assert kept["cosines"].shape == (shown, shown)
    later = TrainingPicture(data, "tr")  # as another process that resumes the run
    assert later.end(make_model(seed=1), tmp_path) == [
        tmp_path / "pictures" / name for name in ("cosines.png", "token_states.png")
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "pictures").iterdir())
    assert [path.name for path in (tmp_path / "training").iterdir()] == []


def test_without_a_start_or_sentences_nothing_is_drawn(data, make_model, tmp_path):
    (tmp_path / "training").mkdir()
    assert TrainingPicture(data, "tr").end(make_model(), tmp_path) == []
    TrainingPicture({}, "tr").begin(make_model(), tmp_path / "training")
    assert not list((tmp_path / "training").iterdir()) and not (tmp_path / "pictures").exists()


def judged(scores: list[float], correct: list[bool]) -> EvaluatedPairs:
    return EvaluatedPairs(np.asarray(scores, dtype=np.float64), np.asarray(correct, dtype=bool), n_gold=3)


def test_counts_are_those_of_a_plain_loop():
    scores = [0.0, 0.1, 0.25, 0.5, 0.5, 0.74, 0.75, 1.0]
    correct = [False, False, True, False, True, True, False, True]
    counts = {True: [0] * 4, False: [0] * 4}
    for score, hit in zip(scores, correct):
        counts[hit][min(int(score / 0.25), 3)] += 1
    expected = {"low": 0.0, "high": 1.0, "correct": counts[True], "wrong": counts[False]}
    assert score_histogram(judged(scores, correct), bins=4) == expected


def test_equal_scores_and_none_at_all():
    found = score_histogram(judged([1.5, 1.5, 1.5], [True, False, False]))
    assert sum(found["correct"]) == 1 and sum(found["wrong"]) == 2 and found["low"] < found["high"]
    assert score_histogram(judged([], [])) == {}
