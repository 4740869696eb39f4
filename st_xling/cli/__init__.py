"""The one command, ``st-xling``: exit statuses and errors; each module has a group of sub-commands."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from st_xling._version import __version__
from st_xling.utils.failures import explain

if TYPE_CHECKING:
    from st_xling.cli.parser import Parser

PIPELINE = """\
everything once, in a few minutes:
  st-xling demo

the same, step by step; news.* (a sentence a line), q.jsonl and p.jsonl are yours, the phrasebook is built in:
  st-xling train dap --model tiny --data phrasebook:de,fr --out my-encoder
  st-xling evaluate tatoeba my-encoder --data phrasebook:de,fr --keep
  st-xling evaluate bucc my-encoder --data phrasebook --pairs de-en --keep
  st-xling mine news.de news.en --model my-encoder --source-language de --target-language en --out mined.tsv
  st-xling train xpr-mixed --model tiny --data 'en=phrasebook?size=300' --data 'de=phrasebook?size=300' \\
      --out my-reranker
  st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl --out ranked.jsonl
  st-xling card my-encoder --license apache-2.0
  st-xling push my-encoder user/my-encoder --dry-run

Each command has examples of its own, with files and with models of the Hub: st-xling COMMAND --help
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 0; 2 for input that cannot be used; 130 after Ctrl-C.
    """
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as stop:  # while modules are imported, or the process ends
        return _interrupted(stop, "")


def _main(words: list[str]) -> int:
    parser = build_parser()
    if not words:
        parser.print_help(sys.stderr)
        parser.error("expected a command, got none")
    arguments = parser.parse_args(words)
    arguments.command_line = shlex.join(["st-xling", *words])
    level = logging.WARNING if _speaks() else logging.ERROR
    logging.basicConfig(format="%(levelname)s: %(message)s", level=level, stream=sys.stderr)
    # Bars and notices of other libraries stay off our output; their errors still come through.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return _status(arguments)
    from st_xling.utils.distributed import end_process

    return end_process(_status(arguments))


def _status(arguments: argparse.Namespace) -> int:
    from st_xling.cli.parser import check_arguments

    try:
        check_arguments(arguments)
        # Where no model is loaded, as between ready embeddings, transformers need not be imported.
        if any(getattr(arguments, name, name == "model") for name in ("model", "rescore", "prefilter_model")):
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()  # of every checkpoint's weights; downloads keep theirs
        arguments.run(arguments)
    except Exception as error:
        message = explain(error)
        if arguments.debug or message is None:
            raise
        if _speaks() or type(error).__name__ != "AnotherProcessFailed":
            print(f"st-xling: error: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        return _interrupted(stop, arguments.command_line)
    return 0


def _interrupted(stop: KeyboardInterrupt, command: str) -> int:
    if _speaks():
        print(f"\n{_after_interrupt(stop, command)}", file=sys.stderr)
    return 130


def _speaks() -> bool:
    """Whether this is the only or the main process of a launcher's."""
    return os.environ.get("RANK", "0") == "0"


def build_parser() -> Parser:
    """The parser of every sub-command."""
    # Here, and not above, so that Ctrl-C while they are imported is answered as at any other time.
    from st_xling.cli import align, evaluate, mine, publish, reproduce, rerank, tools, train, transfer
    from st_xling.cli.parser import Parser

    parser = Parser(
        prog="st-xling",
        description="Cross-lingual sentence embeddings: train encoders, evaluate them, mine and rank with them, "
        "publish them.",
        epilog=PIPELINE,
    )
    parser.add_argument("--version", action="version", version=f"st-xling {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (tools.demo, train.train, evaluate, transfer.transfer, publish.card, tools.leak):
        command.add_parser(commands)
    commands_of_use = (
        mine.encode,
        mine.mine,
        mine.score,
        align.align,
        rerank.rerank,
        rerank.search,
        tools.slim,
        publish.push,
    )
    for command in (*commands_of_use, reproduce.reproduce, tools.benchmark):
        command.add_parser(commands)
    return parser


def _after_interrupt(stop: KeyboardInterrupt, command: str) -> str:
    folder, checkpoint = getattr(stop, "folder", None), getattr(stop, "checkpoint", None)
    if folder is None:
        return "interrupted."
    words = [word for word in shlex.split(command) if word not in ("--resume", "--overwrite")]
    if checkpoint is None and not any(word.partition("=")[0] == "--seeds" for word in words):
        return f"interrupted before the first checkpoint; start again with:\n  {shlex.join([*words, '--overwrite'])}"
    stands = "what is finished" if checkpoint is None else checkpoint
    return f"interrupted; {stands} stands. To go on:\n  {shlex.join([*words, '--resume'])}"


if __name__ == "__main__":
    sys.exit(main())
