"""What happens to a folder between two file operations: an earlier run stands until the new one can be gone on with."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.training import NotFiniteError, train
from st_xling.training.checkpoint import damage, newest_checkpoint, remove_earlier, seal
from st_xling.training.run_folder import RunFolder
from st_xling.training.saving import write_log
from st_xling.utils.failures import explain
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


def run(out: Path, says: str, *, dense: bool = False, checkpoints: bool = True, **options: Any) -> None:
    """The file operations of a run, of one that has checkpoints or of one that has none."""
    with RunFolder(out, **options) as folder:
        going_on = folder.claim({"recipe": says})
        folder.begin({"recipe": says})
        if checkpoints and going_on is None:
            checkpoint = folder.training / "checkpoint-1"
            checkpoint.mkdir(exist_ok=True)
            (checkpoint / "trainer_state.json").write_text("{}")
            seal(checkpoint)
            shutil.rmtree(folder.replaced, ignore_errors=True)
        write_log(folder, [{"loss": 1.0}])
        folder.save_model(TwoFiles(says, dense=dense))
        (out / "results.json").write_text(says)
        folder.finish()


class Killed(BaseException):
    """Stands for kill -9: from then on no file operation gets through, those of tidying up neither."""


_EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "shutil.rmtree"}
_left: list[int] = []  # operations that still get through; empty: all


@functools.cache
def _watch() -> None:
    def hook(event: str, values: tuple[Any, ...]) -> None:
        if _left and event in _EVENTS and not str(values[0]).endswith((".py", ".pyc")):
            _left[0] -= 1
            if _left[0] < 0:
                raise Killed

    sys.addaudithook(hook)


def killed_at(step: int, call: Callable[[], None]) -> bool:
    """Whether ``call`` is killed at its file operation number ``step``, counted from 1."""
    _watch()
    _left.append(step - 1)
    try:
        call()
    except Killed:
        return True
    finally:
        _left.clear()
    return False


def model(out: Path) -> tuple[str, bool]:
    return (out / "model.txt").read_text(), (out / "2_Dense").exists()


def assert_tidy(out: Path) -> None:
    assert not [path for path in out.rglob("*") if path.name in (".saving", ".replaced") or path.suffix == ".tmp"]
    assert RunFolder(out).read_manifest()["finished"] is True


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are killed here, not machines."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("checkpoints", [True, False])
def test_killed_anywhere_in_a_first_run(checkpoints: bool, tmp_path: Path) -> None:
    """The plain command starts again until there is a run to resume; the others always work."""
    step = 0
    while True:
        step += 1
        torn = tmp_path / f"run-{step}"
        if not killed_at(step, functools.partial(run, torn, "new", checkpoints=checkpoints)):
            break
        for options in ({}, {"resume": True}, {"overwrite": True}):
            out = tmp_path / "copy"
            shutil.rmtree(out, ignore_errors=True)
            if torn.exists():
                shutil.copytree(torn, out)
            if not options and (out / "training" / "run.json").exists():
                with pytest.raises(ValueError, match="earlier run"):
                    RunFolder(out).check()
                continue
            run(out, "new", checkpoints=checkpoints, **options)
            assert model(out) == ("new", False), (step, options)
            assert_tidy(out)
    assert step > 20


@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("checkpoints", [True, False])
def test_killed_anywhere_while_overwriting(checkpoints: bool, tmp_path: Path) -> None:
    """Before the new run's first checkpoint the earlier run is what it was; after that the new one can be resumed."""
    step, restored, resumed = 0, 0, 0
    while True:
        step += 1
        out = tmp_path / f"run-{step}"
        run(out, "old", dense=True)
        (out / "notes.txt").write_text("mine")
        (out / "2_Dense" / "notes.txt").write_text("mine")
        (out / "mining.json").write_text("{}")
        before = snapshot(out)
        if not killed_at(step, functools.partial(run, out, "new", checkpoints=checkpoints, overwrite=True)):
            break
        with pytest.raises(ValueError, match="earlier run"):  # any next command
            RunFolder(out).check()
        if RunFolder(out).read_manifest()["recipe"] == "old":
            assert snapshot(out).items() >= before.items(), step
            run(out, "new", checkpoints=checkpoints, overwrite=True)
            restored += 1
        else:
            run(out, "new", checkpoints=checkpoints, resume=True)
            resumed += 1
        assert model(out)[0] == "new" and not (out / "2_Dense" / "model.txt").exists(), step
        assert not (out / "mining.json").exists(), "thresholds of another model"
        assert (out / "notes.txt").read_text() == (out / "2_Dense" / "notes.txt").read_text() == "mine"
        assert_tidy(out)
    assert restored > 5 and resumed > 5


def test_files_of_others_are_not_removed(tmp_path: Path) -> None:
    out, outside = tmp_path / "run", tmp_path / "outside.txt"
    outside.write_text("mine")
    run(out, "old")
    folder = RunFolder(out)
    folder.write_manifest({**folder.read_manifest(), "files": ["../outside.txt", str(outside), "model.txt", 7, None]})
    (out / "training" / "data.tsv").write_text("a\tb\n")
    with pytest.raises(ValueError, match=r"data\.tsv there was written by no run"):
        run(out, "new", overwrite=True)
    (out / "training" / "data.tsv").unlink()
    run(out, "new", overwrite=True)
    assert outside.read_text() == "mine" and model(out) == ("new", False)


def test_data_in_the_folder_and_a_run_that_fails(data: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(short(), data, out, model="tiny", tiny=TINY)
    (out / "pairs.tsv").write_text("read while it is trained")
    before = snapshot(out)
    with pytest.raises(NotFiniteError, match="there is no checkpoint yet"):
        train(
            short(training__learning_rate=1e38, training__max_steps=5),
            data,
            out,
            model="tiny",
            tiny=TINY,
            overwrite=True,
        )
    assert snapshot(out) == before
    train(short(training__seed=1), data, out, model="tiny", tiny=TINY, overwrite=True)
    assert (out / "pairs.tsv").exists() and not (out / ".replaced").exists()
    assert snapshot(out)["model.safetensors"] != before["model.safetensors"]
    with pytest.raises(NotFiniteError):
        train(
            short(training__learning_rate=1e38, training__max_steps=5),
            data,
            tmp_path / "other",
            model="tiny",
            tiny=TINY,
        )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("recipe", "data"),
    [
        ("tr", ["--data", "phrasebook:de?size=80"]),
        pytest.param("sf", ["--data", "de-en=phrasebook?size=80", "--layer", "1"], marks=pytest.mark.slow),
        pytest.param(
            "ir", ["--data", "queries=phrasebook?size=40", "--dev", "en=phrasebook?size=20"], marks=pytest.mark.slow
        ),
        ("xpr-merged", ["--data", "en=phrasebook?size=60", "--data", "de=phrasebook?size=60"]),
    ],
)
def test_a_run_that_was_evaluated_is_replaced(recipe: str, data: list[str], tmp_path: Path) -> None:
    """With development text, sentence-transformers writes files of its own."""
    tiny = ["--tiny", "hidden_size=16", "--tiny", "layers=1", "--tiny", "vocabulary=200"]
    words = ["train", recipe, "--model", "tiny", *tiny, *data, "--batch-size", "8", "--max-steps", "2"]
    words += ["--cache", str(tmp_path / "cache")] if recipe == "sf" else ["--eval-steps", "1"]
    for more in ([], ["--overwrite", "--learning-rate", "2e-3"]):
        assert main([*words, "--out", str(tmp_path / "run"), *more]) == 0
    assert RunFolder(tmp_path / "run").read_manifest()["recipe"]["training"]["learning_rate"] == 2e-3


def test_the_start_model_lies_elsewhere(data: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(short(), data, out, model="tiny", tiny=TINY)
    before = snapshot(out)
    (tmp_path / "link").symlink_to(out)
    for start in (out, tmp_path / "link", out / "training" / "checkpoint-1"):
        with pytest.raises(ValueError, match="start from must lie outside --out: .* is part of the run"):
            train(short(), data, out, model=str(start), overwrite=True)
    assert snapshot(out) == before


def test_a_start_model_of_the_same_name_is_known_again(data: Any, tmp_path: Path) -> None:
    start, out = tmp_path / "start", tmp_path / "run"
    train(short(), data, start, model="tiny", tiny=TINY)
    train(short(), data, out, model=str(start))
    (start / "README.md").write_text("a card may change")
    train(short(), data, out, model=str(start), resume=True)
    train(short(training__seed=1), data, start, model="tiny", tiny=TINY, overwrite=True)
    with pytest.raises(ValueError, match="model_sha8 differ"):
        train(short(), data, out, model=str(start), resume=True)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with RunFolder(out):
        for options in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(ValueError, match=f"another process is writing {out}"):
                RunFolder(out, **options).check()
            with pytest.raises(ValueError, match=f"another process is writing {out}"), RunFolder(out, **options):
                pass
    run(out, "new")


def test_links(tmp_path: Path) -> None:
    for name, goal in (("dangling", "nowhere"), ("itself", "itself")):
        (tmp_path / name).symlink_to(tmp_path / goal)
        with pytest.raises(ValueError, match=f"--out must be a folder: .*{name} is a link that leads nowhere"):
            RunFolder(tmp_path / name).check()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    run(tmp_path / "link", "old")
    run(tmp_path / "link", "new", overwrite=True)
    assert model(tmp_path / "elsewhere") == ("new", False) and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("content", ["[]", "{", "7", ""])
def test_a_damaged_manifest_is_named(content: str, tmp_path: Path) -> None:
    run(tmp_path / "run", "old")
    (tmp_path / "run" / "training" / "run.json").write_text(content)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match=r"run\.json: expected "):
            run(tmp_path / "run", "old", **options)
    assert model(tmp_path / "run") == ("old", False)


def checkpoint(folder: Path, step: int, *, whole: bool = True, best: str | None = None) -> Path:
    path = folder / f"checkpoint-{step}"
    (path / "1_Pooling").mkdir(parents=True)
    (path / "1_Pooling" / "config.json").write_text("{}")
    (path / "trainer_state.json").write_text(json.dumps({"best_model_checkpoint": best}))
    if whole:
        seal(path, seconds=step)
    return path


def test_the_newest_whole_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step, whole in ((2, True), (10, True), (9, True), (11, False)):
        checkpoint(tmp_path, step, whole=whole)
    (tmp_path / "checkpoint-foo").mkdir()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"  # by number, not by letter
    (tmp_path / "checkpoint-10" / "1_Pooling" / "config.json").write_text("[]")
    (tmp_path / "checkpoint-9" / "files.json").write_text("[]")
    (tmp_path / "checkpoint-2" / "scaler.pt").write_text("put there by somebody")
    caplog.clear()
    assert newest_checkpoint(tmp_path) is None
    said = [record.getMessage() for record in caplog.records]
    for part in ("checkpoint-10 is not", "config.json has changed", "files.json is damaged", "scaler.pt is not one of"):
        assert any(part in line for line in said), part
    assert "training starts again at step 0" in said[-1]
    assert len(list(tmp_path.iterdir())) == 5  # all of them stay


def test_the_best_checkpoint_belongs_to_those_after_it(tmp_path: Path) -> None:
    for step, best in ((1, 1), (2, 2), (3, 2)):
        checkpoint(tmp_path, step, best=f"/moved/since/checkpoint-{best}")
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-3"
    (tmp_path / "checkpoint-2" / "trainer_state.json").unlink()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-1"


@pytest.mark.parametrize(
    ("keep", "best", "left"),
    [
        (None, None, {1, 2, 3, 4, 9}),
        (1, None, {4, 9}),
        (2, None, {3, 4, 9}),  # 2 is damaged and goes; 9, not yet reached again, stays
        (3, None, {1, 3, 4, 9}),
        (1, 1, {1, 4, 9}),
        (2, 1, {1, 4, 9}),
        (99, 1, {1, 3, 4, 9}),
    ],
)
def test_which_checkpoints_are_removed(keep: int | None, best: int | None, left: set[int], tmp_path: Path) -> None:
    for step in (1, 2, 3, 9, 4):
        checkpoint(tmp_path, step, whole=step not in (2, 9))
    (tmp_path / "checkpoint-foo").mkdir()
    remove_earlier(tmp_path / "checkpoint-4", keep=keep, best=best and f"elsewhere/checkpoint-{best}")
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"checkpoint-{step}" for step in left} | {"checkpoint-foo"}


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
        with pytest.raises(OSError, match=r"checkpoint-4; .*checkpoint-2 stands\. Make room") as error:
            train(recipe, data, out, model="tiny", tiny=TINY)
    assert error.value.errno is not None and damage(out / "training" / "checkpoint-2") is None
    assert not (out / "training" / "checkpoint-4").exists()
    train(recipe, data, out, model="tiny", tiny=TINY, resume=True)
    assert snapshot(out)["model.safetensors"] == snapshot(whole.folder)["model.safetensors"]


def test_no_room_for_the_model(tmp_path: Path) -> None:
    class Full(TwoFiles):
        def save_pretrained(self, path: str) -> None:
            super().save_pretrained(path)
            raise OSError(28, "No space left on device")

    out = tmp_path / "run"
    run(out, "old", dense=True)
    before = snapshot(out)
    with pytest.raises(OSError, match="Make room"), RunFolder(out, overwrite=True) as folder:
        folder.begin({"recipe": "new"})
        folder.save_model(Full("new", dense=False))
    assert snapshot(out) == before


def test_no_memory_is_explained() -> None:
    for error in (MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")):
        assert "lower the batch size" in str(explain(error))
    full = OSError(28, "no space left on the device for run/training/checkpoint-4; it stands. Make room, then")
    assert str(explain(full)).startswith("no space left on the device for run/training/checkpoint-4; it stands")
