"""Overwriting: an earlier run's own files are removed, those of others stay; and which checkpoints are complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.training import NotFiniteError, load_recipe, train
from st_xling.training.run import write_log
from st_xling.training.run_folder import RunFolder, is_complete, mark_complete, remove_earlier, save_folder
from tests.training.test_run_folder import TINY, short, snapshot


class TwoFiles:
    """A model: what it says, in two files; the second in a folder of its own."""

    def __init__(self, says: str, *, dense: bool) -> None:
        self.says, self.dense = says, dense

    def save_pretrained(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / "model.txt").write_text(self.says)
        if self.dense:
            (Path(path) / "2_Dense").mkdir(exist_ok=True)
            (Path(path) / "2_Dense" / "model.txt").write_text(self.says)


def run(out: Path, says: str, *, dense: bool = False, **options: Any) -> None:
    """The file operations of a run."""
    with RunFolder(out, **options) as folder:
        folder.claim({"recipe": says})
        folder.begin({"recipe": says})
        write_log(folder, [{"loss": 1.0}])
        folder.save_model(TwoFiles(says, dense=dense))
        (out / "results.json").write_text(says)
        folder.finish()


def model(out: Path) -> tuple[str, bool]:
    return (out / "model.txt").read_text(), (out / "2_Dense").exists()


def test_what_overwriting_removes(tmp_path: Path) -> None:
    """Before training: the model that ``run.json`` lists, what belongs to it, and all of the run's own folder."""
    out = tmp_path / "run"
    run(out, "old", dense=True)
    for name in ("notes.txt", "2_Dense/notes.txt", "mining.json", "card.json"):
        (out / name).write_text("mine")
    checkpoint(out / "training", 1)
    with RunFolder(out, overwrite=True) as folder:
        assert model(out) == ("old", True)  # nothing is removed before data, model and options were looked at
        folder.begin({"recipe": "new"})
        names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
        assert names - {".st-xling.lock"} == {"notes.txt", "2_Dense/notes.txt", "card.json", "training/run.json"}
    run(out, "new", resume=True)  # as if it had been killed there
    assert model(out) == ("new", True) and RunFolder(out).is_finished
    assert RunFolder(out).read_manifest()["recipe"] == "new"


def test_a_folder_to_start_from_is_there_when_it_is_complete(tmp_path: Path) -> None:
    class Killed(TwoFiles):
        def save_pretrained(self, path: str) -> None:
            super().save_pretrained(path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_folder(Killed("old", dense=True), tmp_path / "base")
    assert not (tmp_path / "base").exists()
    save_folder(TwoFiles("new", dense=False), tmp_path / "base")
    assert model(tmp_path / "base") == ("new", False)
    assert [path.name for path in tmp_path.iterdir()] == ["base"]


@pytest.mark.parametrize("where", ["teacher", "start", "data", "checkpoint", "link"])
def test_an_output_never_replaces_an_input(where: str, tmp_path: Path) -> None:
    """Wherever it is named: as the start, in a recipe, or as data."""
    out = tmp_path / "run"
    run(out, "old")
    checkpoint(out / "training", 1)
    (tmp_path / "link").symlink_to(out)
    before = snapshot(out)
    options: dict[str, Any] = {
        "teacher": {"inputs": [str(out)]},
        "start": {"start": str(out)},
        "data": {"inputs": [f"de-en={out / 'model.txt'}?size=3"]},
        "checkpoint": {"start": str(out / "training" / "checkpoint-1")},
        "link": {"inputs": [str(tmp_path / "link")]},
    }[where]
    for overwrite in ({"overwrite": True}, {"resume": True}):
        with pytest.raises(ValueError, match="--out must not replace an input: .* is part of the run"):
            RunFolder(out, **options, **overwrite).check()
        with pytest.raises(ValueError, match="--out must not replace an input"), RunFolder(out, **options, **overwrite):
            pass
    assert snapshot(out) == before
    (out / "pairs.tsv").write_text("mine")
    run(out, "new", overwrite=True, inputs=[f"de-en={out / 'pairs.tsv'}", "tiny"])
    assert (out / "pairs.tsv").exists()


@pytest.mark.slow
def test_data_in_the_folder_and_a_run_that_fails(data: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(short(), data, out, model="tiny", tiny=TINY)
    (out / "pairs.tsv").write_text("read while it is trained")
    before = snapshot(out)
    train(short(training__seed=1), data, out, model="tiny", tiny=TINY, overwrite=True)
    assert (out / "pairs.tsv").exists()
    assert snapshot(out)["model.safetensors"] != before["model.safetensors"]
    with pytest.raises(NotFiniteError, match="there is no checkpoint yet"):
        train(
            short(training__learning_rate=1e38, training__max_steps=5),
            data,
            out,
            model="tiny",
            tiny=TINY,
            overwrite=True,
        )
    assert sorted(snapshot(out)) == ["pairs.tsv", "training/run.json"]
    with pytest.raises(NotFiniteError):
        train(
            short(training__learning_rate=1e38, training__max_steps=5),
            data,
            tmp_path / "other",
            model="tiny",
            tiny=TINY,
        )
    assert not (tmp_path / "other").exists()


def test_a_teacher_is_not_replaced(data: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    train(short(), data, out, model="tiny", tiny=TINY)
    before = snapshot(out)
    recipe = load_recipe("distill", tiny=True, overrides={"teacher.model": str(out)})
    with pytest.raises(ValueError, match="--out must not replace an input: .* is part of the run"):
        train(recipe, data, out, model="tiny", tiny=TINY, overwrite=True)
    words = ["--set", f"teacher.model={out}", "--json", str(out / "modules.json"), "--model", "tiny"]
    assert main(["train", "distill", *words, "--data", "phrasebook:de?size=9", "--out", str(tmp_path / "student")]) == 2
    assert "--json must not replace what is read" in capsys.readouterr().err
    assert snapshot(out) == before


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with RunFolder(out):
        for options in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(ValueError, match=f"another process is writing {out}"):
                RunFolder(out, **options).check()
            with pytest.raises(ValueError, match=f"another process is writing {out}"), RunFolder(out, **options):
                pass
    run(out, "new")


@pytest.mark.parametrize("content", ["[]", "{", "7", ""])
def test_a_damaged_manifest_is_named(content: str, tmp_path: Path) -> None:
    run(tmp_path / "run", "old")
    (tmp_path / "run" / "training" / "run.json").write_text(content)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match=r"run\.json: expected "):
            run(tmp_path / "run", "old", **options)
    assert model(tmp_path / "run") == ("old", False)


def checkpoint(folder: Path, step: int, *, complete: bool = True) -> None:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "trainer_state.json").write_text("{}")
    if complete:
        mark_complete(path, seconds=step)


@pytest.mark.parametrize(
    ("keep", "best", "left"),
    [
        (None, None, {1, 2, 3, 4, 9}),
        (1, None, {4, 9}),
        (2, None, {3, 4, 9}),  # 2 is incomplete and goes; 9, not yet reached again, stays
        (3, None, {1, 3, 4, 9}),
        (1, 1, {1, 4, 9}),
        (2, 1, {1, 4, 9}),
        (99, 1, {1, 3, 4, 9}),
    ],
)
def test_which_checkpoints_are_removed(keep: int | None, best: int | None, left: set[int], tmp_path: Path) -> None:
    for step in (1, 2, 3, 9, 4):
        checkpoint(tmp_path, step, complete=step not in (2, 9))
    (tmp_path / "checkpoint-foo").mkdir()
    remove_earlier(tmp_path / "checkpoint-4", keep=keep, best=best and f"elsewhere/checkpoint-{best}")
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"checkpoint-{step}" for step in left} | {"checkpoint-foo"}


@pytest.mark.slow
def test_a_full_disk_names_the_checkpoint(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch.save says it; the checkpoint before stands and the run ends as it would have."""
    import torch

    out, recipe = tmp_path / "run", short(training__max_steps=4, training__eval_steps=2, training__logging_steps=2)
    whole = train(recipe, data, tmp_path / "whole", model="tiny", tiny=TINY)
    save, seen = torch.save, 0

    def full(*args: Any, **options: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > 4:
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")
        save(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(OSError, match="Make room and run") as error:
            train(recipe, data, out, model="tiny", tiny=TINY)
    assert error.value.errno is not None and is_complete(out / "training" / "checkpoint-2")
    assert not is_complete(out / "training" / "checkpoint-4")
    train(recipe, data, out, model="tiny", tiny=TINY, resume=True)
    assert snapshot(out)["model.safetensors"] == snapshot(whole.folder)["model.safetensors"]
