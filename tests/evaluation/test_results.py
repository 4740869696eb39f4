"""Figures kept in a model's ``results.json``: added, replaced, read again; what is broken is told and left."""

import json
from pathlib import Path
from typing import Any

import pytest

from st_xling import __version__
from st_xling.evaluation import SavedResults, read_saved_results, save_results
from st_xling.utils.tables import Column, Row


def evaluation(task: str = "tatoeba", signature: str = "tatoeba|x", **figures: Any) -> SavedResults:
    columns = [Column("mean", "accuracy")]
    rows = [Row("deu", [0.5])]
    return SavedResults(task, figures or {"tatoeba_mean": 0.5}, signature, "st-xling evaluate …", columns, rows)


def test_what_is_kept_is_read_again_and_replaced_by_the_same(tmp_path: Path) -> None:
    assert read_saved_results(tmp_path) == []
    path = tmp_path / "results.json"
    path.write_text('{"training": {"best_dev": NaN}, "leak": {"rows": 3}}', encoding="utf-8")
    first = evaluation()
    second = evaluation("transfer-pos", "transfer|x", languages={"th": {"accuracy": 0.25}}, größe=[1])
    assert save_results(str(tmp_path), first) == path
    save_results(tmp_path, second)
    assert read_saved_results(str(tmp_path)) == [first, second] and first.version == __version__
    save_results(tmp_path, evaluation(threshold=float("inf"), rows=[{"f1": float("nan")}], ends=(0.5, float("-inf"))))
    saved = read_saved_results(tmp_path)
    assert saved[0].figures == {"threshold": None, "rows": [{"f1": None}], "ends": [0.5, None]}
    assert saved[1:] == [second]
    written = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)  # no infinity in the file
    assert list(written) == ["training", "leak", "evaluations"] and written["leak"] == {"rows": 3}
    assert written["training"] == {"best_dev": None}


def test_a_broken_file_is_named_and_left(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("{", encoding="utf-8")
    for call in (lambda: read_saved_results(tmp_path), lambda: save_results(tmp_path, evaluation())):
        with pytest.raises(ValueError, match=r"results\.json: expected JSON"):
            call()
    assert path.read_text(encoding="utf-8") == "{"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"evaluations": 5}, "a list at evaluations, got 5"),
        ({"evaluations": [5]}, r"an object at evaluations\[0\], got 5"),
        ({"evaluations": [{"task": 7}]}, r"text at evaluations\[0\]\.task, got 7"),
        ({"evaluations": [{"task": "tatoeba"}]}, "'columns'"),
    ],
)
def test_evaluations_of_another_form_are_named_and_left(content: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A results.json of somebody else in the model's folder ended in a traceback, of ``card`` and of ``--keep``."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    for call in (lambda: read_saved_results(tmp_path), lambda: save_results(tmp_path, evaluation())):
        with pytest.raises(ValueError, match=rf"results\.json: .*{message}"):
            call()
    assert json.loads(path.read_text(encoding="utf-8")) == content


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        (
            "bucc|data:phrasebook-600x100-seed0|st-xling:1",
            "phrasebook-600x100-seed0",
        ),  # read as BUCC on the demo's card
        ("bucc|k:4|data:user/news@0a1b2c3d|st-xling:1", "user/news"),
        ("tatoeba|data:a@b@0a1b2c3d", "a@b"),
        ("transfer|data:0a1b2c3d", "unnamed"),
        ("tatoeba|k:4", "unnamed"),
    ],
)
def test_name_of_the_data(signature: str, name: str) -> None:
    """Never that of the task, which is called like a benchmark."""
    assert evaluation(signature=signature).data_name == name


def test_what_a_later_version_saves_is_passed_over_and_stays(tmp_path: Path) -> None:
    """An older version on another machine refused the whole file, and told to remove it."""
    save_results(tmp_path, evaluation())
    path = tmp_path / "results.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["evaluations"][0]["machine"] = "a big one"
    content["evaluations"][0]["rows"][0]["color"] = "red"
    path.write_text(json.dumps(content), encoding="utf-8")
    save_results(tmp_path, evaluation("xsim"))
    first = json.loads(path.read_text(encoding="utf-8"))["evaluations"][0]
    assert first == content["evaluations"][0]
    assert read_saved_results(tmp_path) == [evaluation(), evaluation("xsim")]


def test_results_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder .*absent"):
        save_results(tmp_path / "absent", evaluation())
    assert not list(tmp_path.iterdir())
