"""``st-xling mine``: two text files to scored pairs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.keep import check_folder, publish, renew_card
from st_xling.cli.mining_options import (
    add_command,
    add_embedding_options,
    add_guard_options,
    add_json_option,
    add_search_options,
    add_work_options,
    given,
    guard_options,
    output,
    tell,
)

EXAMPLE = """\
examples:
  st-xling mine news.de news.en --model my-encoder --out pairs.tsv --threshold 1.06 --rejects rejects.jsonl
  st-xling mine news.de.gz news.en.gz --source-embeddings de.store --target-embeddings en.store --out - | head
  st-xling mine news.de news.en --model my-encoder --source-language de --target-language en --out pairs.tsv
  st-xling mine news.de news.en --model my-encoder --out pairs.jsonl --format jsonl --calibrate gold.tsv
  st-xling mine news.de news.en --model my-encoder --out pairs.tsv --rescore my-reranker --rescore-threshold 0.5
  st-xling mine news.de news.en --model my-encoder --out pairs.tsv --plan

A line of TSV: score, source ids, target ids, source, target; with --rescore the cross-encoder's score is the first and
the margin the last. Without ids of its own, a line's id is its number; equal
lines are mined once, and their ids joined by commas. Tabs, line ends and backslashes in a sentence are written as \\t,
\\n, \\r and \\\\. Killed or interrupted, the same command goes on from OUT.work, and ends with the same bytes.
"""

_SHARED = (
    *("model", "source_embeddings", "target_embeddings", "dim", "laser_dtype", "batch_size", "dtype", "prompt"),
    *("text_format", "errors", "k", "method", "engine", "device", "memory_mib", "calibrate_with"),
)
_OPTIONS = (
    *_SHARED,
    *(
        "margin",
        "retrieval",
        "threshold",
        "target_precision",
        "rescore",
        "rescore_threshold",
        "rejects",
        "format",
        "save_seconds",
    ),
    *("work", "keep_work"),
)


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    mine = add_command(
        commands,
        "mine",
        help="find translations between two text files",
        description="Embed two texts, find the pairs that are likely translations, and write them, best first.",
        examples=EXAMPLE,
    )
    mine.add_argument("source", metavar="SOURCE", help="UTF-8 text, a sentence a line, also .gz and .xz")
    mine.add_argument("target", metavar="TARGET", help="the other language")
    mine.add_argument("--out", required=True, metavar="FILE", help="file of the pairs, or - for stdout")
    mine.add_argument("--format", choices=("tsv", "jsonl"), help="of the pairs (default: tsv)")
    mine.add_argument(
        "--text-format",
        choices=("lines", "bucc", "jsonl"),
        help="lines (default), bucc: id TAB sentence, jsonl: id and text",
    )
    mine.add_argument("--errors", choices=("strict", "replace"), help="bytes that are not UTF-8 (default: strict)")
    add_embedding_options(mine)
    add_search_options(
        mine,
        threshold=_threshold,
        more="; auto (default): the model's own for these two languages, if its mining.json has one that fits; "
        "published: that one or an error; none: keep all",
    )
    choice = mine.add_argument_group("choice of pairs")
    choice.add_argument("--retrieval", help="max (default), intersect, forward or backward")
    choice.add_argument(
        "--calibrate",
        dest="calibrate_with",
        metavar="PARALLEL",
        help="known translations from elsewhere (TSV, JSONL, …), planted to estimate the threshold",
    )
    choice.add_argument(
        "--target-precision", type=float, metavar="P", help="with --calibrate: in (0, 1] (default: the best F1)"
    )
    choice.add_argument(
        "--keep-threshold",
        action="store_true",
        default=False,
        help="with --calibrate: also put the threshold into the model's mining.json; MODEL must be a folder",
    )
    choice.add_argument("--rescore", metavar="MODEL", help="cross-encoder that scores the mined pairs again")
    choice.add_argument(
        "--rescore-threshold", type=float, metavar="X", help="keep pairs that it scores at least this (default: all)"
    )
    guards = add_guard_options(mine)
    guards.add_argument("--no-guards", action="store_true", default=False, help="switch all off")
    add_work_options(mine)
    mine.add_argument(
        "--plan", action="store_true", default=False, help="say what time, memory and disk it will take, and stop"
    )
    add_json_option(mine)
    mine.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Mine, say what was found, print the signature: on stderr where stdout holds the pairs."""
    from st_xling.mining import mine_texts
    from st_xling.mining.published import pair_of

    if arguments.plan:
        return _plan(arguments)
    guards = guard_options(arguments, all_off=arguments.no_guards)
    if arguments.keep_threshold:
        _check_keep_threshold(arguments)
    options = {"threshold": "auto", **given(arguments, _OPTIONS)}
    with output(arguments) as out:
        report = mine_texts(arguments.source, arguments.target, out, guards=guards, progress=True, **options)
    tell(arguments, "mine", report, report.pairs)
    if arguments.keep_threshold:
        assert report.calibration is not None
        pair = pair_of(arguments.source_language, arguments.target_language)
        publish(Path(arguments.model), {pair: report.calibration.as_published(report.signature)})
        renew_card(Path(arguments.model))


def _threshold(word: str) -> float | str | None:
    if word in ("auto", "published"):
        return word
    try:
        return None if word == "none" else float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, auto, published or none, got {word!r}") from None


def _check_keep_threshold(arguments: argparse.Namespace) -> None:
    """Raise where the threshold could not be published, before anything is mined."""
    from st_xling.mining.published import languages_of, pair_of, published_thresholds

    needed = ("calibrate_with", "model", "source_language", "target_language")
    if missing := [name for name in needed if not hasattr(arguments, name)]:
        flags = ", ".join(f"--{name.removesuffix('_with').replace('_', '-')}" for name in missing)
        raise ValueError(f"--keep-threshold publishes the model's threshold for two languages: give {flags} as well.")
    languages_of(pair_of(arguments.source_language, arguments.target_language))
    check_folder(Path(arguments.model), "--keep-threshold")
    published_thresholds(arguments.model)


def _plan(arguments: argparse.Namespace) -> None:
    from st_xling.cli.figures import write_figures
    from st_xling.mining import plan_mining

    options = {"guards": guard_options(arguments, all_off=arguments.no_guards), **given(arguments, _SHARED)}
    place = getattr(arguments, "work", "." if arguments.out == "-" else arguments.out)
    plan = plan_mining(arguments.source, arguments.target, work=place, **options)
    print("\n".join(plan.lines()))
    write_figures(arguments.json, {"plan": plan.as_dict()})
