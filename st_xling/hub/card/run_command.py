"""Command lines as a card shows them: what they name, and what a stranger cannot have."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

# What is the business of one machine, and changes no figure.
_SWITCHES = ("--keep", "--overwrite", "--resume")
_WITH_VALUE = ("--json", "--cache")


def shown_command(command: str, *, repo_id: str | None = None) -> str:
    """The command to paste: without ``--keep``, ``--json``, ``--cache``, ``--overwrite`` and ``--resume``, and with the
    last part alone of the folder after ``--out``.

    Args:
        command: As it was typed.
        repo_id: Stands for the model of ``evaluate`` and ``transfer``, which are given it after the task.
    Example:
        >>> shown_command("st-xling evaluate bucc my-encoder --data mining --json f.json --keep", repo_id="me/encoder")
        'st-xling evaluate bucc me/encoder --data mining'
    """
    words = _words(command)
    if words is None:
        return command
    kept: list[str] = []
    rest = iter(words)
    takes_words = words[1:2] == ["slim"]  # whose --keep has a value: tokens that stay
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in _WITH_VALUE:
            if not equals:
                next(rest, None)
        elif flag == "--out":
            kept += [flag, PurePath(value if equals else next(rest, "")).name or "model"]
        elif word not in _SWITCHES or (takes_words and word == "--keep"):
            kept.append(word)
    place = {"evaluate": 3, "transfer": 3}.get(kept[1] if len(kept) > 1 else "")
    if repo_id and place is not None and len(kept) > place and not kept[place].startswith("-"):
        kept[place] = repo_id
    return shlex.join(kept)


def flag_values(command: str | None, flag: str) -> list[str]:
    """What a flag was given, each time, in order."""
    found: list[str] = []
    rest = iter(_words(command or "") or [])
    for word in rest:
        if word == flag:
            found += [next(rest, "")]
        elif word.startswith(f"{flag}="):
            found.append(word.partition("=")[2])
    return found


def absolute_paths(commands: Sequence[str]) -> list[str]:
    """Words of commands that name a place on one machine alone."""
    words = dict.fromkeys(word for command in commands for word in _words(command) or [])
    return [word for word in words if any(part.startswith(("/", "~")) for part in word.replace(",", "=").split("="))]


def _words(command: str) -> list[str] | None:
    try:
        return shlex.split(command)
    except ValueError:  # quotes that nobody closed: not a command of ours
        return None
