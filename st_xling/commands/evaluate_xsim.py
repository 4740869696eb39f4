"""``st-xling evaluate xsim``: margin-based similarity search errors on aligned text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.commands.figures import write_figures


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    xsim = tasks.add_parser(
        "xsim",
        help="similarity search errors by margin, both directions",
        description="Share of sentences whose best match by margin is not their translation; lower is better.",
        epilog="example:\n  st-xling evaluate xsim my-encoder --data tatoeba/v1 --languages deu,fra",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    xsim.add_argument("model", metavar="MODEL", help="Hub id or folder")
    xsim.add_argument("--data", required=True, type=Path, metavar="DIR", help="tatoeba.{l3}-eng.{l3,eng} files")
    xsim.add_argument(
        "--languages", default=None, metavar="LIST", help="codes or a group: xnli14, full28, xtreme36, laser112"
    )
    xsim.add_argument("--k", type=int, help="neighbours that make up a sentence's neighbourhood (default: 4)")
    xsim.add_argument("--margin", help="ratio (default), distance or absolute")
    xsim.add_argument("--batch-size", type=int, default=128)
    xsim.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    xsim.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data import read_tatoeba
    from st_xling.evaluation import resolve_languages, xsim_by_language
    from st_xling.models import load_encoder

    wanted = None if arguments.languages is None else resolve_languages(arguments.languages)
    sets = read_tatoeba(arguments.data, wanted)
    pairs = {language: (list(rows["source"]), list(rows["target"])) for language, rows in sets.items()}
    options = {name: getattr(arguments, name) for name in ("k", "margin", "batch_size") if hasattr(arguments, name)}
    report = xsim_by_language(load_encoder(arguments.model), pairs, name="tatoeba", show_progress_bar=True, **options)
    print(report.table())
    print(report.signature)
    write_figures(arguments.json, report.as_dict())
