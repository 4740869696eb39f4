"""``st-xling score``: a score for each pair of a file."""

from __future__ import annotations

import argparse
from typing import Any

from st_xling.cli.mining_options import (
    add_command,
    add_embedding_options,
    add_guard_options,
    add_json_option,
    add_search_options,
    add_work_options,
    given,
    guard_options,
    output,
    tell,
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
    score = add_command(
        commands,
        "score",
        help="score the pairs of a parallel file, to filter it",
        description="Give each pair of a file its margin score, and leave out what falls below a threshold.",
        examples=EXAMPLE,
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
    add_work_options(score)
    add_json_option(score)
    score.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Score, say what was kept, print the signature: on stderr where stdout holds the pairs."""
    from st_xling.mining import score_texts

    asked = ("source_language", "target_language", "rejects")
    guarded = (
        arguments.guards or arguments.guard or arguments.no_guard or any(hasattr(arguments, name) for name in asked)
    )
    guards = guard_options(arguments, all_off=not guarded)
    with output(arguments) as out:
        report = score_texts(arguments.pairs, out, guards=guards, progress=True, **given(arguments, _OPTIONS))
    tell(arguments, "score", report, report.kept)


def _columns(word: str) -> tuple[int, ...]:
    return tuple(int(number) for number in word.split(","))
