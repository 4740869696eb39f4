"""``st-xling evaluate bucc``: mine the BUCC layout and compare with its gold."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from st_xling.commands.figures import write_figures

EXAMPLE = """\
examples:
  st-xling evaluate bucc my-encoder --data bucc2018 --pairs de-en fr-en --json figures.json
  st-xling evaluate bucc my-encoder --data bucc2018 --pairs zh-en --split sample --threshold 1.06
"""


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    bucc = tasks.add_parser(
        "bucc",
        help="bitext mining: precision, recall and F1 of mined pairs",
        description="Mine sentence pairs and compare them with gold. The threshold of highest F1 on the training split "
        "is applied to the split that is judged.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    bucc.add_argument("model", metavar="MODEL", help="Hub id or folder")
    bucc.add_argument("--data", required=True, type=Path, metavar="DIR", help="files xx-yy.SPLIT.{xx,yy,gold}")
    bucc.add_argument("--pairs", required=True, nargs="+", metavar="XX-YY", help="language pairs, as in the file names")
    bucc.add_argument("--split", help="the part that is judged (default: test)")
    bucc.add_argument("--train-split", help="the part that gives the threshold (default: training)")
    bucc.add_argument(
        "--threshold", type=_threshold, help="a number instead; or tune: the best on the gold it is then judged by"
    )
    bucc.add_argument("--k", type=int, help="neighbours that make up a sentence's neighbourhood (default: 4)")
    bucc.add_argument("--margin", help="ratio (default), distance or absolute")
    bucc.add_argument("--retrieval", help="max (default), intersect, forward or backward")
    bucc.add_argument("--batch-size", type=int, default=128)
    bucc.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    bucc.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.evaluation import BuccEvaluator, bucc_table
    from st_xling.models import load_encoder

    names = ("split", "train_split", "threshold", "k", "margin", "retrieval", "batch_size")
    options = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    pairs = [pair for words in arguments.pairs for pair in words.split(",")]
    evaluator = BuccEvaluator.from_folder(arguments.data, pairs, show_progress_bar=True, write_csv=False, **options)
    metrics = evaluator(load_encoder(arguments.model))
    print(bucc_table(metrics, name=evaluator.name))
    print(evaluator.signature)
    # JSON knows no infinity, the threshold where nothing is correct.
    finite = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
    write_figures(arguments.json, {"bucc": finite, "signature": evaluator.signature})


def _threshold(word: str) -> float | str:
    return word if word == "tune" else float(word)
