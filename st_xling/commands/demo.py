"""``st-xling demo``: the whole street once, offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.commands.figures import write_figures


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    demo = commands.add_parser("demo", help="train, judge and use a tiny encoder, offline, in a few minutes")
    demo.add_argument("--out", default="xling-demo", type=Path, help="folder for the model (default: %(default)s)")
    demo.add_argument("--seed", default=0, type=int)
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
