"""The folder of a slim model: whole, or as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.models.slim.slim_model import model_folder, write_model
from tests.models.slim.encoders import encoder


def write(model: Any, out: Path, figures: dict[str, Any], *, overwrite: bool = True) -> None:
    with model_folder(out, "big", overwrite=overwrite) as folder:
        write_model(folder, model, "big", figures)


def test_lower_case_is_kept(tmp_path: Path) -> None:
    """Sentence-transformers reads the key, and does not save it."""
    model = encoder("tiny")
    model[0].do_lower_case = True
    write(model, tmp_path / "small", {"source": "big"})
    assert SentenceTransformer(str(tmp_path / "small"))[0].do_lower_case is True


class Saved:
    """What stands for a model: files with a word in them."""

    def __init__(self, word: str, error: Exception | None = None) -> None:
        self.word, self.error = word, error

    def modules(self) -> list[Any]:
        return []

    def save_pretrained(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "config.json").write_text(self.word, encoding="utf-8")
        if self.error is not None:
            raise self.error
        (Path(folder) / "model.safetensors").write_text(self.word, encoding="utf-8")


def words(folder: Path) -> set[str]:
    return {(folder / name).read_text(encoding="utf-8") for name in ("config.json", "model.safetensors")}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("I/O: No space left (os 28)")])
def test_a_failure_leaves_the_earlier_model(error: Exception, tmp_path: Path) -> None:
    out = tmp_path / "small"
    write(Saved("old"), out, {"source": "big"})
    for goal in (out, tmp_path / "other"):
        with pytest.raises(OSError, match=f"No space left.*{goal} could.*Make room"):
            write(Saved("new", error), goal, {})
    assert words(out) == {"old"}
    assert list(tmp_path.iterdir()) == [out] and not list(out.glob(".*"))


def test_overwriting_leaves_the_users_files_and_removes_what_was_of_the_weights(tmp_path: Path) -> None:
    out = tmp_path / "small"
    write(Saved("old"), out, {"source": "big"})
    with pytest.raises(ValueError, match="earlier model of slim; use --overwrite"):
        write(Saved("new"), out, {}, overwrite=False)
    for name in ("notes.txt", "mining.json"):
        (out / name).write_text("mine")
    write(Saved("new"), out, {"source": "big"})
    assert words(out) == {"new"} and (out / "notes.txt").exists() and not (out / "mining.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="contains notes.txt, which this command did not write"):
        write(Saved("new"), tmp_path / "other", {})


def test_figures_that_json_cannot_hold_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        write(Saved("new"), tmp_path / "small", {"source": object()})
    assert list(tmp_path.iterdir()) == []


def test_two_at_once(tmp_path: Path) -> None:
    out = tmp_path / "small"
    with model_folder(out, "big"), pytest.raises(ValueError, match="another process is writing"):
        write(Saved("new"), out, {})
    assert list(tmp_path.iterdir()) == [out]
