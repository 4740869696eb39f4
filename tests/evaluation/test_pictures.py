"""Cosines before and after a training, also one that was stopped in between; scores counted in bins."""

import numpy as np
import pytest
from datasets import Dataset

from st_xling.evaluation.measures import EvaluatedPairs
from st_xling.evaluation.pictures import TrainingPicture, score_histogram


def test_the_start_is_kept_until_the_picture_is_drawn(pairs, make_model, tmp_path):
    data = {"xx-en": Dataset.from_dict(dict(zip(("source", "target"), zip(*pairs))))}
    (tmp_path / "training").mkdir()
    model = make_model().train()
    TrainingPicture(data, "tr").begin(model, tmp_path / "training")
    assert model.training and len(list((tmp_path / "training").iterdir())) == 1
    later = TrainingPicture(data, "tr")  # as another process that resumes the run
    for _ in range(2):  # without a start nothing is drawn
        later.end(make_model(seed=1), tmp_path)
        assert (tmp_path / "pictures" / "cosines.png").read_bytes().startswith(b"\x89PNG")
        assert not list((tmp_path / "training").iterdir())
    TrainingPicture({}, "tr").begin(model, tmp_path / "training")
    assert not list((tmp_path / "training").iterdir())


@pytest.mark.parametrize("scores", [[0.0, 0.1, 0.25, 0.5, 0.5, 0.74, 0.75, 1.0], [1.5] * 8])
def test_counts_are_those_of_a_plain_loop(scores):
    correct = [False, False, True, False, True, True, False, True]
    counts = {True: [0] * 4, False: [0] * 4}
    for score, hit in zip(scores, correct):
        counts[hit][min(int((score - scores[0]) / 0.25), 3)] += 1
    judged = EvaluatedPairs(np.array(scores), np.array(correct), n_gold=3)
    expected = {"low": scores[0], "high": scores[0] + 1.0, "correct": counts[True], "wrong": counts[False]}
    assert score_histogram(judged, bins=4) == expected
