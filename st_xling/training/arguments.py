"""Our training options → the host's training arguments."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.base.training_args import BaseTrainingArguments

from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.training.recipe import TrainingOptions

Arguments = TypeVar("Arguments", bound=BaseTrainingArguments)

EVALUATIONS_A_RUN = 10
LOGS_AN_EVALUATION = 5


def training_arguments(
    options: TrainingOptions, folder: Path, *, rows: int | None, processes: int = 1, best_metric: str | None = None
) -> SentenceTransformerTrainingArguments:
    """The host's arguments for one run of an encoder: :func:`host_arguments`."""
    return host_arguments(
        SentenceTransformerTrainingArguments, options, folder, rows=rows, processes=processes, best_metric=best_metric
    )


def host_arguments(
    kind: type[Arguments],
    options: TrainingOptions,
    folder: Path,
    *,
    rows: int | None,
    processes: int = 1,
    best_metric: str | None = None,
) -> Arguments:
    """The host's arguments for one run.

    Args:
        kind: The host's class of them.
        options: Ours.
        folder: Where checkpoints go.
        rows: Pairs of an epoch; ``None``: a stream without an end.
        processes: Processes that share a step.
        best_metric: Metric of the evaluator to choose the best checkpoint by; ``None``: no evaluation, keep the last.

    Raises:
        ValueError: A stream, and no ``max_steps`` to end it.
    """
    steps = total_steps(options, rows, processes)
    logs = options.log_steps or LOGS_AN_EVALUATION  # a multiple of it: every checkpoint falls on a logged step
    eval_steps = options.eval_steps or max(1, steps // EVALUATIONS_A_RUN // logs) * logs
    eval_steps = min(eval_steps, steps)
    log_steps = options.log_steps or _divisor(eval_steps, max(1, eval_steps // LOGS_AN_EVALUATION))
    chosen: dict[str, Any] = (
        {} if best_metric is None else {"metric_for_best_model": best_metric, "greater_is_better": True}
    )
    return kind(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.gradient_accumulation,
        num_train_epochs=options.epochs,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        warmup_steps=options.warmup,
        lr_scheduler_type=options.schedule,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=options.precision == "bf16",
        # A CPU has bfloat16 too, but the host wants to be told that one is meant.
        use_cpu=options.precision == "bf16" and not torch.accelerator.is_available(),
        fp16=options.precision == "fp16",
        logging_steps=log_steps,
        eval_strategy="no" if best_metric is None else "steps",
        eval_steps=eval_steps,
        save_strategy="steps",
        save_steps=eval_steps,
        save_total_limit=options.keep_checkpoints + 1,
        load_best_model_at_end=best_metric is not None,
        seed=options.seed,
        data_seed=options.seed,
        dataloader_drop_last=rows is None or rows >= options.batch_size * processes,
        **_batching(options, stream=rows is None),
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
        **chosen,
    )


def sampler_options(options: TrainingOptions) -> dict[str, Any]:
    """What our samplers and ``mix_streams`` are told alike."""
    return {
        "alpha": options.language_alpha,
        "temperature": options.language_temperature,
        "one_pair": options.batches == "one_pair",
        "keep_duplicates_apart": options.keep_duplicates_apart,
    }


def total_steps(options: TrainingOptions, rows: int | None, processes: int = 1) -> int:
    """Optimiser steps of the whole run."""
    if options.max_steps > 0:
        return options.max_steps
    if rows is None:
        raise ValueError("a stream has no end that is known: got no max_steps; set training.max_steps / --max-steps.")
    batches = max(1, rows // (options.batch_size * processes))
    return max(1, math.ceil(options.epochs * math.ceil(batches / options.gradient_accumulation)))


def _batching(options: TrainingOptions, *, stream: bool) -> dict[str, Any]:
    if stream:
        # Rows come in the order of their batches. Were batches dealt out by the first process, it would have to pad
        # them all to one length; instead every process reads the stream and takes its part.
        return {"accelerator_config": {"dispatch_batches": False}}
    kind = LengthGroupedBatchSampler if options.group_by_length else ShuffledBatchSampler
    return {"batch_sampler": partial(kind, **sampler_options(options))}


def _divisor(number: int, at_most: int) -> int:
    return next(candidate for candidate in range(at_most, 0, -1) if number % candidate == 0)
