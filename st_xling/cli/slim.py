"""``st-xling slim``: a multilingual encoder cut to the tokens of some languages."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

EXAMPLE = """\
examples:
  st-xling slim intfloat/multilingual-e5-small --langs de,en --text de-en=pairs.tsv --out small
  st-xling slim my-encoder --langs de,en --text de=news.de.txt.gz --text en=news.en.txt.gz --min-count 2 --plan
  st-xling slim my-encoder --langs de,en --text phrasebook:de --keep 'query: ' --keep 'passage: ' --out small

Text is parallel as train takes it, or a text a line (also .gz), or JSON lines with "text". It should be much and of
many kinds: a token that does not come in it is gone, and words that need it are spelled in smaller pieces.
"""

_OPTIONS = ("min_count", "hold_out", "seed", "skip_bad_lines", "overwrite", "batch_size", "device")


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    slim = commands.add_parser(
        "slim",
        help="cut an encoder's vocabulary to some languages: the same embeddings, a smaller model",
        description="Keep the tokens that text of the given languages uses, drop all others with their rows of the "
        "word embeddings, and compare the two models.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    slim.add_argument("model", metavar="MODEL", help="Hub id or folder of an encoder; it is not touched")
    slim.add_argument("--langs", required=True, metavar="LIST", help="languages that it shall still read: de,en")
    slim.add_argument(
        "--text",
        required=True,
        action="append",
        metavar="SPEC",
        help="text of these languages: xx=FILE, xx-yy=PAIRS or phrasebook:xx; may be repeated",
    )
    goal = slim.add_mutually_exclusive_group(required=True)
    goal.add_argument("--out", type=Path, default=None, metavar="DIR", help="folder of the slim model")
    goal.add_argument("--plan", "--dry-run", action="store_true", help="only say what would stay, and its size")
    slim.add_argument("--min-count", type=int, metavar="N", help="drop tokens that come less often (default: 1, none)")
    slim.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="WORDS|FILE",
        help="words, or a file of them, a line each, whose tokens stay; may be repeated",
    )
    slim.add_argument(
        "--hold-out",
        type=float,
        metavar="N",
        help="share or number of rows of each source that are not counted, but compared (default: 0.05, at most 1000)",
    )
    slim.add_argument(
        "--parity", action="append", default=[], metavar="SPEC", help="compare on this text instead; may be repeated"
    )
    slim.add_argument("--seed", type=int, help="of the rows held out, and of the sample compared (default: 0)")
    slim.add_argument("--skip-bad-lines", action="store_true", help="leave faulty lines out, with a warning")
    slim.add_argument("--batch-size", type=int, metavar="N", help="texts encoded at a time (default: 64)")
    slim.add_argument("--device", help="cpu, cuda, … (default: a GPU if there is one)")
    slim.add_argument("--overwrite", action="store_true", help="replace an earlier slim model in --out")
    slim.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    slim.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Cut, compare, save, print the table and the signature."""
    from st_xling.cli.figures import write_figures
    from st_xling.cli.keep import command_to_repeat, renew_card
    from st_xling.models.slim import slim_model

    figures = slim_model(
        arguments.model,
        arguments.text,
        arguments.out,
        languages=arguments.langs.split(","),
        parity_texts=arguments.parity,
        keep=_words(arguments.keep),
        progress=True,
        command=command_to_repeat(arguments.command_line),
        complete=lambda folder: renew_card(folder, made_here=True),
        **{name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)},
    )
    print(figures.table())
    write_figures(arguments.json, {"slim": figures.as_dict()})


def _words(given: list[str]) -> list[str]:
    """The words themselves, and those in files."""
    from st_xling.data.faults import FaultLog, read_lines

    words: list[str] = []
    for each in given:
        if not Path(each).is_file():
            words.append(each)
            continue
        faults = FaultLog(can_skip=False, what="words")
        words += [line for line in read_lines(each, faults) if line]
        faults.settle()
    return words
