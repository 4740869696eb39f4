"""``st-xling transfer``: fine-tune an encoder on English, evaluate it in every language."""

from __future__ import annotations

import dataclasses
import logging
import sys
from pathlib import Path
from typing import Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.keep import check_keep, keep_results
from st_xling.cli.model_options import model_options
from st_xling.cli.options import argument, given, option, print_results

logger = logging.getLogger(__name__)


@app.command("transfer", cls=Command)
def transfer(
    context: typer.Context,
    task: Literal["xnli", "pawsx", "pos"] = argument(
        None, "Inference, paraphrases, or part-of-speech tags.", default=...
    ),
    model: str = argument("MODEL", "Encoder: Hub id or folder.", default=...),
    train: list[str] = option("--train", metavar="XX=FILE...", default=..., help="Files to fine-tune on (repeatable)."),
    test: list[str] = option(
        "--test",
        metavar="XX=FILE...",
        default=...,
        help="Files to evaluate on, a column of the table each (repeatable).",
    ),
    out: Path = option("--out", metavar="DIR", default=..., help="Folder for the model and its results."),
    hold_out: float | None = option(
        "--hold-out",
        help="For sets of one split, line-aligned in all languages: test on this share of the rows, train on the "
        "others.",
    ),
    like: Literal["dap", "amber"] | None = option(
        "--like", help="Fine-tune as this paper does (default: the one that reports the task)."
    ),
    fused: bool = option(
        "--fused", default=False, help="Of treebanks: tag surface tokens (aux) as XTREME does, not words (à, les)."
    ),
    layer: int | None = option("--layer", help="Fine-tune the encoder up to this layer, from 1."),
    resume: bool = option("--resume", default=False, help="Resume an interrupted run in --out."),
    overwrite: bool = opts.OVERWRITE,
    epochs: float | None = option("--epochs", help="Passes over the training rows."),
    max_steps: int | None = option("--max-steps", help="Steps, instead of epochs."),
    batch_size: int | None = option("--batch-size", help="Rows per step."),
    learning_rate: float | None = option("--learning-rate", help="Peak learning rate."),
    schedule: Literal["constant", "linear", "cosine"] | None = option(
        "--schedule", help="How the learning rate falls."
    ),
    warmup: float | None = option("--warmup", help="Share of the steps in which the learning rate rises (default: 0)."),
    max_length: int | None = option(
        "--max-length", help="Tokens of a pair or sentence (default: 128, if the encoder has them)."
    ),
    save_steps: int | None = option("--save-steps", help="Steps between checkpoints (default: ten of them)."),
    seed: int | None = option("--seed", help="Seed of the head, dropout and the order of rows (default: 0)."),
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Fine-tune an encoder on English and evaluate it in every language: xnli, pawsx, pos.

    \b
    examples:
      st-xling transfer xnli my-encoder --train en=multinli.jsonl --test en=xnli.test.tsv de=xnli.test.tsv --out nli
      st-xling transfer pawsx my-encoder --train en=en/train.tsv --test de=de/test_2k.tsv fr=fr/test_2k.tsv --out para
      st-xling transfer pos my-encoder --train en=en_ewt-ud-train.conllu --test ar=ar_padt-ud-test.conllu.gz --out tags

    Fine-tuning follows the papers: XNLI 2 epochs of batch 256 at 5e-5 (DAP); PAWS-X 5 and POS 10 epochs of batch 32 at
    2e-5 (AMBER). --like amber fine-tunes on XNLI as AMBER does, 5 epochs of batch 32 at 2e-5. Options override a
    paper's. Scores are accuracy; of POS also the F1 of runs of tags that XTREME prints.

    Several files of a language are joined; FILE?size=1000&seed=0 is a sample of its rows.
    """
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.models import load_encoder
    from st_xling.models.load import cast_to_saved_dtype
    from st_xling.training.run_folder import RunFolder
    from st_xling.training.transfer import fine_tuning, load_transfer_data
    from st_xling.training.transfer import transfer as fine_tune

    check_keep(context)
    RunFolder(out, resume=resume, overwrite=overwrite, start=model, inputs=[train, test]).check()
    loading = model_options(context, ("revision", "trust_remote_code", "layer"))
    encoder = cast_to_saved_dtype(load_encoder(model, device="cpu", **loading))
    options = dataclasses.replace(
        fine_tuning(task, like),
        **given(epochs=epochs, max_steps=max_steps, batch_size=batch_size, learning_rate=learning_rate),
        **given(schedule=schedule, warmup=warmup, max_length=max_length, save_steps=save_steps, seed=seed),
    )
    data = load_transfer_data(task, train, test, hold_out=hold_out, fused=fused)
    for side, parts in (("train", data.train), ("test", data.test)):
        sizes = ", ".join(f"{language} {len(rows):,}" for language, rows in parts.items())
        print(f"{side}: {sizes}", file=sys.stderr)
    for language, rows in data.in_training.items():
        if rows:
            logger.warning("%s: %s of %s test rows are in the training data", language, rows, len(data.test[language]))
    for language, tags in data.untrained.items():
        logger.warning("%s: tags that were never trained, by words: %s", language, tags)
    report = fine_tune(
        encoder, data, out, options=options, resume=resume, overwrite=overwrite, command=context.obj.line
    )
    print_results(context, "transfer", report.as_dict(), report.signature, report.table())
    keep_results(context, f"transfer-{task}", EvaluationResult(report.as_dict(), *report.rows(), report.signature))
