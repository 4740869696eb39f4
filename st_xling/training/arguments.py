"""``training:`` of a recipe: sentence-transformers' training arguments under their own names, and what ST lacks."""

from __future__ import annotations

import dataclasses
import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.base.training_args import BaseTrainingArguments

from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.models.lora import LoraOptions
from st_xling.training.options import TrainingOptions, unused_options
from st_xling.training.recipe_files import check_keys, option_types, read_options, read_value
from st_xling.training.settings import check_trackers
from st_xling.utils.languages import is_code
from st_xling.utils.precision import warn_of_slow_bfloat16

EVALUATIONS_A_RUN = 10
LOGS_AN_EVALUATION = 5


_ST = {entry.name for entry in dataclasses.fields(SentenceTransformerTrainingArguments)}
OURS = tuple(entry.name for entry in dataclasses.fields(TrainingOptions) if entry.name not in (*_ST, "arguments"))
"""Options that are no training arguments of ST's."""
_OF_THE_RUN = (
    *("output_dir", "do_train", "do_eval", "do_predict", "resume_from_checkpoint", "local_rank", "data_seed"),
    *("metric_for_best_model", "greater_is_better", "warmup_ratio"),
    "save_steps",  # those of eval_steps
    "save_only_model",  # a run could not be resumed
    "neftune_noise_alpha",  # not for the models of sentence-transformers
    # transformers would push the folder of the run, whose files name this machine's paths; st-xling push does it after.
    *("push_to_hub", "hub_model_id", "hub_private_repo", "hub_revision", "hub_strategy", "hub_always_push"),
    *("hub_token", "push_to_hub_token"),
)
"""Arguments that a run decides by itself."""


def read_training(
    section: Any,
    *,
    arguments: type[BaseTrainingArguments] | None = SentenceTransformerTrainingArguments,
    kind: str = "encoder",
) -> TrainingOptions:
    """Read and check a recipe's section ``training``.

    Args:
        section: The mapping in the recipe.
        arguments: ST's class of training arguments, any of which may be set; ``None``: of these only the named ones.
        kind: Kind of recipe; options of others are unknown.

    Raises:
        ValueError: A key that is not known (the nearest is named), a bad type, or out of range.
    """
    without = unused_options(kind)
    own = {name: kinds for name, kinds in option_types(TrainingOptions).items() if name not in ("arguments", *without)}
    st = () if arguments is None else dataclasses.fields(arguments)
    hidden = {*own, *without, *_OF_THE_RUN}
    known = own | {entry.name: entry.type for entry in st if entry.init and entry.name not in hidden}
    section = {} if section is None else section
    if unused := [key for key in without if isinstance(section, dict) and key in section]:
        raise ValueError(f"training has no key {unused[0]!r} for {kind}s; leave it out.")
    check_keys(section, known, "training")
    section = {**section, "pivot": None} if section.get("pivot") == "none" else section
    # YAML reads a plain no as false.
    section = {key: "no" if key.endswith("_strategy") and value is False else value for key, value in section.items()}
    values = {key: read_value(value, known[key], f"training.{key}") for key, value in section.items()}
    if values.get("lora") is not None:
        values["lora"] = LoraOptions(**read_options(LoraOptions, values["lora"], "training.lora"))
    more = {key: values.pop(key) for key in [*values] if key not in own}
    check_trackers(more.get("report_to"))
    options = TrainingOptions(**values, arguments=more)
    # The options check the ranges of their numbers themselves.
    if options.mini_batch_size % 2 == 1:
        raise ValueError(f"training.mini_batch_size must be even: got {options.mini_batch_size}.")
    if options.pivot is not None and not is_code(options.pivot):
        raise ValueError(f"training.pivot must be a language code, or none: got {options.pivot!r}.")
    return options


def training_arguments(
    options: TrainingOptions,
    folder: Path,
    *,
    rows: int | None,
    processes: int = 1,
    best_metric: str | None = None,
    kind: type[BaseTrainingArguments] = SentenceTransformerTrainingArguments,
    **arguments: Any,
) -> BaseTrainingArguments:
    """ST's training arguments of one run.

    Args:
        options: Of the recipe.
        folder: Where checkpoints go.
        rows: Pairs of an epoch; ``None``: a stream without an end.
        processes: Processes that share a step.
        best_metric: Metric of the evaluator to choose the best checkpoint by; ``None``: no evaluation, keep the last.
        kind: ST's class of them.
        **arguments: Others that depend on the data, in place of the options'.

    Raises:
        ValueError: A stream, and no ``max_steps`` to end it; a value that ST refuses.
    """
    chosen, steps = options.arguments, total_steps(options, rows, processes)
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    on_cpu = accelerator is None
    if options.bf16:
        warn_of_slow_bfloat16("cpu" if accelerator is None else accelerator.type)
    logs = options.logging_steps or LOGS_AN_EVALUATION
    eval_steps = min(steps, options.eval_steps or max(1, steps // EVALUATIONS_A_RUN // logs) * logs)
    # Checkpoints fall on logged steps: a resumed run would log a shorter first line otherwise.
    about = max(1, eval_steps // LOGS_AN_EVALUATION)
    logging_steps = options.logging_steps or next(n for n in range(about, 0, -1) if eval_steps % n == 0)
    # The best checkpoint is among those that are evaluated: one strategy that is chosen is both.
    evaluates = chosen.get("eval_strategy") or ("epoch" if chosen.get("save_strategy") == "epoch" else "steps")
    evaluates = "no" if best_metric is None else evaluates
    saves = chosen.get("save_strategy") or (evaluates if evaluates != "no" else "steps")
    values = {key: value for key, value in vars(options).items() if key not in (*OURS, "arguments")} | {
        "output_dir": str(folder),
        "logging_steps": logging_steps,
        "eval_steps": eval_steps,
        "save_steps": eval_steps,
        "load_best_model_at_end": "no" not in (evaluates, saves),
        "restore_callback_states_from_checkpoint": options.early_stopping_patience > 0,
        # A CPU has bfloat16 too, but transformers takes it only with use_cpu.
        "use_cpu": options.bf16 and on_cpu,
        "data_seed": options.seed,
        "dataloader_drop_last": rows is None or rows >= options.per_device_train_batch_size * processes,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "report_to": "none",
        "disable_tqdm": True,
    }
    values |= {**chosen, **arguments, "eval_strategy": evaluates, "save_strategy": saves}
    if best_metric is not None:
        values |= {"metric_for_best_model": best_metric, "greater_is_better": True}
    if rows is None:
        # Rows come in the order of their batches. Were batches dealt out by the first process, it would have to pad
        # them all to one length; instead every process reads the stream and takes its part.
        values["accelerator_config"] = {**(chosen.get("accelerator_config") or {}), "dispatch_batches": False}
    else:
        sampler = LengthGroupedBatchSampler if options.group_by_length else ShuffledBatchSampler
        values.setdefault("batch_sampler", partial(sampler, **sampler_options(options)))
    if chosen.get("dataloader_num_workers"):  # forked, where threads of the tokenizers would not survive
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        return kind(**values)
    except (TypeError, ValueError, ImportError) as error:
        raise ValueError(f"training: sentence-transformers refuses these arguments: {error}") from error


def sampler_options(options: TrainingOptions) -> dict[str, Any]:
    """Options that our samplers and ``mix_streams`` share."""
    return {
        "alpha": options.language_alpha,
        "one_pair": options.batches == "one_pair",
        "keep_duplicates_apart": options.keep_duplicates_apart,
    }


def total_steps(options: TrainingOptions | BaseTrainingArguments, rows: int | None, processes: int = 1) -> int:
    """Optimizer steps of the whole run.

    Args:
        options: Of the recipe, or ST's arguments.
        rows: Pairs of an epoch; ``None``: a stream without an end.
        processes: Processes that share a step.
    """
    if options.max_steps > 0:
        return options.max_steps
    if rows is None:
        raise ValueError("a stream has no end that is known: got no max_steps; set training.max_steps / --max-steps.")
    batches = max(1, rows // (options.per_device_train_batch_size * processes))
    return max(1, math.ceil(options.num_train_epochs * math.ceil(batches / options.gradient_accumulation_steps)))
