"""``python -m tests.neighbours``: its meetings, the saved rows and the page that is made of them."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.neighbours.environment import Environment, NeighborFailed, NotTried
from tests.neighbours.meeting import LONGEST, MEETINGS, Meeting, hold, meeting
from tests.neighbours.table import GROUPS, load_meetings, load_rows

DOCS = Path(__file__).parents[1] / ".docs"
load_meetings()


def test_the_page_has_a_row_for_each_meeting() -> None:
    """A meeting that was renamed or changed and not run again would leave an old row for readers of the page."""
    held = {entry.name: (GROUPS[entry.group], entry.tool, entry.version, entry.tried) for entry in MEETINGS}
    saved = {row.name: (row.group, row.tool, row.version, row.tried) for row in load_rows()}
    assert list(saved.items()) == list(held.items())


def test_rows_say_what_to_do() -> None:
    """A reader who meets a difference needs a remedy, or the reason why nothing was tried; cells are short."""
    for row in load_rows():
        assert row.result in ("works", "differs", "fails", "not tried"), row.name
        assert (row.result == "works") == (row.came == "as expected"), row.name
        assert row.remedy or row.result in ("works", "not tried"), row.name
        assert max(map(len, (row.tried, row.came, row.remedy))) <= LONGEST, row.name


def test_the_page_is_made_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers see each tool once a row, under its kind of file."""
    spec = importlib.util.spec_from_file_location("reference_tables", DOCS / "tables.py")
    assert spec is not None and spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = tables.works_with()
    for heading in GROUPS.values():
        assert f"## {heading}\n" in page
    assert len([line for line in page.splitlines() if line.startswith("| ")]) == len(load_rows()) + 2 * len(GROUPS)


def entry_of(attempt: Any, tool: str = "tool==1") -> Meeting:
    """Register a meeting, and take it away again."""
    meeting(tool, tried="x", expected="x", users="x")(attempt)
    return MEETINGS.pop()


def test_a_meeting_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    """One tool that cannot be installed, or ends with an error, is a row."""

    def missing(folder: Path, tool: Environment) -> str | None:
        raise NotTried("no such package")

    def failing(folder: Path, tool: Environment) -> str | None:
        raise NeighborFailed(f"cannot read {folder}/de.tmx")

    rows = [hold(entry_of(run), "Files", tmp_path) for run in (missing, failing)]
    assert [(row.result, row.came) for row in rows] == [
        ("not tried", "no such package"),
        ("fails", "cannot read de.tmx"),
    ]


def test_a_meeting_of_several_versions_is_one_row(tmp_path: Path) -> None:
    """Whoever looks up one version must see which of them fails: the worst result counts, and names its version."""

    def newer_alone(folder: Path, tool: Environment) -> str | None:
        return None if tool.packages[0] == "tool==2" else "older"

    row = hold(entry_of(newer_alone, "tool==1,2"), "Files", tmp_path)
    assert (row.version, row.result, row.came) == ("1, 2", "differs", "1: older")


def test_packages_have_a_version(tmp_path: Path) -> None:
    """A row names the version that it was run with: another one may do otherwise."""
    with pytest.raises(ValueError, match=r"hypomnema==0\.8: got hypomnema"):
        Environment(tmp_path, ["hypomnema"])
