"""The one command, ``st-xling``: exit statuses and errors; each module has a group of sub-commands."""

from __future__ import annotations

import argparse
import os
import select
import shlex
import signal
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

Every command names text by [NAME=]LOCATION[?OPTION=VALUE&...], NAME one language or two: de-en=pairs.tsv,
zh_Hant-en=SOURCE,TARGET, pt_BR=texts.txt?size=8000&seed=0 (a sample), phrasebook:de,fr?size=500. Quote what has ? or &.

Each command has examples of its own, with files and with models of the Hub: st-xling COMMAND --help
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 0; 2 for input that cannot be used; 130 after Ctrl-C; 141, as the shell says of programs that
        SIGPIPE ended, when nobody reads stdout any more.
    """
    try:
        try:
            return _main(list(sys.argv[1:] if argv is None else argv))
        finally:  # what a help or a short table left in the buffer
            _flush()
    except BrokenPipeError:
        if not _stdout_is_closed():
            raise
        _close_stdout()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt as stop:  # while modules are imported, or the process ends
        return _interrupted(stop, "")


def _main(words: list[str]) -> int:
    parser = build_parser()
    if not words:
        parser.print_help(sys.stderr)
        parser.error("expected a command, got none")
    arguments = parser.parse_args(words)
    lasting = [word for word in words if word not in ("-q", "--quiet", "-v", "--verbose", "--debug")]
    arguments.command_line = shlex.join(["st-xling", *lasting])
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    if arguments.quiet or not sys.stderr.isatty():  # bars of others, by what they read when they are imported
        for name in ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
            os.environ.setdefault(name, "1")
    os.environ.setdefault("TQDM_LEAVE", "")  # nor do they stay on a terminal when they are full
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return _status(arguments)
    from st_xling.utils.distributed import end_process

    return end_process(_status(arguments))


def _status(arguments: argparse.Namespace) -> int:
    from st_xling.cli.parser import check_arguments
    from st_xling.utils.console import console

    try:
        with console(quiet=arguments.quiet or not _speaks(), verbose=arguments.verbose):
            check_arguments(arguments)
            arguments.run(arguments)
    except Exception as error:
        message = explain(error)
        if arguments.debug or message is None or (isinstance(error, BrokenPipeError) and _stdout_is_closed()):
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


def _flush() -> None:
    try:
        print(end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk
        _close_stdout()
        print(f"st-xling: error: stdout cannot be written to: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _close_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more


def _stdout_is_closed() -> bool:
    """Whether stdout's reader has ended, as ``head`` does; when another pipe breaks, a worker's, that is an error."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (AttributeError, OSError):  # no file
        return False


def _speaks() -> bool:
    """Whether this is the only or the main process of a launcher's."""
    return os.environ.get("RANK", "0") == "0"


def build_parser() -> Parser:
    """The parser of every sub-command."""
    # Here, and not above, so that Ctrl-C while they are imported is answered as at any other time.
    from st_xling.cli import (
        align,
        compare,
        evaluate,
        mine,
        publish,
        reproduce,
        rerank,
        tools,
        train,
        transfer,
    )
    from st_xling.cli.parser import EVERYWHERE, Parser

    parser = Parser(
        prog="st-xling",
        description="Cross-lingual sentence embeddings: train encoders, evaluate them, mine and rank with them, "
        "publish them.",
        epilog=PIPELINE,
    )
    parser.add_argument("--version", action="version", version=f"st-xling {__version__}")
    parser.set_defaults(**dict.fromkeys(EVERYWHERE, False))
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (
        tools.demo,
        train.train,
        evaluate,
        compare.compare,
        transfer.transfer,
        publish.card,
        tools.leak,
    ):
        command.add_parser(commands)
    commands_of_use = (
        mine.encode,
        mine.mine,
        mine.score,
        align.align,
        rerank.rerank,
        rerank.search,
        tools.slim,
        tools.postprocess,
    )
    for command in (*commands_of_use, publish.push, reproduce.reproduce):
        command.add_parser(commands)
    return parser


def _after_interrupt(stop: KeyboardInterrupt, command: str) -> str:
    folder, checkpoint = getattr(stop, "folder", None), getattr(stop, "checkpoint", None)
    if folder is None:
        return "interrupted."
    words = [word for word in shlex.split(command) if word not in ("--resume", "--overwrite")]
    if checkpoint is None:
        return f"interrupted before the first checkpoint; start again with:\n  {shlex.join([*words, '--overwrite'])}"
    return f"interrupted; {checkpoint} stands. To go on:\n  {shlex.join([*words, '--resume'])}"


if __name__ == "__main__":
    sys.exit(main())
