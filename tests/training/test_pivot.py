"""The pivot language becomes the target side of what is trained on, and the user is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Dataset

from st_xling.data.phrasebook import parallel_phrases
from st_xling.training import load_recipe, train
from st_xling.training.run_folder import RunFolder

TINY = {"hidden_size": 16, "layers": 2, "vocabulary": 200}


def phrases(source: str, target: str) -> Dataset:
    columns = ["source", "target", "source_language", "target_language"]
    return parallel_phrases(source, target, size=20).select_columns(columns)


@pytest.mark.parametrize(
    ("pivot", "names", "told"),
    [
        ("en", {"de-en": 20, "fr-en": 20}, ["de-en: 20 rows turned, so that en is the target"]),
        (None, {"en-de": 20, "fr-en": 20}, ["the target side holds several languages: de, en"]),
        ("fr", {"en-de": 20, "en-fr": 20}, ["en-fr: 20 rows turned", "several languages: de, fr"]),
    ],
)
def test_sides_are_put_in_order(
    pivot: str | None, names: dict[str, int], told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"en-de": phrases("en", "de"), "fr-en": phrases("fr", "en")}
    changes = {"training.max_steps": 1, "training.per_device_train_batch_size": 8, "training.pivot": pivot}
    train(load_recipe("dap", tiny=True, overrides=changes), data, tmp_path / "run", model="tiny", tiny=TINY)
    errors = capsys.readouterr().err
    assert all(line in errors for line in told), errors
    manifest = RunFolder(tmp_path / "run").read_manifest()
    assert {name: part["rows"] for name, part in manifest["data"].items()} == names


def test_a_pivot_is_a_language_or_none() -> None:
    assert load_recipe("tr", overrides={"training.pivot": "none"}).training.pivot is None
    with pytest.raises(ValueError, match="training.pivot is out of range .*'English!'"):
        load_recipe("tr", overrides={"training.pivot": "English!"})


def test_one_language_on_both_sides_is_refused(tmp_path: Path) -> None:
    data = {"en-en": phrases("en", "de").map(lambda row: {"target_language": "en"})}
    with pytest.raises(ValueError, match="en-en: expected two languages, got en-en"):
        train(load_recipe("tr", tiny=True), data, tmp_path / "run", model="tiny", tiny=TINY)
    assert not (tmp_path / "run").exists()
