"""``st-xling evaluate xsim``: margin-based similarity search errors on aligned text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.encoder_view import add_view, check_view, load_view
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep

EXAMPLE = """\
examples:
  st-xling evaluate xsim my-encoder --data 'phrasebook:de,fr?split=test&size=500'
  st-xling evaluate xsim my-encoder --data tatoeba/v1 --languages deu,fra
  st-xling evaluate xsim my-encoder --data de-en=test.tsv

The phrasebook needs no files; its test split is read unless ?split= says otherwise.
"""


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    xsim = tasks.add_parser(
        "xsim",
        help="similarity search errors by margin, both directions",
        description="Share of sentences whose best match by margin is not their translation; lower is better.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    xsim.add_argument("model", metavar="MODEL", help="Hub id or folder")
    xsim.add_argument(
        "--data",
        required=True,
        action="append",
        metavar="DIR",
        help="folder of tatoeba.{l3}-eng.{l3,eng} files; or phrasebook:…, or xx-en=PATH, repeated for more languages",
    )
    xsim.add_argument(
        "--languages", default=None, metavar="LIST", help="codes or a group: xnli14, full28, xtreme36, laser112"
    )
    xsim.add_argument(
        "--skip-bad-lines", action="store_true", default=False, help="drop unreadable lines of xx-en=PATH"
    )
    xsim.add_argument("--k", type=int, help="neighbours that make up a sentence's neighbourhood (default: 4)")
    xsim.add_argument("--margin", help="ratio (default), distance or absolute")
    xsim.add_argument(
        "--batch-size", type=int, default=128, metavar="N", help="texts embedded at a time (default: %(default)s)"
    )
    xsim.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    add_view(xsim)
    add_keep(xsim)
    xsim.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.evaluation import xsim_by_language
    from st_xling.evaluation.english_pairs import load_english_pairs
    from st_xling.evaluation.tatoeba_pairs import english_columns

    check_keep(arguments)
    check_view(arguments)
    text = load_english_pairs(arguments.data, arguments.languages, skip_bad_lines=arguments.skip_bad_lines)
    options = {name: getattr(arguments, name) for name in ("k", "margin", "batch_size") if hasattr(arguments, name)}
    model, view = load_view(arguments, *english_columns(text.pairs), batch_size=arguments.batch_size)
    report = xsim_by_language(model, text.pairs, name=text.name, show_progress_bar=True, view=view, **options)
    print(report.table())
    print(report.signature)
    write_figures(arguments.json, report.as_dict())
    keep(arguments, "xsim", report.as_dict()["xsim"], report.signature)
