"""``st-xling score``: a score for each pair of a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from st_xling.commands.mining_options import (
    add_embedding_options,
    add_guard_options,
    add_search_options,
    guard_options,
    output,
)

EXAMPLE = """\
examples:
  st-xling score pairs.tsv --model my-encoder --out scored.tsv
  st-xling score crawl.tsv.gz --model my-encoder --out clean.tsv --threshold 1.02 --guards --rejects rejects.jsonl
  st-xling score pairs.tsv --source-embeddings de.raw --target-embeddings en.raw --dim 1024 --out - | cut -f1

Neighbours come from the file itself. A line of TSV is the score and the line as it was, in the order of the file; a
pair with a blank side scores -inf. Killed or interrupted, the same command goes on from OUT.work.
"""

_OPTIONS = (
    *("columns", "model", "source_embeddings", "target_embeddings", "dim", "laser_dtype", "batch_size", "dtype"),
    *("prompt", "k", "margin", "threshold", "rejects", "format", "method", "engine", "device", "memory_mib"),
    *("save_seconds", "work", "keep_work"),
)


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    score = commands.add_parser(
        "score",
        help="score the pairs of a parallel file, to filter it",
        description="Give each pair of a file its margin score, and leave out what falls below a threshold.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    score.add_argument("pairs", metavar="PAIRS", help="UTF-8, source TAB target, also .gz and .xz")
    score.add_argument("--out", required=True, metavar="FILE", help="file of the scored pairs, or - for stdout")
    score.add_argument("--format", choices=("tsv", "jsonl"), help="of the scored pairs (default: tsv)")
    score.add_argument(
        "--columns", type=_columns, metavar="I,J", help="of source and target, counted from 0 (default: 0,1)"
    )
    add_embedding_options(score)
    add_search_options(score)
    guards = add_guard_options(score)
    guards.add_argument(
        "--guards", action="store_true", default=False, help="leave out what guards turn down (so does any of these)"
    )
    work = score.add_argument_group("work")
    work.add_argument("--work", metavar="DIR", help="where it is kept until it is done (default: OUT.work)")
    work.add_argument("--keep-work", action="store_true", help="leave it there, to try other thresholds or guards")
    work.add_argument("--save-seconds", type=float, metavar="S", help="least time between two saves (default: 60)")
    score.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    score.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Score, say what was kept, print the signature: on stderr where stdout holds the pairs."""
    from st_xling.commands.figures import write_figures
    from st_xling.mining import score_texts

    options = {name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)}
    asked = ("source_language", "target_language", "rejects")
    guarded = (
        arguments.guards or arguments.guard or arguments.no_guard or any(hasattr(arguments, name) for name in asked)
    )
    guards = guard_options(arguments, all_off=not guarded)
    with output(arguments) as out:
        report = score_texts(arguments.pairs, out, guards=guards, progress=True, **options)
    says = sys.stderr if arguments.out == "-" else sys.stdout
    for line in [*report.lines(), f"{report.kept:,} pairs: {arguments.out}", report.signature]:
        print(line, file=says)
    write_figures(arguments.json, {"score": report.as_dict(), "signature": report.signature})


def _columns(word: str) -> tuple[int, ...]:
    return tuple(int(number) for number in word.split(","))
