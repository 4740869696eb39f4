"""The folder of a model: whole, or as it was; models are known again by what their embeddings depend on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from st_xling.models.sidecar import model_fingerprint, model_folder, write_model


def write(model: Any, out: Path) -> None:
    with model_folder(out, "big", "slim", overwrite=True) as folder:
        write_model(folder, model, "big", {})


class Saved:
    """What stands for a model: files with a word in them."""

    def __init__(self, word: str, error: Exception | None = None) -> None:
        self.word = word
        self.error = error

    def save_pretrained(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "config.json").write_text(self.word, encoding="utf-8")
        if self.error is not None:
            raise self.error
        (Path(folder) / "model.safetensors").write_text(self.word, encoding="utf-8")


def test_a_failure_leaves_the_earlier_model(tmp_path: Path) -> None:
    out = tmp_path / "small"
    write(Saved("old"), out)
    for goal in (out, tmp_path / "other"):
        with pytest.raises(OSError, match="No space left"):
            write(Saved("new", OSError(28, "No space left on device")), goal)
    assert {(out / name).read_text() for name in ("config.json", "model.safetensors")} == {"old"}
    assert list(tmp_path.iterdir()) == [out] and not list(out.glob(".*"))


def test_a_pooler_that_no_embedding_reads_is_left_out(make_model: Callable[..., Any]) -> None:
    """transformers gives a checkpoint without one another each time it is loaded."""
    model = make_model()
    before = model_fingerprint(model)
    pooler = model[0].auto_model.pooler.dense.weight
    with torch.no_grad():
        pooler.add_(1.0)
    assert model_fingerprint(model) == before
    with torch.no_grad():
        next(model[0].auto_model.encoder.parameters()).add_(1.0)
    assert model_fingerprint(model) != before


def test_overwriting_keeps_the_users_files_and_removes_thresholds(tmp_path: Path) -> None:
    """``mining.json`` held for the weights that went: with the new ones, ``mine`` would have used its thresholds."""
    out = tmp_path / "small"
    write(Saved("old"), out)
    for name in ("notes.txt", "mining.json"):
        (out / name).write_text("mine")
    write(Saved("new"), out)
    assert (out / "config.json").read_text() == "new"
    assert (out / "notes.txt").exists() and not (out / "mining.json").exists()


def test_a_report_that_json_cannot_hold_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(TypeError, match="not JSON serializable"),
        model_folder(tmp_path / "small", "big", "slim") as folder,
    ):
        write_model(folder, Saved("new"), "big", {"source": object()})
    assert list(tmp_path.iterdir()) == []


def test_models_of_other_backends_are_told_apart(make_model: Callable[..., Any]) -> None:
    """Their weights are not to be read: what they compute stands for them."""
    first = make_model()
    same = make_model()
    other = make_model(seed=1)
    for model in (first, same, other):
        model.backend = "openvino"
        model.state_dict = dict
    assert model_fingerprint(first) == model_fingerprint(same) != model_fingerprint(other)
