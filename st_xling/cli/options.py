"""Options declared as their help shows them, and what all commands do with results."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def words(text: str) -> list[str]:
    """Words joined by commas.

    Example:
        >>> words("de, fr,en")
        ['de', 'fr', 'en']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    if not all(word.isdigit() for word in words(text)) or len(set(map(int, words(text)))) < len(text.split(",")):
        raise argparse.ArgumentTypeError(f"expected distinct whole numbers, such as 0,1,2: got {text!r}")
    return [int(word) for word in words(text)]


#: The type of a value by its metavar; all others are text.
TYPES = {"N": int, "MIB": int, "X": float, "SHARE": float, "P": float, "S": float, "PATH": Path, "LIST": words} | {
    "NUMBERS": numbers
}


class Options:
    """A block of options: for each the flag, the metavar of its value, and its help, as ``--help`` prints them.

    What is not set stays ``None`` (a flag: ``False``, a list: empty) and is not passed on, see :func:`set_options`, so
    that the library's defaults hold; a test compares those that a help names with the library's signatures.

    ====================  ============================================================================
    ``MODEL``             a positional argument
    ``TEXT...``           one value or more, positional or behind a flag
    ``--k N``             a number or text: the metavar says which (:data:`TYPES`)
    ``--n NUMBERS``       distinct whole numbers, joined by commas
    ``--x LIST``          words joined by commas; ``LIST...``: or by spaces
    ``--x {a,b}``         one of these
    ``--flag``            on or off
    ``| --other``         excludes the option above
    ``words:``            begins a group; what follows is indented text that describes it
    ``(required)``        at the end of the help: it cannot be left out
    ``(repeatable)``      at the end of the help: each use adds a value; or ``(required, repeatable)``
    ====================  ============================================================================

    Args:
        text: A line an option, two spaces before its help; lines that are indented go on with the help.
        special: Name of an option → more keywords of ``add_argument``.
    """

    def __init__(self, text: str, **special: dict[str, Any]) -> None:
        self.special = special
        self.entries: list[list[str]] = []
        for line in text.strip().splitlines():
            if line.startswith(" "):
                self.entries[-1][1] = f"{self.entries[-1][1]} {line.strip()}".strip()
            else:
                # Two spaces or more divide a declaration from its help, which one of a group may lack.
                self.entries.append([*re.split(r"\s{2,}", line, maxsplit=1), ""][:2])

    def add_to(self, parser: Any) -> None:
        """Add the options to a parser, in the groups that the text names."""
        group: Any = parser
        following = [declaration for declaration, _ in self.entries[1:]] + [""]
        exclusive: Any = None
        for (declaration, help), after in zip(self.entries, following):
            if declaration.endswith(":"):
                group = parser.add_argument_group(declaration[:-1], help or None)
                continue
            # argparse wants the exclusive group before its first option, so the next line decides.
            if not declaration.startswith("| "):
                required = "required" in _marks(help)
                exclusive = group.add_mutually_exclusive_group(required=required) if after.startswith("| ") else None
            self._add(exclusive or group, declaration.removeprefix("| "), help, alone=exclusive is None)

    def set(self, arguments: Namespace) -> list[str]:
        """Names of those that were set, by the flags alone: no library needs to be imported."""
        flags = [declaration.split()[0] for declaration, _ in self.entries if declaration.startswith("--")]
        names = [flag.removeprefix("--").replace("-", "_") for flag in flags]
        return [name for name in names if is_set(getattr(arguments, name))]

    def _add(self, group: Any, declaration: str, help: str, *, alone: bool) -> None:
        flags = re.findall(r"--[\w-]+", declaration)
        metavar = declaration.split(" ")[-1]
        several = metavar.endswith("...")
        metavar = metavar.removesuffix("...")
        options: dict[str, Any] = {"help": help.replace("%", "%%")}
        if metavar.startswith("--"):
            options["action"] = "store_true"
        else:
            if metavar.startswith("{"):
                options["choices"] = tuple(metavar[1:-1].split(","))
            else:
                options |= {"metavar": metavar, "type": TYPES.get(metavar, str)}
            if "repeatable" in _marks(help):
                options |= {"action": "extend" if several else "append", "default": []}
            if several:
                options |= {"nargs": "+"} | ({"action": _JoinLists} if metavar == "LIST" else {})
        # Of options that exclude each other, the group is required, not one of them.
        if flags and alone:
            options["required"] = "required" in _marks(help)
        name = (flags[0].lstrip("-") if flags else metavar.lower()).replace("-", "_")
        group.add_argument(*(flags or [name]), **{**options, **self.special.get(name, {})})


class _JoinLists(argparse.Action):
    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, [word for part in values for word in part])


def _marks(help: str) -> list[str]:
    last = re.search(r"\(([^()]*)\)$", help)
    return last[1].split(", ") if last else []


@dataclass
class Command:
    """A sub-command: what runs it, its help and its options; see :func:`command`."""

    name: str
    run: Callable[[Namespace], None]
    help: str
    shared: tuple[Options, ...]
    special: dict[str, Any]
    #: See :class:`~st_xling.cli.parser.Parser`.
    narrow: Callable[[Any, Namespace], None] | None = None

    def add_parser(self, commands: Any) -> Any:
        """Add it to the commands of a parser."""
        if not self.help:
            raise ValueError("the options stand in docstrings, which python -OO leaves out: run without it.")
        first, description, options, *more = inspect.cleandoc(self.help).split("\n\n")
        parser = commands.add_parser(
            self.name,
            help=first[:1].lower() + first[1:].removesuffix("."),
            description=" ".join(description.split()),
            epilog="\n\n".join(more),
        )
        for block in (Options(options, **self.special), *self.shared):
            block.add_to(parser)
        parser.usage = f"%(prog)s {' '.join([*_needed(parser), '[options]'])}"
        parser.narrow = self.narrow
        parser.set_defaults(run=self.start)
        return parser

    def start(self, arguments: Namespace) -> None:
        """Run it; with ``--json -`` what it prints goes to stderr."""
        arguments.stdout = sys.stdout
        with redirect_stdout(sys.stderr if getattr(arguments, "json", None) == Path("-") else sys.stdout):
            self.run(arguments)


def _needed(parser: argparse.ArgumentParser) -> list[str]:
    """Arguments and options that cannot be left out, as the usage has them."""

    def shown(action: argparse.Action) -> str:
        value = action.metavar or "{" + ",".join(action.choices or ()) + "}"
        value = {None: value, "+": f"{value}...", "*": f"[{value}...]", 0: ""}[action.nargs]
        return f"{action.option_strings[0]} {value}".rstrip() if action.option_strings else str(value)

    groups = [part._group_actions for part in parser._mutually_exclusive_groups if part.required]
    needed = [shown(action) for action in parser._actions if action.required or not action.option_strings]
    return needed + [f"({' | '.join(map(shown, group))})" for group in groups]


def command(name: str, *shared: Options, **special: Any) -> Callable[[Callable[[Namespace], None]], Command]:
    """Make a function that takes the parsed arguments a :class:`Command`, whose help is the function's docstring.

    In paragraphs that is: a line for the list of commands; what the command does; its own options, in the form of
    :class:`Options`; and what is printed behind all options.

    Args:
        name: Of the command.
        shared: Options that other commands have as well.
        special: Of its own options, as for :class:`Options`.
    """
    return lambda run: Command(name, run, run.__doc__ or "", shared, special)


def set_options(arguments: Namespace, *functions: Any) -> dict[str, Any]:
    """The options that were set and that one of these library functions takes, by name; others keep its defaults."""
    # A class stands for its constructor: its signature is that of __init__.
    names = {name for function in functions for name in inspect.signature(function).parameters}
    return {name: value for name, value in vars(arguments).items() if name in names and is_set(value)}


JSON = Options("--json PATH  also write the results as JSON: to a file, or with - to stdout, and all else to stderr")
KEEP = Options("--keep  also save the results with the model, which must be a folder")


def is_set(value: Any) -> bool:
    """Whether an option was set on the command line."""
    return value is not None and value is not False and value != []


def write_results(arguments: Namespace, content: Any) -> None:
    """Write ``content`` where ``--json`` says, into a folder that is made where it is missing; nothing without it."""
    path = arguments.json
    if path == Path("-"):
        print(json.dumps(content, ensure_ascii=False, indent=2), file=arguments.stdout)
    elif path is not None:
        from st_xling.utils.io import write_json

        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)


def print_results(arguments: Namespace, name: str, content: Any, signature: str, table: str) -> None:
    """Print and write a table of results, and what was measured."""
    print(table, signature, sep="\n")
    write_results(arguments, {name: content, "signature": signature})


def print_report(arguments: Namespace, command: str, report: Any, summary: str) -> None:
    """Lines for a reader, then the signature: on stderr where stdout holds the results; ``--json`` is written."""
    lines: Iterable[str] = [*report.lines(), f"{summary}: {arguments.out}", report.signature]
    for line in lines:
        print(line, file=sys.stderr if arguments.out == "-" else sys.stdout)
    write_results(arguments, {command: report.as_dict(), "signature": report.signature})


@contextmanager
def output(arguments: Namespace) -> Iterator[Any]:
    """``--out`` as the library takes it; when the block is interrupted, says what to do if work was saved."""
    try:
        yield sys.stdout.buffer if arguments.out == "-" else Path(arguments.out)
    except KeyboardInterrupt:
        if arguments.out != "-" or arguments.work is not None:
            print("\nwhat is done stands; the same command goes on from there.", file=sys.stderr)
        raise
