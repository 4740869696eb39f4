"""``st-xling transfer``: fine-tune an encoder on English, judge it in every language."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep
from st_xling.cli.seeds import add_seeds, run_seeds

EXAMPLE = """\
examples:
  st-xling transfer xnli my-encoder --train en=multinli.jsonl --test en=xnli.test.tsv de=xnli.test.tsv --out nli
  st-xling transfer pawsx my-encoder --train en=en/train.tsv --test de=de/test_2k.tsv fr=fr/test_2k.tsv --out para
  st-xling transfer pos my-encoder --train en=en_ewt-ud-train.conllu --test ar=ar_padt-ud-test.conllu.gz --out tags
  st-xling transfer panx my-encoder --train en=panx/en/train.tsv --test de=panx/de/test.tsv --out entities

Fine-tuning is the papers': XNLI 2 epochs of batch 256 at 5e-5 (DAP); PAWS-X 5 and POS 10 epochs of batch 32 at 2e-5
(AMBER); PAN-X 10 epochs of batch 32 at 2e-5 (XTREME). --like amber fine-tunes on XNLI as AMBER does, 5 epochs of batch
32 at 2e-5; options that are given come before a paper's. Scores are accuracy; of POS also the F1 of runs of tags that
XTREME prints; of PAN-X the F1 of entities, which needs pip install "st-xling[transfer]".

Several files of a language are joined; FILE?size=1000&seed=0 is a sample of its rows.
"""

_OPTIONS = (
    ("epochs", float, "passes over the training rows"),
    ("max-steps", int, "steps, instead of epochs"),
    ("batch-size", int, "rows a step"),
    ("learning-rate", float, "peak"),
    ("schedule", str, "of the learning rate: constant, linear or cosine"),
    ("max-length", int, "tokens of a pair or sentence (default: 128, or what the encoder's positions reach)"),
    ("save-steps", int, "steps between checkpoints (default: ten of them)"),
    ("seed", int, "of the head, dropout and the order of rows (default: 0)"),
)


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    transfer = commands.add_parser(
        "transfer",
        help="fine-tune an encoder on English and judge it in every language: xnli, pawsx, pos, panx",
        description="Fine-tune an encoder for inference (xnli), paraphrases (pawsx), part-of-speech tags (pos) or "
        "entities (panx), and "
        "judge it zero-shot in every language given.",
        epilog=EXAMPLE,
    )
    transfer.add_argument(
        "task", choices=("xnli", "pawsx", "pos", "panx"), metavar="TASK", help="xnli, pawsx, pos or panx"
    )
    transfer.add_argument("encoder", metavar="ENCODER", help="Hub id or folder")
    for flag, what in (("--train", "to fine-tune on"), ("--test", "to be judged by, a column of the table each")):
        transfer.add_argument(flag, required=True, nargs="+", action="extend", metavar="XX=FILE", help=what)
    transfer.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the model and its figures")
    transfer.add_argument(
        "--hold-out",
        type=float,
        metavar="SHARE",
        help="for sets of one split, line by line the same in every language: test on this share of the rows, train on "
        "the others",
    )
    transfer.add_argument("--hold-out-seed", type=int, default=0, metavar="N", help="which rows (default: 0)")
    transfer.add_argument(
        "--like", choices=("dap", "amber"), help="fine-tune as this paper does (default: the one that reports the task)"
    )
    transfer.add_argument(
        "--fused",
        action="store_true",
        help="of treebanks: tag surface tokens (aux) as XTREME does, not words (à, les)",
    )
    for name, kind, what in _OPTIONS:
        transfer.add_argument(f"--{name}", type=kind, metavar="N" if kind is not str else "NAME", help=what)
    transfer.add_argument("--resume", action="store_true", help="go on where the run in --out was stopped")
    transfer.add_argument("--overwrite", action="store_true", help="replace an earlier run in --out")
    transfer.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    add_keep(transfer, model="encoder")
    add_seeds(transfer)
    transfer.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Fine-tune, judge, print the table and the signature."""
    if arguments.seeds:
        if arguments.keep:
            raise ValueError("--keep keeps the figures of one run: got --seeds as well; leave one of them out.")
        return run_seeds(arguments, run)
    from st_xling.training.run_folder import RunFolder
    from st_xling.training.transfer import fine_tuning, load_transfer_data, transfer

    check_keep(arguments)
    RunFolder(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite, start=arguments.encoder).check()
    names = [name.replace("-", "_") for name, _, _ in _OPTIONS]
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    options = dataclasses.replace(fine_tuning(arguments.task, arguments.like), **given)
    data = load_transfer_data(
        arguments.task,
        arguments.train,
        arguments.test,
        hold_out=arguments.hold_out,
        hold_out_seed=arguments.hold_out_seed,
        fused=arguments.fused,
    )
    for side, parts in (("train", data.train), ("test", data.test)):
        sizes = ", ".join(f"{language} {len(rows):,}" for language, rows in parts.items())
        print(f"{side}: {sizes}", file=sys.stderr)
    for language, rows in data.in_training.items():
        if rows:
            print(
                f"{language}: {rows:,} of {len(data.test[language]):,} test rows are trained on, too", file=sys.stderr
            )
    for language, tags in data.unseen.items():
        print(f"{language}: tags never trained, by words: {tags}", file=sys.stderr)
    report = transfer(
        arguments.encoder,
        data,
        arguments.out,
        options=options,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
    )
    print(report.table())
    print(report.signature)
    write_figures(arguments.json, {"transfer": report.as_dict(), "signature": report.signature})
    keep(arguments, f"transfer-{arguments.task}", report.as_dict(), report.signature)
