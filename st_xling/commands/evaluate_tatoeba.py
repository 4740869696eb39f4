"""``st-xling evaluate tatoeba``: translation retrieval, both directions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.commands.figures import write_figures


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    tatoeba = tasks.add_parser(
        "tatoeba",
        help="translation retrieval accuracy, both directions",
        epilog="example:\n  st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages xtreme36",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tatoeba.add_argument("model", metavar="MODEL", help="Hub id or folder")
    tatoeba.add_argument("--data", required=True, type=Path, metavar="DIR", help="tatoeba.{l3}-eng.{l3,eng} files")
    tatoeba.add_argument("--languages", metavar="LIST", help="codes or a group: xnli14, full28, xtreme36, laser112")
    tatoeba.add_argument("--batch-size", type=int, default=128)
    tatoeba.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    tatoeba.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.evaluation import TatoebaEvaluator, tatoeba_table
    from st_xling.models import load_encoder

    languages = arguments.languages.split(",") if arguments.languages else None
    evaluator = TatoebaEvaluator.from_folder(
        arguments.data, languages, batch_size=arguments.batch_size, show_progress_bar=True, write_csv=False
    )
    metrics = evaluator(load_encoder(arguments.model))
    print(tatoeba_table(metrics, name=evaluator.name))
    print(evaluator.signature)
    write_figures(arguments.json, {"tatoeba": metrics, "signature": evaluator.signature})
