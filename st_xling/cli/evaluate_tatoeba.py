"""``st-xling evaluate tatoeba``: translation retrieval, both directions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.encoder_view import add_view, check_view, load_view
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep

EXAMPLE = """\
examples:
  st-xling evaluate tatoeba my-encoder --data 'phrasebook:de,fr?split=test&size=500'
  st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages xtreme36
  st-xling evaluate tatoeba my-encoder --data de-en=test.tsv --data fr-en=test.fr,test.en

The phrasebook needs no files; its test split is read unless ?split= says otherwise.
"""


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    tatoeba = tasks.add_parser(
        "tatoeba",
        help="translation retrieval accuracy, both directions",
        description="Does a sentence find its translation among all of the other language, by cosine? Each language "
        "with English.",
        epilog=EXAMPLE,
    )
    tatoeba.add_argument("model", metavar="MODEL", help="Hub id or folder")
    tatoeba.add_argument(
        "--data",
        required=True,
        action="append",
        metavar="DIR",
        help="folder of tatoeba.{l3}-eng.{l3,eng} files; or phrasebook:…, or xx-en=PATH, repeated for more languages",
    )
    tatoeba.add_argument("--languages", metavar="LIST", help="codes or a group: xnli14, full28, xtreme36, laser112")
    tatoeba.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines of xx-en=PATH")
    tatoeba.add_argument(
        "--batch-size", type=int, default=128, metavar="N", help="texts embedded at a time (default: %(default)s)"
    )
    tatoeba.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    add_view(tatoeba)
    add_keep(tatoeba)
    tatoeba.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.evaluation import TatoebaEvaluator, tatoeba_table
    from st_xling.evaluation.english_pairs import load_english_pairs
    from st_xling.evaluation.tatoeba_pairs import english_columns

    check_keep(arguments)
    check_view(arguments)
    text = load_english_pairs(arguments.data, arguments.languages, skip_bad_lines=arguments.skip_bad_lines)
    evaluator = TatoebaEvaluator(
        text.pairs, data_name=text.name, batch_size=arguments.batch_size, show_progress_bar=True, write_csv=False
    )
    model, evaluator.view = load_view(arguments, *english_columns(evaluator.pairs), batch_size=arguments.batch_size)
    metrics = evaluator(model)
    print(tatoeba_table(metrics, name=evaluator.name))
    print(evaluator.signature)
    write_figures(arguments.json, {"tatoeba": metrics, "signature": evaluator.signature})
    keep(arguments, "tatoeba", metrics, evaluator.signature)
