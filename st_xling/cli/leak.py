"""``st-xling leak``: evaluation text in training data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.figures import write_figures


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    leak = commands.add_parser(
        "leak",
        help="look for evaluation text in training data",
        description="Count the evaluation sentences that training data hold on either side. Texts are compared by "
        "their letters, marks and numbers, case folded; near duplicates are not found.",
        epilog="examples:\n  st-xling leak --train phrasebook:de --eval phrasebook:de\n"
        "  st-xling leak --train de-en=pairs.tsv --eval tatoeba/v1 --eval bucc2018/de-en/de-en.test",
    )
    leak.add_argument("--train", action="append", required=True, metavar="SPEC", help="as train's --data")
    leak.add_argument(
        "--eval",
        action="append",
        required=True,
        metavar="EVAL",
        help="a SPEC, a Tatoeba folder, a BUCC folder or prefix, a .txt file of sentences, or phrasebook:… (its test "
        "split)",
    )
    leak.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines and say how many")
    leak.add_argument("--stream", action="store_true", help="read --train as needed: for more than memory holds")
    leak.add_argument("--fail-on-leak", action="store_true", help="end with status 2 if anything is shared")
    leak.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    leak.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Compare, print the table, and fail if asked to."""
    from st_xling.data import leaks, load_data_specs, load_evaluation_specs, refuse_leaks

    train = load_data_specs(arguments.train, skip_bad_lines=arguments.skip_bad_lines, stream=arguments.stream)
    evaluation = load_evaluation_specs(arguments.eval, skip_bad_lines=arguments.skip_bad_lines)
    report = leaks(train, evaluation, progress=True)
    print(report.table())
    write_figures(arguments.json, report.as_dict())
    if arguments.fail_on_leak:
        refuse_leaks(report)
