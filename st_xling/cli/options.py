"""Declare options, and share them: the fields of a dataclass are options of every command that takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import typer

Options = TypeVar("Options")


def option(
    flag: str,
    help: str,
    *,
    default: Any = None,
    panel: str | None = None,
    parser: Callable[[str], Any] | None = None,
    callback: Callable[..., Any] | None = None,
) -> Any:
    """Declare an option.

    Args:
        flag: The option, and the name of its value if the type alone does not tell: ``"--out DIR"``.
        help: Meaning, and the default where it is the library's.
        default: Value if it is not given; ``None`` leaves it to the library, see :func:`given`.
        panel: Heading in the help.
        parser: Reads a value.
        callback: Changes or checks the values of an option.
    """
    flag, _, metavar = flag.partition(" ")
    return typer.Option(
        default,
        flag,
        help=help,
        metavar=metavar or None,
        rich_help_panel=panel,
        show_default=False,
        parser=parser,
        callback=callback,
    )


required = partial(option, default=...)
flag = partial(option, default=False)
repeatable = partial(option, default=[])
search_option = partial(option, panel="Search")


def argument(metavar: str | None, help: str, default: Any = ...) -> Any:
    """Declare a positional argument, by default a required one."""
    return typer.Argument(default, metavar=metavar, help=help, show_default=False)


def listed(flag: str, help: str, *, default: Any = None, panel: str | None = None) -> Any:
    """Declare an option of words, joined by commas or repeated."""
    if " " not in flag:
        flag = f"{flag} LIST"
    return option(flag, help, default=default, panel=panel, callback=split_commas)


def split_commas(values: list[str] | None) -> list[str] | None:
    """Split values at commas.

    Example:
        >>> split_commas(["de, fr", "en"])
        ['de', 'fr', 'en']
    """
    if not values:
        return None
    words = [word.strip() for word in ",".join(values).split(",")]
    return [word for word in words if word]


def whole_numbers(values: list[str] | None) -> list[str] | None:
    """Split values at commas, and check that they are distinct whole numbers."""
    words = split_commas(values)
    if words:
        are_numbers = all(word.isdigit() for word in words)
        if not are_numbers or len({int(word) for word in words}) < len(words):
            raise typer.BadParameter(f"expected distinct whole numbers, such as 0,1,2, got {','.join(words)}")
    return words


def number_or(*words: str) -> Callable[[str], float | str]:
    """Return a parser of a number or one of some words."""

    def parse(text: str) -> float | str:
        try:
            return text if text in words else float(text)
        except ValueError:
            raise typer.BadParameter(f"expected a number or {', '.join(words)}, got {text!r}") from None

    return parse


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were set; the library's defaults hold for the others."""
    return {name: value for name, value in options.items() if value is not None}


@cache
def command_of(kind: Any) -> Any:
    """Return a command of typer whose parameters are the fields of a dataclass, and which returns one."""
    maker = typer.Typer(add_completion=False)
    maker.command()(kind)
    return typer.main.get_command(maker)


def options_of(context: typer.Context, kind: Callable[..., Options]) -> Options:
    """Return the values of a dataclass of options, see :func:`~st_xling.cli.app.with_options`."""
    command = command_of(kind)
    values = {parameter.name: context.params[parameter.name] for parameter in command.params}
    # Typer's wrapper of the dataclass makes paths and numbers of what the context holds as text.
    return command.callback(**values)


def read_assignments(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Read the values of an option that takes ``KEY=VALUE``, in YAML."""
    from st_xling.training.recipe_files import read_yaml

    pairs: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} takes KEY=VALUE: got {text!r}.")
        try:
            pairs[key] = read_yaml(value, "it")
        except ValueError as error:
            raise ValueError(f"{flag} {key}= takes a YAML value: got {value!r}; quote it ({error}).") from error
    return pairs


@dataclass(frozen=True)
class JsonOption:
    """An option of every command."""

    json: Path | None = option("--json", "Also write results as JSON; with - to stdout, and all else to stderr.")


SEED = option("--seed", "Random seed (default: 0).")
BATCH_SIZE = option("--batch-size", "Maximum batch size (default: chosen for the device).")
SKIP_BAD_LINES = flag("--skip-bad-lines", "Skip faulty lines, and list them in a warning.")
OVERWRITE = flag("--overwrite", "Replace an earlier result.")
KEEP = flag("--keep", "Also save the results with the model, which must be a folder.")
MEMORY_MIB = search_option("--memory-mib", "Memory for a block of the search (default: 256).")
NEIGHBORS = search_option("--k", "Number of neighbors that make up a sentence's neighborhood (default: 4).")
MARGIN = search_option("--margin", "How a cosine is compared with those of the neighbors (default: ratio).")
RETRIEVAL = search_option("--retrieval", "Which candidates are chosen (default: max).")
WORK = option("--work DIR", "Keep intermediate results here, to try other thresholds or filters (default: OUT.work).")
