"""The picture of token states before and after a training, also one that was stopped in between."""

from __future__ import annotations

import pytest
from datasets import Dataset
from safetensors.torch import load_file

from st_xling.evaluation.training_picture import TrainingPicture


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
    later = TrainingPicture(data, "tr")  # as another process that resumes the run
    assert later.end(make_model(seed=1), tmp_path) == tmp_path / "pictures" / "token_states.png"
    assert (tmp_path / "pictures" / "token_states.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "training").iterdir()] == []


def test_without_a_start_or_sentences_nothing_is_drawn(data, make_model, tmp_path):
    (tmp_path / "training").mkdir()
    assert TrainingPicture(data, "tr").end(make_model(), tmp_path) is None
    TrainingPicture({}, "tr").begin(make_model(), tmp_path / "training")
    assert not list((tmp_path / "training").iterdir()) and not (tmp_path / "pictures").exists()
