"""The folder of a slim model: whole, or as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.evaluation.slim.write import write_slim
from tests.models.slim.encoders import encoder


def test_lower_case_is_kept(tmp_path: Path) -> None:
    """The host reads the key, and does not save it."""
    model = encoder("tiny")
    model[0].do_lower_case = True
    write_slim(model, tmp_path / "small", {"source": "big"}, source="big")
    assert SentenceTransformer(str(tmp_path / "small"))[0].do_lower_case is True


class FullDisk:
    """A model of which only the first file can be saved."""

    def save_pretrained(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "config.json").write_text("{}", encoding="utf-8")
        raise OSError(28, "No space left on device")


def test_a_failure_leaves_the_earlier_model(tmp_path: Path) -> None:
    out = tmp_path / "small"
    write_slim(encoder("tiny"), out, {"source": "big"}, source="big")
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert {"model.safetensors", "results.json"} <= set(before)
    broken: Any = FullDisk()
    with pytest.raises(OSError, match="No space left"):
        write_slim(broken, out, {}, source="big")
    with pytest.raises(OSError, match="No space left"):
        write_slim(broken, tmp_path / "other", {}, source="big")
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert list(tmp_path.iterdir()) == [out]


def test_figures_that_json_cannot_hold_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_slim(encoder("tiny"), tmp_path / "small", {"source": object()}, source="big")
    assert list(tmp_path.iterdir()) == []
