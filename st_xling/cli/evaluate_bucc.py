"""``st-xling evaluate bucc``: mine the BUCC layout and compare with its gold."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.cli.encoder_view import add_view, check_view, load_view
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep, publish

if TYPE_CHECKING:
    from st_xling.evaluation import BuccEvaluator

EXAMPLE = """\
examples:
  st-xling evaluate bucc my-encoder --data phrasebook --pairs de-en fr-en
  st-xling evaluate bucc my-encoder --data bucc2018 --pairs de-en fr-en --json figures.json
  st-xling evaluate bucc my-encoder --data bucc2018 --pairs zh-en --split sample --threshold 1.06

The phrasebook needs no files: phrasebook:de,fr?size=600&gold=100&seed=0 hides 100 translations among 600 sentences a
side, for each language with English or for --pairs; the development split gives the threshold.
"""


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    bucc = tasks.add_parser(
        "bucc",
        help="bitext mining: precision, recall and F1 of mined pairs",
        description="Mine sentence pairs and compare them with gold. The threshold of highest F1 on the training split "
        "is applied to the split that is judged.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    bucc.add_argument("model", metavar="MODEL", help="Hub id or folder")
    bucc.add_argument(
        "--data", required=True, metavar="DIR", help="files xx-yy.SPLIT.{xx,yy,gold}, or phrasebook?size=600&gold=100"
    )
    bucc.add_argument(
        "--pairs",
        nargs="+",
        metavar="XX-YY",
        default=None,
        help="language pairs, as in the file names (phrasebook, default: its languages with English)",
    )
    bucc.add_argument("--split", help="the part that is judged (default: test)")
    bucc.add_argument(
        "--train-split",
        metavar="SPLIT",
        help="the part that gives the threshold (default: training; of the phrasebook: dev)",
    )
    bucc.add_argument(
        "--threshold",
        type=_threshold,
        metavar="X",
        help="a number instead; or tune: the best on the gold it is then judged by",
    )
    bucc.add_argument("--k", type=int, help="neighbours that make up a sentence's neighbourhood (default: 4)")
    bucc.add_argument("--margin", help="ratio (default), distance or absolute")
    bucc.add_argument("--retrieval", help="max (default), intersect, forward or backward")
    bucc.add_argument(
        "--batch-size", type=int, default=128, metavar="N", help="texts embedded at a time (default: %(default)s)"
    )
    bucc.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    add_view(bucc)
    bucc.set_defaults(skip_bad_lines=False)
    add_keep(bucc)
    bucc.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data.phrasebook_spec import is_phrasebook
    from st_xling.evaluation import BuccEvaluator, bucc_table

    check_keep(arguments, publishes=True)
    check_view(arguments)
    names = ("split", "train_split", "threshold", "k", "margin", "retrieval", "batch_size")
    options = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    pairs = None if arguments.pairs is None else [pair for words in arguments.pairs for pair in words.split(",")]
    if pairs is None and not is_phrasebook(arguments.data):
        raise ValueError(f"--pairs says which files of {arguments.data} to read: got none; give e.g. --pairs de-en.")
    make: Any = BuccEvaluator.from_phrasebook if is_phrasebook(arguments.data) else BuccEvaluator.from_folder
    evaluator = make(arguments.data, pairs, show_progress_bar=True, write_csv=False, **options)
    model, evaluator.view = load_view(arguments, *evaluator.columns(), batch_size=arguments.batch_size)
    metrics = evaluator(model)
    print(bucc_table(metrics, name=evaluator.name))
    print(evaluator.signature)
    # JSON knows no infinity, the threshold where nothing is correct.
    finite = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
    write_figures(arguments.json, {"bucc": finite, "signature": evaluator.signature})
    if arguments.keep:
        _publish(arguments.model, evaluator, metrics)
    scores = {pair: found.as_dict() for pair, found in evaluator.histograms.items()}  # for the card's picture
    keep(arguments, "bucc", {**finite, "histograms": scores}, evaluator.signature)


def _publish(model: str, evaluator: BuccEvaluator, metrics: dict[str, float]) -> None:
    """The thresholds that mean something elsewhere, into the model's ``mining.json``."""
    from st_xling.evaluation.bucc_thresholds import publishable_thresholds

    thresholds, left_out = publishable_thresholds(evaluator, metrics)
    for pair, why in left_out.items():
        print(f"the threshold of {pair} is not published: {why}", file=sys.stderr)
    publish(Path(model), thresholds)


def _threshold(word: str) -> float | str:
    return word if word == "tune" else float(word)
