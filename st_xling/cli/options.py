"""Options that several commands share, and what all commands do with results."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer


def option(*flags: str, help: str, default: Any = None, panel: str | None = None, **settings: Any) -> Any:
    """Declare an option. ``None`` leaves the default to the library, and the help names it, see :func:`given`."""
    return typer.Option(default, *flags, help=help, rich_help_panel=panel, show_default=False, **settings)


def argument(metavar: str | None, help: str, default: Any = None) -> Any:
    """Declare a positional argument."""
    return typer.Argument(default, metavar=metavar, help=help, show_default=False)


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were set; the library's defaults hold for the others."""
    return {name: value for name, value in options.items() if value is not None}


def split_commas(values: list[str] | None) -> list[str] | None:
    """Split values at commas.

    Example:
        >>> split_commas(["de, fr", "en"])
        ['de', 'fr', 'en']
    """
    return [word.strip() for value in values for word in value.split(",") if word.strip()] if values else None


def numbers(flag: str, values: list[str] | None) -> list[int] | None:
    """Parse distinct whole numbers, joined by commas."""
    words = split_commas(values)
    if words is None:
        return None
    if not (all(map(str.isdigit, words)) and len({*map(int, words)}) == len(words)):
        raise ValueError(f"{flag} must be distinct whole numbers, such as 0,1,2: got {','.join(words)}.")
    return [int(word) for word in words]


def listed(*flags: str, help: str, panel: str | None = None, **settings: Any) -> Any:
    """Declare an option of words, joined by commas or repeated."""
    return option(*flags, help=help, panel=panel, callback=split_commas, **{"metavar": "LIST", **settings})


JSON = option("--json", help="Also write the results as JSON to this file; - for stdout, all else then goes to stderr.")
KEEP = option("--keep", default=False, help="Also save the results with the model, which must be a folder.")
SEED = option("--seed", help="Random seed (default: 0).")
BATCH_SIZE = option("--batch-size", help="Maximum batch size (default: chosen for the device).")
SKIP_BAD_LINES = option("--skip-bad-lines", default=False, help="Skip faulty lines, and list them in a warning.")
OVERWRITE = option("--overwrite", default=False, help="Replace an earlier result.")
MEMORY_MIB = option("--memory-mib", help="Memory for a block of the search (default: 256).")
NEIGHBORS = option("--k", help="Number of neighbors that make up a sentence's neighborhood (default: 4).")
MARGIN = option("--margin", help="How a cosine is compared with those of the neighbors (default: ratio).")
RETRIEVAL = option("--retrieval", help="Which candidates are chosen (default: max).")


def write_results(context: typer.Context, content: Any) -> None:
    """Write ``content`` to the file of ``--json``, or to stdout for ``-``."""
    path = context.params["json"]
    if path == Path("-"):
        print(json_module.dumps(content, ensure_ascii=False, indent=2), file=context.obj.stdout)
    elif path is not None:
        from st_xling.utils.io import write_json

        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)


def print_results(context: typer.Context, name: str, content: Any, signature: str, table: str) -> None:
    """Print a table of results with its signature, and write the results as JSON."""
    print(table, signature, sep="\n")
    write_results(context, {name: content, "signature": signature})


def print_report(context: typer.Context, report: Any, summary: str) -> dict[str, Any]:
    """Print the lines of a report and its signature, to stderr if stdout has the results, and write it as JSON.

    Returns:
        The content of the JSON.
    """
    out = context.params["out"]
    for line in [*report.lines(), f"{summary}: {out}", report.signature]:
        print(line, file=sys.stderr if out == "-" else sys.stdout)
    content = {str(context.info_name): report.as_dict(), "signature": report.signature}
    if context.params["json"] or context.params.get("push_dataset"):
        from st_xling.hub.card import shown_command

        content["command"] = shown_command(context.obj.line)
    write_results(context, content)
    return content


@contextmanager
def resumable(can_resume: bool = True) -> Iterator[None]:
    """Tell how to resume when the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if can_resume:
            print("\nRun the same command again to resume.", file=sys.stderr)
        raise


@contextmanager
def output(context: typer.Context) -> Iterator[Any]:
    """Return ``--out`` as the library takes it; when the block is interrupted, tell how to resume."""
    out = context.params["out"]
    with resumable(out != "-" or context.params["work"] is not None):
        yield sys.stdout.buffer if out == "-" else Path(out)
