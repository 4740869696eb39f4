"""The harness itself: events in their order, and what a kill at each of them leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.points import DIED, Point, Watch
from tests.training.children import CONTEXT


def job(folder: str, point: Point) -> None:
    """A file by way of another name, a line more in a journal, a folder that comes and goes by a descriptor."""
    os.chdir(folder)
    watch = Watch(folder, point, lambda found: None)
    with Path("a.tmp").open("w") as stream:
        stream.write("abcdef")
    Path("a.tmp").rename("a")
    with Path("log").open("a") as stream:
        stream.write("new!")
    Path("folder").mkdir()
    descriptor = os.open(".", os.O_RDONLY)
    os.rmdir("folder", dir_fd=descriptor)
    watch.end()


@pytest.mark.parametrize(
    ("point", "left"),
    [
        (Point(1), {"log": "old "}),
        (Point(2, 0.0), {"log": "old ", "a.tmp": ""}),
        (Point(2, 0.5), {"log": "old ", "a.tmp": "abc"}),
        (Point(2), {"log": "old ", "a.tmp": "abcdef"}),
        (Point(3), {"log": "old ", "a": "abcdef"}),
        (Point(4, 0.0), {"log": "old ", "a": "abcdef"}),
        (Point(4, 0.5), {"log": "old ne", "a": "abcdef"}),
        (Point(5), {"log": "old new!", "a": "abcdef", "folder": None}),
        (Point(6), {"log": "old new!", "a": "abcdef"}),
    ],
)
def test_what_a_kill_leaves(point: Point, left: dict[str, str | None], tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "log").write_text("old ")
    process = CONTEXT.Process(target=job, args=(str(folder), point))
    process.start()
    process.join(30)
    assert process.exitcode == DIED
    assert {path.name: path.read_text() if path.is_file() else None for path in folder.iterdir()} == left
