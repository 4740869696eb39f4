"""Training arguments: sentence-transformers' own, with our defaults and the fields that it lacks."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar, get_type_hints

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.base.training_args import BaseTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from transformers import HfArgumentParser
from transformers.trainer_pt_utils import AcceleratorConfig
from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from st_xling.training.options import (
    EVALUATION_SHARE,
    LOG_SHARE,
    EncoderArguments,
    OptimizationArguments,
    SharedArguments,
    check_numbers,
)
from st_xling.training.recipe_files import check_keys, read_options, read_value
from st_xling.training.settings import check_trackers
from st_xling.utils.lora_options import LoraOptions
from st_xling.utils.precision import warn_of_slow_bfloat16

LOGS_AN_EVALUATION = round(EVALUATION_SHARE / LOG_SHARE)

_OF_THE_RUN = (
    *("output_dir", "do_train", "do_eval", "do_predict", "resume_from_checkpoint", "local_rank", "data_seed"),
    *("metric_for_best_model", "greater_is_better", "load_best_model_at_end", "warmup_ratio"),
    "save_steps",  # those of eval_steps
    "max_length",  # model.max_length
    "save_only_model",  # a run could not be resumed
    "neftune_noise_alpha",  # not for the models of sentence-transformers
    # transformers would push the folder of the run, whose files name this machine's paths; st-xling push does it after.
    *("push_to_hub", "hub_model_id", "hub_private_repo", "hub_revision", "hub_strategy", "hub_always_push"),
    *("hub_token", "push_to_hub_token"),
)
"""Arguments that a run by a recipe decides by itself."""

_OF_THE_MACHINE = ("use_cpu", "disable_tqdm", "dataloader_pin_memory")
"""Arguments that change no result."""

_RECORDED = (
    *(entry.name for entry in fields(OptimizationArguments)),
    *("max_grad_norm", "gradient_accumulation_steps", "bf16", "fp16", "eval_steps", "logging_steps"),
    "save_total_limit",
)
"""Arguments of sentence-transformers that the record of a run has even if they are the defaults."""


@dataclass
class TrainerArguments(SharedArguments, BaseTrainingArguments):  # type: ignore[misc]  # ST's fields, other defaults
    """Base of our training arguments for encoders and cross-encoders."""

    def __post_init__(self) -> None:
        self._check_types()
        check_numbers({entry.name: getattr(self, entry.name) for entry in fields(self)})
        self.eval_steps = self.eval_steps or EVALUATION_SHARE
        self.logging_steps = self.logging_steps or LOG_SHARE
        if self.save_steps == EVALUATION_SHARE:
            self.save_steps = self.eval_steps
        elif self.eval_steps == EVALUATION_SHARE:
            self.eval_steps = self.save_steps
        if self.report_to is None:  # which transformers announces and refuses
            self.report_to = "none"
        self._match_strategies()
        # A CPU has bfloat16 too, but transformers takes it only with use_cpu.
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        if self.bf16:
            device = "cpu" if accelerator is None else accelerator.type
            warn_of_slow_bfloat16(device)
            self.use_cpu = self.use_cpu or accelerator is None
        if self.data_seed is None:
            self.data_seed = self.seed
        if self.dataloader_num_workers:  # forked, where threads of the tokenizers would not survive
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
        super().__post_init__()

    def _check_types(self) -> None:
        """Raise ``ValueError`` for a value of a field of ours that its annotation excludes."""
        kind = EncoderArguments if isinstance(self, EncoderArguments) else SharedArguments
        hints = get_type_hints(kind)
        st_names = {entry.name for entry in fields(BaseTrainingArguments)}
        our_names = [entry.name for entry in fields(kind) if entry.name not in st_names]
        for name in our_names:
            if name == "lora" and isinstance(self.lora, Mapping):  # as transformers' parser reads a file, and to_dict
                self.lora = LoraOptions(**read_options(LoraOptions, dict(self.lora), "lora"))
            setattr(self, name, read_value(getattr(self, name), hints[name], name))

    def _match_strategies(self) -> None:
        """Evaluate where checkpoints are saved: the best is among those that are both."""
        evaluates = IntervalStrategy(self.eval_strategy)
        saves = SaveStrategy(self.save_strategy)
        if "no" in (evaluates.value, saves.value):
            self.load_best_model_at_end = False
        elif saves == SaveStrategy.EPOCH:
            self.eval_strategy = IntervalStrategy.EPOCH
        elif evaluates == IntervalStrategy.EPOCH and saves == SaveStrategy.STEPS:
            self.save_strategy = SaveStrategy.EPOCH

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as transformers records them."""
        values = super().to_dict()
        if isinstance(self.lora, LoraOptions):
            values["lora"] = asdict(self.lora)
        return values

    def changed(self) -> dict[str, Any]:
        """Return the arguments that differ from the defaults, as plain values, without those of a machine or run."""
        values = self.to_dict()
        # Other arguments would reset accelerate's state, and break a trainer that has been built: these share it.
        shared = type(self)(self.output_dir, accelerator_config={"use_configured_state": True})
        defaults = shared.to_dict()
        defaults["accelerator_config"] = AcceleratorConfig().to_dict()
        del defaults["accelerator_config"]["use_configured_state"]  # which to_dict() of arguments leaves out
        excluded = (*_OF_THE_RUN, *_OF_THE_MACHINE)
        changed: dict[str, Any] = {}
        for name, value in values.items():
            if value != defaults.get(name) and name not in excluded:
                changed[name] = value
        return changed

    def recorded(self) -> dict[str, Any]:
        """Return the arguments that identify a run, as plain values: the usual ones, ours, and all that are changed."""
        values = self.to_dict()
        st_names = {entry.name for entry in fields(BaseTrainingArguments)}
        recorded = {name: values[name] for name in _RECORDED}
        for entry in (*fields(SharedArguments), *fields(EncoderArguments)):
            name = entry.name
            if name in values and name not in st_names and name not in _OF_THE_RUN:
                recorded[name] = values[name]
        return recorded | self.changed()


@dataclass
class CrossLingualTrainingArguments(  # type: ignore[misc]  # as above
    EncoderArguments, TrainerArguments, SentenceTransformerTrainingArguments
):
    """sentence-transformers' training arguments for :class:`~st_xling.training.CrossLingualTrainer`.

    All arguments of ST and transformers, some with other defaults, and those that ST lacks. Both are listed in
    :class:`~st_xling.training.options.SharedArguments` and :class:`~st_xling.training.options.EncoderArguments`.
    sentence-transformers' own trainer takes them too, but reads none of ours, and needs ``eval_strategy="no"`` and
    ``load_best_model_at_end=False`` where nothing is evaluated.

    Example:
        >>> arguments = CrossLingualTrainingArguments("run", learning_rate=2e-5, mini_batch_size=32)
        >>> arguments.per_device_train_batch_size, arguments.warm_up_heads
        (128, None)
    """


@dataclass
class RankingTrainingArguments(TrainerArguments, CrossEncoderTrainingArguments):  # type: ignore[misc]  # as above
    """sentence-transformers' training arguments of cross-encoders for :class:`~st_xling.training.RankingTrainer`.

    See :class:`~st_xling.training.options.SharedArguments`.
    """


A = TypeVar("A", bound=OptimizationArguments)
T = TypeVar("T", bound=TrainerArguments)


def read_arguments(kind: type[A], section: Any) -> A:
    """Read the section ``arguments`` of a recipe.

    Args:
        kind: Class of the arguments.
        section: Mapping of names to values.

    Raises:
        ValueError: A name that is not known (the nearest is given), a bad type, a number out of range, or what
            sentence-transformers refuses.
    """
    hints = get_type_hints(kind)
    types = {entry.name: hints[entry.name] for entry in fields(kind) if entry.init and entry.name not in _OF_THE_RUN}
    section = {} if section is None else section
    check_keys(section, types, "arguments")
    values: dict[str, Any] = {}
    for key, value in section.items():
        if key.endswith("_strategy") and value is False:  # YAML reads a plain no as false
            value = "no"
        values[key] = read_value(value, types[key], f"arguments.{key}")
    check_numbers(values, "arguments.")
    if values.get("lora") is not None:
        values["lora"] = LoraOptions(**read_options(LoraOptions, values["lora"], "arguments.lora"))
    check_trackers(values.get("report_to"))
    if issubclass(kind, BaseTrainingArguments):
        values.setdefault("disable_tqdm", True)  # a run shows its own progress bar
    try:
        [arguments] = HfArgumentParser(kind).parse_dict(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, ImportError) as error:
        raise ValueError(f"arguments: sentence-transformers refuses these: {error}") from error
    return arguments


def fit_to_data(arguments: T, *, rows: int | None, evaluates: bool, best_metric: str | None = None) -> T:
    """Return a copy of arguments in which what depends on the data is decided.

    Args:
        arguments: Arguments of a run.
        rows: Pairs of an epoch; ``None``: a stream without an end.
        evaluates: Whether there is an evaluator or evaluation data.
        best_metric: Metric of the evaluator to choose the best checkpoint by.

    Raises:
        ValueError: A stream, and no ``max_steps`` to end it.
    """
    fitted = copy.deepcopy(arguments)
    steps = total_steps(arguments, rows, arguments.world_size)
    logs = int(arguments.logging_steps) if arguments.logging_steps >= 1 else LOGS_AN_EVALUATION
    if arguments.eval_steps < 1:
        evaluations = round(1 / arguments.eval_steps)
        fitted.eval_steps = max(1, steps // evaluations // logs) * logs
    fitted.eval_steps = min(steps, int(fitted.eval_steps))
    fitted.save_steps = _save_steps(arguments, fitted.eval_steps, steps)
    # Checkpoints fall on logged steps: a resumed run would log a shorter first line otherwise.
    if arguments.logging_steps < 1:
        logging_steps = max(1, fitted.eval_steps // LOGS_AN_EVALUATION)
        while fitted.eval_steps % logging_steps:
            logging_steps -= 1
        fitted.logging_steps = logging_steps
    if not evaluates:
        if SaveStrategy(arguments.save_strategy) == SaveStrategy.BEST:
            raise ValueError(
                'save_strategy "best" needs a score to choose by: got neither evaluator nor evaluation data; add one, '
                'or take "steps".'
            )
        fitted.eval_strategy = IntervalStrategy.NO
        fitted.load_best_model_at_end = False
        fitted.metric_for_best_model = None
        fitted.greater_is_better = None
    elif best_metric is not None and fitted.metric_for_best_model in (None, "loss"):
        fitted.metric_for_best_model = best_metric
        fitted.greater_is_better = not best_metric.endswith("loss")
    fitted.restore_callback_states_from_checkpoint = arguments.early_stopping_patience > 0
    if rows is None:
        # Rows come in the order of their batches. Were batches dealt out by the first process, it would have to pad
        # them all to one length; instead every process reads the stream and takes its part.
        fitted.accelerator_config.dispatch_batches = False  # type: ignore[union-attr]  # ST has made it an object
    elif rows < arguments.per_device_train_batch_size * arguments.world_size:
        fitted.dataloader_drop_last = False
    fitted.dataloader_pin_memory = arguments.dataloader_pin_memory and torch.cuda.is_available()
    return fitted


def _save_steps(arguments: TrainerArguments, eval_steps: int, steps: int) -> int:
    """Return the steps between two checkpoints, in the ratio to those between two evaluations that arguments have."""
    if arguments.save_steps == arguments.eval_steps:
        return eval_steps
    if arguments.save_steps >= 1:
        return int(arguments.save_steps)
    if arguments.eval_steps < 1:
        return max(1, round(arguments.save_steps / arguments.eval_steps)) * eval_steps
    return max(1, round(arguments.save_steps * steps))


def total_steps(arguments: Any, rows: int | None, processes: int = 1) -> int:
    """Optimizer steps of the whole run.

    Args:
        arguments: Training arguments, ours or ST's.
        rows: Pairs of an epoch; ``None``: a stream without an end.
        processes: Processes that share a step.
    """
    if arguments.max_steps > 0:
        return arguments.max_steps
    if rows is None:
        raise ValueError("a stream has no end that is known: got no max_steps; set arguments.max_steps / --max-steps.")
    batches = max(1, rows // (arguments.per_device_train_batch_size * processes))
    return max(1, math.ceil(arguments.num_train_epochs * math.ceil(batches / arguments.gradient_accumulation_steps)))


def replaced(arguments: T, **changes: Any) -> T:
    """Return a copy with other values; ``dataclasses.replace`` would derive values a second time."""
    copied = copy.deepcopy(arguments)
    names = {entry.name for entry in dataclasses.fields(copied)}
    for name, value in changes.items():
        if name not in names:
            raise TypeError(f"{type(copied).__name__} has no argument {name!r}")
        setattr(copied, name, value)
    return copied
