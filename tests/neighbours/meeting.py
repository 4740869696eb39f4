"""Meetings of our files with other tools: what is expected, what comes, and who meets it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.neighbours.environment import Environment, NotTried

#: Characters of a cell, at most.
LONGEST = 100

#: Tries something in a folder that is empty, with the tool's environment; returns what came otherwise than expected,
#: ``None`` if nothing did.
Try = Callable[[Path, Environment], "str | None"]


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One thing that is tried with one tool.

    Attributes:
        tool: Name of the tool.
        version: Its version.
        packages: What is installed, each with its version.
        tried: What is tried, in a few words.
        expected: What a good engineer expects, written before the first run.
        users: Who meets it.
        remedy: What a user does where it comes otherwise; empty if nothing needs to be done.
        above_ours: Whether the packages are put above those of the running environment.
        run: Tries it.
    """

    tool: str
    version: str
    packages: tuple[str, ...]
    tried: str
    expected: str
    users: str
    remedy: str
    above_ours: bool
    run: Try

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def group(self) -> str:
        """Name of the module, which is a kind of file."""
        return self.run.__module__.rpartition(".")[2]


@dataclass(frozen=True)
class Row:
    """A meeting with what came of it.

    Attributes:
        name: Name of its function.
        group: Kind of file, the heading on the page.
        tool: Name of the tool.
        version: Its version.
        tried: What was tried.
        expected: What was expected.
        came: What came; ``"as expected"``, or what differs.
        result: ``"works"``, ``"differs"``, ``"fails"`` or ``"not tried"``.
        users: Who meets it.
        remedy: What they do.
    """

    name: str
    group: str
    tool: str
    version: str
    tried: str
    expected: str
    came: str
    result: str
    users: str
    remedy: str

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


#: All meetings of the modules that were imported, in their order.
MEETINGS: list[Meeting] = []


def meeting(
    tool: str,
    *more_packages: str,
    tried: str,
    expected: str,
    users: str,
    remedy: str = "",
    above_ours: bool = False,
    from_registry: bool = True,
) -> Callable[[Try], Try]:
    """Register a function as a meeting.

    Args:
        tool: The package with its version, such as ``"hypomnema==0.8"``.
        more_packages: What else is installed, each with its version.
        tried: See :class:`Meeting`.
        expected: See :class:`Meeting`.
        users: See :class:`Meeting`.
        remedy: See :class:`Meeting`.
        above_ours: See :class:`Meeting`.
        from_registry: Whether the tool is a package of the registry; the function gets others itself.
    """

    def register(run: Try) -> Try:
        name, _, version = tool.partition("==")
        entry = Meeting(
            tool=name.partition("[")[0],
            version=version,
            packages=(tool, *more_packages) if from_registry else more_packages,
            tried=tried,
            expected=expected,
            users=users,
            remedy=remedy,
            above_ours=above_ours,
            run=run,
        )
        MEETINGS.append(entry)
        return run

    return register


def hold(entry: Meeting, heading: str, environments: Path) -> Row:
    """Hold a meeting.

    Args:
        entry: The meeting.
        heading: Heading of its kind of file.
        environments: Folder of the installed tools.
    """
    environment = Environment(environments, entry.packages, above_ours=entry.above_ours)
    with tempfile.TemporaryDirectory() as folder:
        try:
            difference = entry.run(Path(folder), environment)
        except NotTried as reason:
            result, came = "not tried", str(reason)
        except Exception as error:  # theirs, or ours about a file of theirs; the other meetings go on
            result, came = "fails", " ".join(str(error).split())
        else:
            result = "works" if difference is None else "differs"
            came = difference or "as expected"
    return Row(
        name=entry.name,
        group=heading,
        tool=entry.tool,
        version=entry.version,
        tried=entry.tried,
        expected=entry.expected,
        came=shortened(came.replace(f"{folder}/", "")),
        result=result,
        users=entry.users,
        remedy=entry.remedy,
    )


def shortened(text: str) -> str:
    """Return a text as it fits into a cell, without marks of Markdown's code."""
    text = text.replace("```", "").replace("`", "'")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


def difference(got: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Describe the first item that is otherwise than expected; ``None`` if all are the same."""
    got, expected = as_json(got), as_json(expected)
    for number, (item, wanted) in enumerate(zip(got, expected), 1):
        if item != wanted:
            return f"{number}: {item!r} for {wanted!r}"
    if len(got) != len(expected):
        return f"{len(got)} for {len(expected)}"
    return None


def as_json(values: Sequence[Any]) -> list[Any]:
    """Return lists for tuples, as JSON has them."""
    return [as_json(value) if isinstance(value, (list, tuple)) else value for value in values]
