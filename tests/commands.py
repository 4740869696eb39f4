"""The commands of ``st-xling`` as tests see them: their parameters and examples."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from st_xling.cli import load_app
from st_xling.cli.app import HELP


def commands(group: Any = None, name: str = "st-xling") -> Iterator[tuple[str, Any]]:
    """Yield each command with its whole name."""
    group = typer.main.get_command(load_app()) if group is None else group
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


COMMANDS = dict(commands())


def parse(line: str | list[str]) -> dict[str, Any]:
    """Parse a command line without running it, and return the values of its parameters."""
    words = shlex.split(line) if isinstance(line, str) else ["st-xling", *line]
    name = " ".join(words[: 3 if words[1] == "evaluate" else 2])
    with COMMANDS[name].make_context(name, words[len(name.split()) :]) as context:
        return dict(context.params)


def command_lines(text: str) -> list[str]:
    """Return the lines of a shell, continued ones joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    commands: list[str] = []
    for line in joined.splitlines():
        commands += [command.strip() for command in line.split("&&")]
    return [command for command in commands if command]


def examples(text: str | None = None) -> list[str]:
    """Return the command lines of a help, by default of that of all commands."""
    if text is None:
        text = HELP
    return [line for line in command_lines(text) if line.startswith("st-xling ")]
