"""Work that is kept for the same task, refused for another, and removed in one step; where its result may go."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from st_xling.utils.work_folder import WorkFolder, deliver, work_folder


def test_resumed_by_the_same_task_and_refused_to_another(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "work"
    with WorkFolder(path, {"k": 4, "text": "a" * 64}) as folder:
        assert not folder.resumed
        (path / "kept").write_text("x")
        with pytest.raises(ValueError, match="another process is writing .*work"):
            WorkFolder(path, {"k": 4, "text": "a" * 64}).__enter__()
    with WorkFolder(path, {"text": "a" * 64, "k": 4}) as folder:
        assert folder.resumed and (path / "kept").read_text() == "x"
    message = (
        r"work of another command: k was 4, is now 5; model was None, is now x; text was aaaaaaaa, is now bbbbbbbb"
    )
    for _ in range(2):  # a refusal changes nothing
        with pytest.raises(ValueError, match=message):
            WorkFolder(path, {"k": 5, "text": "b" * 64, "model": "x"}).__enter__()
    with WorkFolder(path, {"k": 4, "text": "a" * 64}) as folder:
        folder.remove()
    assert list(path.parent.iterdir()) == []


def test_what_is_no_work_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match="holds something that is no work of this command"):
        WorkFolder(tmp_path, {}).__enter__()
    with pytest.raises(ValueError, match="is a file; choose another"):
        WorkFolder(tmp_path / "mine.txt", {}).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_was_not_wholly_removed_goes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while the finished work is removed, or while its task is written."""
    with WorkFolder(tmp_path / "work", {"k": 5}) as folder:
        (tmp_path / "work" / "part").mkdir()
        (tmp_path / "work" / "part" / "shard").touch()
        with monkeypatch.context() as patch:
            patch.setattr(folder, "_empty", lambda: None)
            folder.remove()
    for left in ("part", "task.json.tmp"):
        assert (tmp_path / "work" / "part").exists() == (left == "part")
        (tmp_path / "work" / "task.json.tmp").write_text('{"k"')
        with WorkFolder(tmp_path / "work", {"k": 4}) as folder:
            assert not folder.resumed
            folder.remove()
        (tmp_path / "work").mkdir()


def test_nothing_beside_the_folder_is_touched(tmp_path: Path) -> None:
    """Nor is a folder emptied because a file in it has the name of our mark."""
    (tmp_path / "work.done").mkdir()
    (tmp_path / "work.done" / "precious").write_text("mine")
    with WorkFolder(tmp_path / "work", {"k": 4}) as folder:
        folder.remove()
    assert (tmp_path / "work.done" / "precious").read_text() == "mine"
    (tmp_path / "work.done" / ".st-xling-finished").touch()
    with pytest.raises(ValueError, match="holds something that is no work"):
        WorkFolder(tmp_path / "work.done", {}).__enter__()
    assert (tmp_path / "work.done" / "precious").exists()


def test_a_folder_in_which_nothing_was_done_is_free(tmp_path: Path) -> None:
    """It goes when the command fails, and where it was killed, the next command takes it."""
    path = tmp_path / "work"
    with pytest.raises(ValueError, match="bad vector"), WorkFolder(path, {"command": "mine", "k": 31}):
        (path / "source" / "store").mkdir(parents=True)
        for name in ("published.json", "source/sentences.jsonl", "source/store/writing.json"):
            (path / name).write_text("{}")
        raise ValueError("bad vector")
    assert not path.exists()
    with pytest.raises(KeyboardInterrupt), WorkFolder(path, {"command": "mine", "k": 31}):
        (path / "published.json").write_text("{}")
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="search"), WorkFolder(path, {"command": "mine", "k": 4}) as folder:
        assert not folder.resumed and [found.name for found in path.iterdir()] == ["task.json"]
        (path / "search.safetensors").write_text("x")
        raise ValueError("search")
    assert (path / "search.safetensors").exists()
    with pytest.raises(ValueError, match="k was 4, is now 5"):
        WorkFolder(path, {"command": "mine", "k": 5}).__enter__()


@pytest.mark.parametrize("content", ["[]", '{"command"', "[" * 100_000])
def test_a_damaged_task_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(content)
    with pytest.raises(ValueError, match=r"task\.json: expected .* choose another"):
        WorkFolder(tmp_path, {"command": "mine"}).__enter__()
    assert (tmp_path / "task.json").read_text() == content


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "made"
    path.write_bytes(b"pairs")
    return path


def test_a_file_is_made_or_replaced(made: Path, tmp_path: Path) -> None:
    deliver(made, tmp_path / "deep" / "new")
    assert (tmp_path / "deep" / "new").read_bytes() == b"pairs" and not made.exists()
    made.write_bytes(b"more")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "new")
    deliver(made, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "deep" / "new").read_bytes() == b"more"


def test_a_pipe_is_written_into_and_stays_one(made: Path, tmp_path: Path) -> None:
    """As a device would be: with a root's rights, a rename would put a file in its place."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with work_folder(pipe, None, {}) as folder:
        assert tmp_path not in folder.path.parents
        deliver(made, pipe)
    reader.join(30)
    assert read == [b"pairs"] and pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "pipe"]


def test_a_stream_has_a_copy(made: Path) -> None:
    stream = io.BytesIO()
    deliver(made, stream)
    assert stream.getvalue() == made.read_bytes() == b"pairs"
