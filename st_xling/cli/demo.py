"""``st-xling demo``: the whole street once, offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.figures import write_figures


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    demo = commands.add_parser(
        "demo",
        help="train, judge and use a tiny encoder, offline, in a few minutes",
        description="Train a tiny encoder for five languages on the phrasebook, judge it before and after, mine with "
        "it, and save it with its card and a picture. Needs no network, no files and no GPU.",
        epilog="examples:\n  st-xling demo\n  st-xling demo --out my-demo --seed 1 --json figures.json",
    )
    demo.add_argument(
        "--out", default="xling-demo", type=Path, metavar="DIR", help="folder for the model (default: %(default)s)"
    )
    demo.add_argument(
        "--seed", default=0, type=int, metavar="N", help="of text, weights and training (default: %(default)s)"
    )
    demo.add_argument("--overwrite", action="store_true", help="replace an earlier demo in the folder")
    demo.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    demo.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, judge, mine, and print what came of it."""
    from st_xling import demo

    results = demo.run_demo(arguments.out, seed=arguments.seed, overwrite=arguments.overwrite)
    print(demo.demo_table(results))
    print(f"\nThe model, results.json and {results['picture']} are in {arguments.out}. Use it:\n")
    print(demo.usage_lines(arguments.out, results["example"]))
    write_figures(arguments.json, results)
