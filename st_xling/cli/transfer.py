"""``st-xling transfer``: fine-tune an encoder on English, evaluate it in every language."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from pathlib import Path

from st_xling.cli.keep import check_keep, keep
from st_xling.cli.model_options import START
from st_xling.cli.options import JSON, KEEP, command, print_results, set_options

logger = logging.getLogger(__name__)


@command(
    "transfer",
    JSON,
    KEEP,
    START,
    task={"choices": ("xnli", "pawsx", "pos", "panx")},
    out={"type": Path},
    hold_out_seed={"default": 0},
)
def transfer(arguments: argparse.Namespace) -> None:
    """Fine-tune an encoder on English and evaluate it in every language: xnli, pawsx, pos, panx.

    Fine-tune an encoder for inference (xnli), paraphrases (pawsx), part-of-speech tags (pos) or entities (panx), and
    evaluate it zero-shot in every language given.

    TASK                xnli, pawsx, pos or panx
    MODEL               encoder: Hub id or folder
    --train XX=FILE...  files to fine-tune on (required, repeatable)
    --test XX=FILE...   files to evaluate by, a column of the table each (required, repeatable)
    --out DIR           folder for the model and its results (required)
    --hold-out SHARE    for sets of one split, line by line the same in every language: test on this share of the rows,
                        train on the others
    --hold-out-seed N   seed by which these rows are drawn (default: 0)
    --like {dap,amber}  fine-tune as this paper does (default: the one that reports the task)
    --fused             of treebanks: tag surface tokens (aux) as XTREME does, not words (à, les)
    --layer N           fine-tune the encoder up to this layer, counted from 1
    --resume            go on where the run in --out was stopped
    --overwrite         replace an earlier run in --out
    --epochs X          passes over the training rows
    --max-steps N       steps, instead of epochs
    --batch-size N      rows a step
    --learning-rate X   highest learning rate
    --schedule {constant,linear,cosine}  how the learning rate falls
    --warmup SHARE      share of the steps in which the learning rate rises (default: 0)
    --max-length N      tokens of a pair or sentence (default: 128, or what the encoder's positions reach)
    --save-steps N      steps between checkpoints (default: ten of them)
    --seed N            seed of the head, dropout and the order of rows (default: 0)

    examples:
      st-xling transfer xnli my-encoder --train en=multinli.jsonl --test en=xnli.test.tsv de=xnli.test.tsv --out nli
      st-xling transfer pawsx my-encoder --train en=en/train.tsv --test de=de/test_2k.tsv fr=fr/test_2k.tsv --out para
      st-xling transfer pos my-encoder --train en=en_ewt-ud-train.conllu --test ar=ar_padt-ud-test.conllu.gz --out tags
      st-xling transfer panx my-encoder --train en=panx/en/train.tsv --test de=panx/de/test.tsv --out entities

    Fine-tuning is the papers': XNLI 2 epochs of batch 256 at 5e-5 (DAP); PAWS-X 5 and POS 10 epochs of batch 32 at
    2e-5 (AMBER); PAN-X 10 epochs of batch 32 at 2e-5 (XTREME). --like amber fine-tunes on XNLI as AMBER does, 5
    epochs of batch 32 at 2e-5; options that are given come before a paper's. Scores are accuracy; of POS also the F1
    of runs of tags that XTREME prints; of PAN-X the F1 of entities, which needs pip install "st-xling[transfer]".

    Several files of a language are joined; FILE?size=1000&seed=0 is a sample of its rows.
    """
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.models import load_encoder
    from st_xling.models.load import cast_to_saved_dtype
    from st_xling.training.run_folder import RunFolder
    from st_xling.training.transfer import fine_tuning, load_transfer_data
    from st_xling.training.transfer import transfer as fine_tune

    check_keep(arguments)
    RunFolder(
        arguments.out,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        start=arguments.model,
        inputs=[arguments.train, arguments.test],
    ).check()
    encoder = cast_to_saved_dtype(load_encoder(arguments.model, device="cpu", **set_options(arguments, load_encoder)))
    options = fine_tuning(arguments.task, arguments.like)
    options = dataclasses.replace(options, **set_options(arguments, type(options)))
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
            logger.warning("%s: %s of %s test rows are trained on, too", language, rows, len(data.test[language]))
    for language, tags in data.unseen.items():
        logger.warning("%s: tags never trained, by words: %s", language, tags)
    report = fine_tune(
        encoder,
        data,
        arguments.out,
        options=options,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
    )
    print_results(arguments, "transfer", report.as_dict(), report.signature, report.table())
    result = EvaluationResult(report.as_dict(), *report.rows(), report.signature)
    keep(arguments, f"transfer-{arguments.task}", result)
