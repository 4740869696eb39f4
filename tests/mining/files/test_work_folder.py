"""Work that is kept for the same task, refused for another, and removed in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.mining.files.work_folder import WorkFolder


def test_taken_up_by_the_same_task_and_refused_to_another(tmp_path: Path) -> None:
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


def test_what_was_not_wholly_removed_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / "work.done" / "part").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "task.json.tmp").write_text('{"k"')  # killed while it was written
    with WorkFolder(tmp_path / "work", {"k": 4}) as folder:
        assert not folder.resumed
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
