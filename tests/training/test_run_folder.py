"""Whose folder it is: nothing of others is touched, no run is lost by accident, nothing half-made stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.training import load_recipe, train
from st_xling.training.run_folder import RunFolder

RUN = {
    "recipe": {"name": "tr", "training": {"num_train_epochs": 1.0, "seed": 0}},
    "model": "tiny",
    "data": {"de-en": {"rows": 3}},
    "load_options": {"revision": "v1"},
}
TINY = {"hidden_size": 32, "layers": 1, "vocabulary": 300}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def short(**overrides: Any) -> Any:
    keys = {
        "training.max_steps": 1,
        "training.per_device_train_batch_size": 8,
        **{key.replace("__", "."): v for key, v in overrides.items()},
    }
    return load_recipe("tr", tiny=True, overrides=keys)


def test_an_occupied_folder_is_refused_and_untouched(tmp_path: Path, data: Any) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    before = snapshot(tmp_path)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match=r"--out must be empty or a run of ours: .* contains thesis.tex"):
            train(short(), data, tmp_path, model="tiny", tiny=TINY, **options)
    assert snapshot(tmp_path) == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"--out must be a folder: .*model is a file"):
        RunFolder(path, overwrite=True).check()
    assert path.read_text() == "mine"


def begin(path: Path, manifest: dict[str, Any] = RUN, **options: Any) -> Path | None:
    """A run that begins, and is killed there."""
    with RunFolder(path, **options) as folder:
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
    return checkpoint


def test_an_earlier_run_needs_a_word(tmp_path: Path) -> None:
    out = tmp_path / "a" / "run"
    assert begin(out) is None
    with pytest.raises(
        ValueError, match=r"holds an earlier run \(it can be continued with --resume\); use --overwrite"
    ):
        begin(out)
    RunFolder(out).finish()
    with pytest.raises(ValueError, match=r"holds an earlier run \(it is complete\); use --overwrite"):
        begin(out)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"data": {"de-en": {"rows": 4}}}, "data.de-en.rows differ"),
        ({"data": {"fr-en": {"rows": 3}}}, "data.de-en, data.fr-en differ"),
        (
            {"recipe": {"name": "tr", "training": {"num_train_epochs": 2.0, "seed": 0}}},
            "recipe.training.num_train_epochs differ",
        ),
    ],
)
def test_resuming_another_run_names_what_differs(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    begin(out, {**RUN, "command": "st-xling train tr", "version": "0.0"})
    before = snapshot(out)
    with pytest.raises(
        ValueError, match=f"--resume must repeat the run that .* holds: {named}; .*with st-xling train tr"
    ):
        begin(out, {**RUN, **changes}, resume=True)
    assert snapshot(out) == before


def test_resuming_the_same_run_by_another_command_and_version(tmp_path: Path) -> None:
    out = tmp_path / "run"
    begin(out, {**RUN, "command": "st-xling train tr", "version": "0.0"})
    assert begin(out, {**RUN, "command": "st-xling train tr --resume", "version": "9"}, resume=True) is None
    assert begin(tmp_path / "new", resume=True) is None  # nothing to resume: it starts
    assert RunFolder(tmp_path / "new").read_manifest() == {**RUN, "finished": False}


BAD = [
    (short(losses__translation_ranking__scale=-1.0), TINY, "scale must be above 0"),
    (short(), {"hidden_size": 33, "heads": 2}, "hidden_size a multiple of heads"),
]


@pytest.mark.parametrize(("recipe", "tiny", "message"), BAD, ids=[message for *_, message in BAD])
def test_an_error_while_preparing_leaves_nothing(
    recipe: Any, tiny: Any, message: str, data: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        train(recipe, data, tmp_path / "run", model="tiny", tiny=tiny)
    assert not (tmp_path / "run").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match=message):
        train(recipe, data, empty, model="tiny", tiny=tiny)
    assert list(empty.iterdir()) == []


def test_a_whole_run_then_overwriting_it(data: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = train(short(), data, out, model="tiny", tiny=TINY)
    assert first.steps == 1 and first.folder == out
    names = {path.name for path in out.iterdir()}
    assert {"model.safetensors", "modules.json", "results.json", "training"} <= names
    assert not any(name.startswith(".") for name in names)
    assert RunFolder(out).read_manifest()["finished"] is True

    before = snapshot(out)
    with pytest.raises(ValueError, match="earlier run"):
        train(short(), data, out, model="tiny", tiny=TINY)
    with pytest.raises(ValueError, match="scale must be above 0"):  # the replacement fails: the earlier run stands
        train(BAD[0][0], data, out, model="tiny", tiny=TINY, overwrite=True)
    with pytest.raises(ValueError, match=r"data\.vi-en\.rows, data\.vi-en\.sha8 differ"):
        train(short(), {"vi-en": data["vi-en"].select(range(20))}, out, model="tiny", tiny=TINY, resume=True)
    assert snapshot(out) == before

    train(short(training__seed=1), data, out, model="tiny", tiny=TINY, overwrite=True)
    after = snapshot(out)
    assert after["model.safetensors"] != before["model.safetensors"]
    assert RunFolder(out).read_manifest()["recipe"]["training"]["seed"] == 1
