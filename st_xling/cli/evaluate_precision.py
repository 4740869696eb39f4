"""``st-xling evaluate precision``: is a translation among the N nearest sentences, both directions?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.encoder_view import add_view, check_view, load_view
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    precision = tasks.add_parser(
        "precision",
        help="translations among the N nearest (P@1, P@5), both directions",
        description="How often is a translation among the N nearest sentences, by cosine? Any language pair.",
        epilog="examples:\n  st-xling evaluate precision my-encoder --data 'zh-vi=phrasebook?split=test&size=500'\n"
        "  st-xling evaluate precision my-encoder --data zh-vi=test.tsv --at 1,5\n"
        "  st-xling evaluate precision my-encoder --data zh-vi=test.tsv --centre language "
        "--centre-text 'zh-vi=phrasebook?size=2000'",
    )
    precision.add_argument("model", metavar="MODEL", help="Hub id or folder")
    precision.add_argument(
        "--data",
        action="append",
        required=True,
        metavar="SPEC",
        help="xx-yy=PATH, Hub id, phrasebook:… (its test split)",
    )
    precision.add_argument("--at", default="1,5", metavar="LIST", help="numbers of candidates (default: %(default)s)")
    precision.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines and say how many")
    precision.add_argument(
        "--batch-size", type=int, default=128, metavar="N", help="texts embedded at a time (default: %(default)s)"
    )
    precision.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    add_view(precision)
    add_keep(precision)
    precision.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data import load_data_specs
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.evaluation import PrecisionEvaluator

    check_keep(arguments)
    check_view(arguments)
    if not all(part.strip().isdecimal() for part in arguments.at.split(",")):
        raise ValueError(f"--at takes whole numbers joined by commas, such as 1,5: got {arguments.at!r}.")
    data = load_data_specs(arguments.data, split="test", skip_bad_lines=arguments.skip_bad_lines)
    evaluator = PrecisionEvaluator(
        data,
        data_name=phrasebook_name(arguments.data, split="test"),
        at=[int(part) for part in arguments.at.split(",")],
        batch_size=arguments.batch_size,
        show_progress_bar=True,
        write_csv=False,
    )
    model, evaluator.view = load_view(arguments, *evaluator.columns(), batch_size=arguments.batch_size)
    metrics = evaluator(model)
    print(evaluator.table(metrics))
    print(evaluator.signature)
    write_figures(arguments.json, {"precision": metrics, "signature": evaluator.signature})
    keep(arguments, "precision", metrics, evaluator.signature)
