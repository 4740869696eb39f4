"""A folder that is resumed for the same task, refused for another and never damaged; where its result may go."""

import io
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from st_xling.utils.io import write_json
from st_xling.utils.resumable import ResumableFolder, deliver, work_folder
from st_xling.utils.text import read_bytes

TASK = {"command": "mine", "k": 4, "text": "a" * 64}


def write(folder: ResumableFolder, *steps: str) -> None:
    for step in steps:
        with folder.writing(step, f"{step}.npz") as path:
            path.write_text(step)


def begin(path: Path, task: dict[str, Any], *steps: str, **options: Any) -> list[str]:
    """Begin, return the steps that were finished before, and finish more."""
    with ResumableFolder(path) as folder:
        folder.begin(task, **options)
        before = list(folder.steps)
        write(folder, *steps)
    return before


def names(path: Path) -> list[str]:
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


def test_resumed_for_the_same_task_and_refused_for_another(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "work"
    assert begin(path, TASK, "one", "two") == []
    assert begin(path, dict(reversed(TASK.items()))) == ["one", "two"]
    message = r"another task: k was 4, is now 5; model was None, is now x; text was aaaaaaaa, is now bbbbbbbb\. Repeat"
    for _ in range(2):  # a refusal changes nothing
        with pytest.raises(ValueError, match=message):
            begin(path, {**TASK, "k": 5, "model": "x", "text": "b" * 64})
    assert begin(path, TASK) == ["one", "two"]
    assert names(path) == ["done.json", "one.npz", "two.npz"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        ResumableFolder(tmp_path / "work") as folder,
        pytest.raises(ValueError, match="another process is writing .*work"),
    ):
        folder.begin(TASK)
        begin(tmp_path / "work", TASK)
    assert begin(tmp_path / "work", TASK) == []
    assert names(tmp_path / "work") == ["done.json"]


def test_a_kill_loses_the_step_that_was_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is listed, and between the record and the renaming; temporary files go with the next start."""
    for event in ("write_json", "replace"):
        path = tmp_path / event
        begin(path, TASK, "one")

        def die(*_: object, **__: object) -> None:
            os._exit(9)

        child = os.fork()
        if child == 0:
            if event == "write_json":
                monkeypatch.setattr("st_xling.utils.resumable.write_json", die)
            with ResumableFolder(path) as folder:
                folder.begin(TASK)
                with folder.writing("two", "two.npz") as temporary:
                    temporary.write_text("two")
                    if event == "replace":
                        folder.listed["two"] = {"files": ["two.npz"]}
                        folder.write_record()
                        die()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert any(name.endswith(".tmp") for name in names(path))
        assert begin(path, TASK, "two") == ["one"]
        assert names(path) == ["done.json", "one.npz", "two.npz"]


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match=r"contains mine.txt, which this command did not write; choose another"):
        begin(tmp_path, TASK)
    with pytest.raises(ValueError, match="is a file; choose another"):
        begin(tmp_path / "mine.txt", TASK)
    assert names(tmp_path) == ["mine.txt"]
    (tmp_path / "done.json").write_text("{}")
    with pytest.raises(ValueError, match="done.json was written by something else"), work_folder("o", tmp_path, TASK):
        pass
    assert names(tmp_path) == ["done.json", "mine.txt"]


@pytest.mark.parametrize(
    "record",
    ["{", "[1]", "[" * 100_000, '{"steps": 3}', '{"steps": {"one": 1}}', '{"steps": {"one": {"rows": 4, "files": 3}}}'],
)
def test_a_damaged_record_is_named_and_left(record: str, tmp_path: Path) -> None:
    """A traceback would not say which folder to delete."""
    (tmp_path / "done.json").write_text(record, encoding="utf-8")
    with ResumableFolder(tmp_path) as folder, pytest.raises(ValueError, match=r"done\.json.*(delete|choose)"):
        folder.begin(TASK)
    assert (tmp_path / "done.json").read_text(encoding="utf-8") == record


def test_overwriting_removes_what_the_record_lists(tmp_path: Path) -> None:
    begin(tmp_path, TASK, "one", "two")
    (tmp_path / "notes.txt").write_text("precious")
    (tmp_path / "outside.npz").write_text("precious")
    record = {**TASK, "steps": {"one": {"files": ["one.npz"]}, "x": {"files": ["../x", str(tmp_path / "outside.npz")]}}}
    (tmp_path.parent / "x").write_text("precious")
    write_json(tmp_path / "done.json", record)
    assert begin(tmp_path, {**TASK, "k": 5}, "three", overwrite=True) == []
    assert names(tmp_path) == ["done.json", "notes.txt", "outside.npz", "three.npz", "two.npz"]
    assert (tmp_path.parent / "x").exists()


def test_a_folder_without_a_finished_step_is_free(tmp_path: Path) -> None:
    """It is removed if the command fails; what a killed one left is taken by the next command."""
    path = tmp_path / "work"
    with pytest.raises(ValueError, match="bad vector"), work_folder(path, path, TASK):
        (path / "source" / "store").mkdir(parents=True)
        for name in ("published.json", "source/sentences.jsonl", "source/store/done.json"):
            (path / name).write_text("{}")
        raise ValueError("bad vector")
    assert not path.exists()
    with pytest.raises(KeyboardInterrupt), work_folder(path, path, TASK):
        (path / "published.json").write_text("{}")
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="search"), work_folder(path, path, {**TASK, "k": 5}):
        assert names(path) == [".st-xling.lock", "done.json"]
        (path / "search").mkdir()
        (path / "search" / "search.safetensors").touch()
        raise ValueError("search")
    with pytest.raises(ValueError, match="k was 5, is now 4"), work_folder(path, path, TASK):
        pass

    half_written = tmp_path / "model" / "training" / "weights" / ".st-xling-0123abcd.tmp"
    half_written.parent.mkdir(parents=True)
    half_written.touch()
    with ResumableFolder(tmp_path / "model", record="training/done.json") as folder:
        folder.check_free()
        (half_written.parent / "notes.txt").touch()
        with pytest.raises(ValueError, match="contains training"):
            folder.check_free()


def new_files(folder: ResumableFolder, content: str, *names: str) -> Path:
    for name in names:
        path = folder.path / ".new" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder.path / ".new"


def test_the_files_of_a_model_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while they are moved leaves no ``config.json``, so that nobody takes two halves for a model."""
    move = Path.replace

    def killed(path: Path, goal: Path) -> Path:
        if path.name == "weights":
            raise KeyboardInterrupt
        return move(path, goal)

    with ResumableFolder(tmp_path / "run") as folder:
        folder.begin(TASK)
        folder.install("model", new_files(folder, "old", "config.json", "dense/weights"))
        (folder.path / "dense" / "notes").write_text("precious")
        new = new_files(folder, "new", "config.json", "weights")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", killed)
            folder.install("model", new)
        assert "model" not in folder.steps and not (folder.path / "config.json").exists()
        folder.install("model", new)
        assert folder.steps["model"] == {"files": ["config.json", "weights"]}
    assert names(tmp_path / "run") == ["config.json", "dense", "dense/notes", "done.json", "weights"]


def test_a_file_is_made_or_replaced(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.write_bytes(b"pairs")
    deliver(made, tmp_path / "deep" / "new")
    assert (tmp_path / "deep" / "new").read_bytes() == b"pairs" and not made.exists()
    made.write_bytes(b"more")
    # --out pairs.tsv.zst was plain text under that name, which no command then read.
    for ending in (".gz", ".xz", ".bz2", ".zst"):
        made.write_bytes(b"more")
        deliver(made, tmp_path / f"packed{ending}")
        packed = tmp_path / f"packed{ending}"
        assert packed.read_bytes() != b"more" and read_bytes(packed) == b"more" and not made.exists()
    made.write_bytes(b"more")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "new")
    deliver(made, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "deep" / "new").read_bytes() == b"more"
    made.write_bytes(b"pairs")
    stream = io.BytesIO()
    deliver(made, stream)
    assert stream.getvalue() == b"pairs"


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    """As a device would be: with a root's rights, a rename would put a file in its place."""
    pipe = tmp_path / "pipe"
    read: list[bytes] = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with work_folder(pipe, None, TASK) as folder:
        (folder.path / "made").write_bytes(b"pairs")
        deliver(folder.path / "made", pipe)
    reader.join(30)
    assert read == [b"pairs"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_what_a_kill_leaves_of_a_folder_that_was_being_removed_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for killed in (False, True):
        with work_folder(tmp_path / "work", None, TASK) as folder, monkeypatch.context() as patch:
            (folder.path / "part").mkdir()
            (folder.path / "part" / "shard.npz").touch()
            write(folder, "one")
            if killed:
                patch.setattr(folder, "clear", lambda: None)
                patch.setattr("st_xling.utils.resumable.remove_file", lambda *_: None)
            folder.remove()
        assert (tmp_path / "work.work").exists() == killed
    with work_folder(tmp_path / "work", None, {**TASK, "k": 5}) as folder:
        assert names(folder.path) == [".st-xling.lock", "done.json"]
