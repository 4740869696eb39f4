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

#: What can come of a meeting, the better before the worse.
RESULTS = ("works", "not tried", "differs", "fails")

#: Tries something in a folder that is empty, with the tool's environment; returns what came otherwise than expected,
#: ``None`` if nothing did.
Attempt = Callable[[Path, Environment], "str | None"]


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One thing that is tried with one tool.

    Attributes:
        name: Name of the function that tries it.
        group: Name of its module, which is a kind of file.
        tool: Name of the tool.
        versions: Its versions, each of which is tried.
        other_packages: What else is installed, each with its version.
        tried: What is tried, in a few words.
        expected: What a good engineer expects, written before the first run.
        users: Who meets it.
        remedy: What a user does where it comes otherwise; empty if nothing needs to be done.
        above_ours: Whether the packages are put above those of the running environment.
        from_registry: Whether the tool is a package of the registry.
        attempt: Tries it.
    """

    name: str
    group: str
    tool: str
    versions: tuple[str, ...]
    other_packages: tuple[str, ...]
    tried: str
    expected: str
    users: str
    remedy: str
    above_ours: bool
    from_registry: bool
    attempt: Attempt

    @property
    def version(self) -> str:
        """All versions, as the page names them."""
        return ", ".join(self.versions)

    def packages(self, version: str) -> tuple[str, ...]:
        """Return what is installed for a version of the tool."""
        if not self.from_registry:
            return self.other_packages
        return (f"{self.tool}=={version}", *self.other_packages)


@dataclass(frozen=True)
class Row:
    """A meeting with what came of it.

    Attributes:
        name: Name of the meeting.
        group: Kind of file, the heading on the page.
        tool: Name of the tool.
        version: Its version, or its versions.
        tried: What was tried.
        expected: What was expected.
        came: What came; ``"as expected"``, or what differs.
        result: ``"works"``, ``"differs"``, ``"fails"`` or ``"not tried"``; the worst of all versions.
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
    *other_packages: str,
    tried: str,
    expected: str,
    users: str,
    remedy: str = "",
    above_ours: bool = False,
    from_registry: bool = True,
    name: str | None = None,
) -> Callable[[Attempt], Attempt]:
    """Register a function as a meeting.

    Args:
        tool: The package with its version, such as ``"hypomnema==0.8"``, or with several, each of which is tried:
            ``"sentence-transformers==6.0.1,6.1.0"``.
        other_packages: What else is installed, each with its version.
        tried: See :class:`Meeting`.
        expected: See :class:`Meeting`.
        users: See :class:`Meeting`.
        remedy: See :class:`Meeting`.
        above_ours: See :class:`Meeting`.
        from_registry: See :class:`Meeting`; the function gets a tool of elsewhere itself.
        name: Name of the meeting. Defaults to that of the function.
    """

    def register(attempt: Attempt) -> Attempt:
        package, _, versions = tool.partition("==")
        entry = Meeting(
            name=name or attempt.__name__,
            group=attempt.__module__.rpartition(".")[2],
            tool=package,
            versions=tuple(versions.split(",")),
            other_packages=other_packages,
            tried=tried,
            expected=expected,
            users=users,
            remedy=remedy,
            above_ours=above_ours,
            from_registry=from_registry,
            attempt=attempt,
        )
        MEETINGS.append(entry)
        return attempt

    return register


def not_tried(tool: str, *, name: str, module: str, tried: str, reason: str) -> None:
    """Register a meeting that cannot be held, with the reason why.

    Args:
        tool: The tool with its version.
        name: Name of the meeting.
        module: ``__name__`` of its module.
        tried: See :class:`Meeting`.
        reason: Why it is not tried.
    """

    def attempt(folder: Path, environment: Environment) -> str | None:
        raise NotTried(reason)

    attempt.__module__ = module
    meeting(tool, tried=tried, expected="-", users="-", from_registry=False, name=name)(attempt)


def hold(entry: Meeting, heading: str, environments: Path) -> Row:
    """Hold a meeting.

    Args:
        entry: The meeting.
        heading: Heading of its kind of file.
        environments: Folder of the installed tools.
    """
    result = "works"
    facts = []
    for version in entry.versions:
        environment = Environment(environments, entry.packages(version), above_ours=entry.above_ours)
        version_result, fact = hold_with(entry, environment)
        result = max(result, version_result, key=RESULTS.index)
        if version_result != "works":
            facts.append(fact if len(entry.versions) == 1 else f"{version}: {fact}")
    return Row(
        name=entry.name,
        group=heading,
        tool=entry.tool,
        version=entry.version,
        tried=entry.tried,
        expected=entry.expected,
        came=shortened("; ".join(facts) or "as expected"),
        result=result,
        users=entry.users,
        remedy=entry.remedy,
    )


def hold_with(entry: Meeting, environment: Environment) -> tuple[str, str]:
    """Hold a meeting with one version of the tool; returns the result and what came."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = entry.attempt(Path(folder), environment)
        except NotTried as reason:
            return "not tried", str(reason)
        except Exception as error:  # theirs, or ours about a file of theirs; the other meetings go on
            return "fails", " ".join(str(error).split()).replace(f"{folder}/", "")
    if found is None:
        return "works", "as expected"
    return "differs", found.replace(f"{folder}/", "")


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
