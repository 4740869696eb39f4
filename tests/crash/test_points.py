"""The harness itself: events in their order, and what a kill at each of them leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.points import DIED, Event, Point, Watch, points_of, sample
from tests.training.children import CONTEXT

EVENTS = [
    Event("open", "a.tmp", ""),
    Event("os.rename", "a.tmp", "a.tmp"),
    Event("open", "log", ""),
    Event("os.mkdir", "folder", "log"),
    Event("os.rmdir", "folder", ""),
    Event("end", ".", ""),
]


def job(folder: str, point: Point | None, events: str) -> None:
    """A file by way of another name, a line more in a journal, a folder that comes and goes by a descriptor."""
    os.chdir(folder)
    watch = Watch(folder, point, lambda found: None if point else Path(events).write_text(repr(found)) and None)
    with Path("a.tmp").open("w") as stream:
        stream.write("abcdef")
    Path("a.tmp").rename("a")
    with Path("log").open("a") as stream:
        stream.write("new!")
    Path("folder").mkdir()
    descriptor = os.open(".", os.O_RDONLY)
    os.rmdir("folder", dir_fd=descriptor)
    watch.end()
    watch._report(watch._events)


def run(place: Path, point: Point | None) -> dict[str, str | None]:
    folder = place / "job"
    folder.mkdir()
    (folder / "log").write_text("old ")
    process = CONTEXT.Process(target=job, args=(str(folder), point, str(place / "events")))
    process.start()
    process.join(30)
    assert process.exitcode == (0 if point is None else DIED)
    return {path.name: path.read_text() if path.is_file() else None for path in folder.iterdir()}


def test_events_and_points(tmp_path: Path) -> None:
    assert run(tmp_path, None) == {"a": "abcdef", "log": "old new!"}
    assert (tmp_path / "events").read_text() == repr(EVENTS)
    points = points_of(EVENTS)
    assert [(point.number, point.part) for point in points] == [
        (1, 1.0),
        *((2, part) for part in (0.0, 0.5, 1.0)),
        (3, 1.0),
        *((4, part) for part in (0.0, 0.5, 1.0)),
        (5, 1.0),
        (6, 1.0),
    ]
    assert sample(points, first=2, middle=1, last=2)[:2] == points[:2]
    assert len(sample(points, first=2, middle=1, last=2)) == 5 and sample(points, first=9, middle=9, last=9) == points


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
    assert run(tmp_path, point) == left
