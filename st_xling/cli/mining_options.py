"""Options that ``mine`` and ``score`` share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def add_command(commands: Any, name: str, *, help: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser in which what is not said keeps the library's default, and whose help ends with examples."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=examples,
        argument_default=argparse.SUPPRESS,
    )
    return parser


def add_embedding_options(parser: argparse.ArgumentParser) -> None:
    """Where vectors come from."""
    group = parser.add_argument_group("embeddings")
    group.add_argument("--model", metavar="MODEL", help="Hub id or folder; embeds a side without embeddings")
    for side in ("source", "target"):
        group.add_argument(
            f"--{side}-embeddings", metavar="STORE", help="store of st-xling encode, or a LASER file (.raw, .emb)"
        )
    group.add_argument("--dim", type=int, help="of LASER files (default: 1024)")
    group.add_argument("--laser-dtype", choices=("float32", "float16"), help="of LASER files (default: float32)")
    group.add_argument("--batch-size", type=int, metavar="N", help="sentences embedded at a time (default: 128)")
    group.add_argument(
        "--dtype", choices=("float32", "float16", "bfloat16"), help="of embeddings that are made (default: float32)"
    )
    group.add_argument("--prompt", metavar="WORDS", help="put before every sentence that is embedded")


def add_search_options(
    parser: argparse.ArgumentParser, *, threshold: Callable[[str], Any] = float, more: str = ""
) -> None:
    """How neighbours are found and scored.

    Args:
        parser: Of the command.
        threshold: Reads the threshold's word.
        more: For its help: what it may be besides a number.
    """
    group = parser.add_argument_group("search")
    group.add_argument("--k", type=int, help="neighbours that make up a sentence's neighbourhood (default: 4)")
    group.add_argument("--margin", help="ratio (default), distance or absolute")
    group.add_argument("--threshold", type=threshold, metavar="X", help=f"keep pairs that score at least this{more}")
    group.add_argument("--method", help="exact (default), approximate, or auto: by size")
    group.add_argument("--engine", help="local (default), or ray: a cluster, the same result")
    group.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    group.add_argument("--memory-mib", type=int, metavar="N", help="for one block of the search (default: 256)")


def add_guard_options(parser: argparse.ArgumentParser) -> Any:
    """Which pairs are turned down; returns the group."""
    group = parser.add_argument_group("guards")
    group.add_argument("--source-language", metavar="CODE", help="such as de; for the guard of languages")
    group.add_argument("--target-language", metavar="CODE", help="such as en")
    group.add_argument(
        "--guard", action="append", default=[], metavar="NAME=X", help="another limit, such as length_ratio=2.5"
    )
    group.add_argument(
        "--no-guard",
        action="append",
        default=[],
        metavar="NAME",
        help="switch one off: hub, copy, near_copy, length_ratio, numbers, language",
    )
    group.add_argument("--rejects", type=Path, metavar="FILE", help="pairs that guards turn down, as JSON lines")
    return group


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Where the work is kept meanwhile."""
    group = parser.add_argument_group("work")
    group.add_argument("--work", metavar="DIR", help="where it is kept until it is done (default: OUT.work)")
    group.add_argument("--keep-work", action="store_true", help="leave it there, to try other thresholds or guards")
    group.add_argument("--save-seconds", type=float, metavar="S", help="least time between two saves (default: 60)")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of these options that were said; the others keep the library's defaults."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def tell(arguments: argparse.Namespace, command: str, report: Any, pairs: int) -> None:
    """Figures for a reader, then the signature: on stderr where stdout holds the pairs; ``--json`` is written."""
    from st_xling.cli.figures import write_figures

    says = sys.stderr if arguments.out == "-" else sys.stdout
    for line in [*report.lines(), f"{pairs:,} pairs: {arguments.out}", report.signature]:
        print(line, file=says)
    write_figures(arguments.json, {command: report.as_dict(), "signature": report.signature})


def guard_options(arguments: argparse.Namespace, *, all_off: bool) -> Any:
    """The :class:`~st_xling.mining.GuardOptions` that were asked for."""
    from st_xling.mining import GuardOptions

    languages = {
        name: getattr(arguments, name)
        for name in ("source_language", "target_language")
        if getattr(arguments, name, None) is not None
    }
    off = ["all"] if all_off else arguments.no_guard
    return GuardOptions(**languages).with_flags(limits=arguments.guard, off=off)


@contextmanager
def output(arguments: argparse.Namespace) -> Iterator[Any]:
    """``--out`` as the library takes it; when the block is interrupted, says what to do if work was kept."""
    try:
        yield _Stdout() if arguments.out == "-" else Path(arguments.out)
    except KeyboardInterrupt:
        if arguments.out != "-" or hasattr(arguments, "work"):
            print("\nwhat is done stands; the same command goes on from there.", file=sys.stderr)
        raise


class _Stdout:
    """Bytes to stdout, whose reader may stop when it has enough, as ``head`` does."""

    def write(self, data: bytes) -> int:
        try:
            return sys.stdout.buffer.write(data)
        except BrokenPipeError:
            return self._to_nobody(len(data))

    def flush(self) -> None:
        try:
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._to_nobody(0)

    def _to_nobody(self, count: int) -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return count
