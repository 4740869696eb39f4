"""Recipes: a YAML file with strict keys → losses, model options and training options."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import SchedulerType

from st_xling.data.balance import check_balance
from st_xling.models.lora import LoraOptions, check_lora
from st_xling.training.objectives import OBJECTIVES
from st_xling.training.recipe_files import names_in, read_recipe
from st_xling.training.strict_keys import check_keys, merge, read_options, read_value, set_key
from st_xling.training.weights import read_weight
from st_xling.utils.languages import is_code

_HERE = "st_xling.training"
BATCHES = ("mixed", "one_pair")
AUTO = "auto"

_HINTS = {
    "log_steps": " (it must divide eval_steps)",
    "max_steps": " (at least 1; or -1: as the epochs say)",
    "warmup": " (a share of the steps, below 1, or a whole number of them)",
    "mini_batch_size": " (it must be even, or 'auto')",
    "schedule": f" (it is one of {', '.join(sorted(kind.value for kind in SchedulerType))})",
    "batches": f" (it is {' or '.join(BATCHES)})",
    "pivot": " (a language's code, such as en, or none)",
}


@dataclass(frozen=True)
class ModelOptions:
    """How text becomes a sentence vector. ``None`` keeps what the model has."""

    pooling: str | None = None
    max_length: int | None = None


@dataclass(frozen=True)
class TrainingOptions:
    """How long and how fast to learn.

    Attributes:
        epochs: Passes over the data; ``max_steps`` overrides it.
        max_steps: Optimiser steps; -1: as the epochs say.
        batch_size: Pairs a step and process.
        learning_rate: Peak, for AdamW.
        warmup: Share of the steps (below 1) or number of steps over which the rate rises.
        schedule: Name of a transformers scheduler.
        group_by_length: Batch sentences of like length.
        eval_steps: Steps between evaluations and checkpoints; 0: ten of them over the run.
        log_steps: Steps between logged losses; 0 chooses. Must divide ``eval_steps``.
        keep_checkpoints: Checkpoints kept besides the best.
        mini_batch_size: Rows encoded at a time (even): large batches in small memory, see ``CachedLoss``; 0: all;
            ``auto``: as many as fit. (``batch_size: auto`` is another word for it: the batch stays the recipe's.)
        memory_budget: Memory in MiB that ``auto`` may fill; 0: nearly all that is free.
        lora: Train adapters beside frozen weights; ``None``: train all weights.
        language_alpha: Balance languages by this exponent, see ``language_shares``: 1 as the data is, 0 all alike.
        language_temperature: The same, as 1 / ``language_alpha``; give one of the two at most.
        batches: ``mixed``, or ``one_pair``: each batch holds a single pair of languages.
        keep_duplicates_apart: No two rows of a batch share a text, which in-batch losses would tell apart.
        shuffle_buffer: Rows of a stream that are shuffled together.
        pivot: Language that is put on the target side of every pair that has it (DAP, section 5.1); ``None``: pairs
            stay as they come.
    """

    epochs: float = 1.0
    max_steps: int = -1
    batch_size: int = 128
    learning_rate: float = 5e-5
    warmup: float = 0.05
    schedule: str = "linear"
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    gradient_accumulation: int = 1
    precision: str = "fp32"
    group_by_length: bool = True
    eval_steps: int = 0
    log_steps: int = 0
    keep_checkpoints: int = 1
    mini_batch_size: int | str = 0
    memory_budget: int = 0
    lora: LoraOptions | None = None
    language_alpha: float | None = None
    language_temperature: float | None = None
    batches: str = "mixed"
    keep_duplicates_apart: bool = True
    shuffle_buffer: int = 50_000
    pivot: str | None = "en"
    seed: int = 0


@dataclass(frozen=True)
class Recipe:
    """A named way to train: objectives with their weights and options, model and training options.

    Attributes:
        losses: Name of the objective → its options, ``weight`` and ``columns`` among them.
    """

    name: str
    summary: str
    losses: dict[str, dict[str, Any]]
    model: ModelOptions = field(default_factory=ModelOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package."""
    return names_in(_HERE)


def load_recipe(name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe by name, or from a YAML file.

    Args:
        name_or_path: One of :func:`recipe_names`, or a path that ends in ``.yaml``.
        tiny: Apply the recipe's ``tiny`` section, meant for encoders that start from random weights.
        overrides: Dotted key → value, applied last: ``{"training.epochs": 2}``.

    Raises:
        ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.
    """
    return recipe_of(read_recipe(name_or_path, _HERE), Path(name_or_path).stem, tiny=tiny, overrides=overrides)


def recipe_of(
    raw: dict[str, Any],
    stem: str,
    *,
    tiny: bool = False,
    overrides: dict[str, Any] | None = None,
    other_sections: tuple[str, ...] = (),
) -> Recipe:
    """A recipe from the keys of its file, checked; ``stem`` names one that does not name itself.

    ``other_sections`` are read elsewhere, and named to those who misspell them.
    """
    known = ("name", "summary", "losses", "model", "training", *other_sections)
    check_keys(raw, [*known, "tiny"], "the recipe")
    changes = raw.pop("tiny", None) or {}
    check_keys(changes, ["losses", "model", "training"], "tiny")
    if tiny:
        raw = merge(raw, changes)
    for key, value in (overrides or {}).items():
        automatic = key == "training.batch_size" and value == AUTO  # the batch stays as large as the recipe says
        set_key(raw, "training.mini_batch_size" if automatic else key, value)
    check_keys(raw, known, "the recipe")
    losses = raw.get("losses") or {}
    if not isinstance(losses, dict) or not losses:
        raise ValueError(f"a recipe needs at least one loss under 'losses': got {losses!r}.")
    check_keys(losses, OBJECTIVES, "losses")
    return Recipe(
        name=str(raw.get("name", stem)),
        summary=str(raw.get("summary", "")),
        losses=_used({loss: _loss_options(loss, options) for loss, options in losses.items()}),
        model=ModelOptions(**read_options(ModelOptions, raw.get("model"), "model")),
        training=check_training(training_options(raw.get("training"))),
    )


def _used(losses: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The losses of a weight other than 0: a weight of 0 switches a term off, its cost included."""
    used = {name: options for name, options in losses.items() if options["weight"] != 0}
    if not used:
        raise ValueError(f"every loss of the recipe has weight 0: {', '.join(losses)}; give one of them a weight.")
    return used


def _loss_options(name: str, given: Any) -> dict[str, Any]:
    where = f"losses.{name}"
    given = {} if given is None else given
    known: dict[str, tuple[type, ...]] = {"weight": (), "columns": (), **OBJECTIVES[name].option_types()}
    check_keys(given, known, where)
    options = {key: read_value(value, known[key], f"{where}.{key}") for key, value in given.items()}
    options["weight"] = read_weight(given.get("weight", 1.0), f"{where}.weight")
    columns = options.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(type(column) is int for column in columns)):
        raise ValueError(f"{where}.columns must be a list of positions such as [0, 1]: got {columns!r}.")
    for key in ("languages", "target_vocabulary"):
        if options.get(key) not in (None, "auto") and not isinstance(options[key], list):
            raise ValueError(f"{where}.{key} must be 'auto' or a list: got {options[key]!r}.")
    return options


def training_options(given: Any) -> TrainingOptions:
    """What a recipe says under ``training``, names and types checked."""
    if isinstance(given, dict):
        given = dict(given)
        if given.get("pivot") == "none":
            given["pivot"] = None
        if given.get("batch_size") == AUTO:
            given["mini_batch_size"] = given.get("mini_batch_size") or AUTO  # one that is asked for stands
            del given["batch_size"]
        if given.get("lora") is not None:
            where = "training.lora"
            given["lora"] = check_lora(LoraOptions(**read_options(LoraOptions, given["lora"], where)))
    return TrainingOptions(**read_options(TrainingOptions, given, "training"))


def check_training(options: TrainingOptions) -> TrainingOptions:
    """The options as they came, or ``ValueError`` with the one that is out of range."""
    wrong = {
        "batch_size": options.batch_size < 1,
        "learning_rate": not 0 < options.learning_rate < math.inf,
        "max_steps": options.max_steps < 1 and options.max_steps != -1,
        "epochs": not 0 < options.epochs < math.inf and options.max_steps <= 0,
        "warmup": not 0 <= options.warmup < math.inf or (options.warmup > 1 and options.warmup % 1 != 0),
        "weight_decay": not 0 <= options.weight_decay < math.inf,
        "max_grad_norm": not options.max_grad_norm >= 0,
        "gradient_accumulation": options.gradient_accumulation < 1,
        "precision": options.precision not in ("fp32", "bf16", "fp16"),
        "schedule": options.schedule not in set(SchedulerType),
        "eval_steps": options.eval_steps < 0,
        "mini_batch_size": not _is_mini_batch(options.mini_batch_size),
        "memory_budget": options.memory_budget < 0,
        "keep_checkpoints": options.keep_checkpoints < 0,
        "batches": options.batches not in BATCHES,
        "pivot": options.pivot is not None and not is_code(options.pivot),
        "shuffle_buffer": options.shuffle_buffer < 1,
        "seed": not 0 <= options.seed < 2**32,
        "log_steps": options.log_steps < 0
        or (options.eval_steps > 0 and options.log_steps > 0 and options.eval_steps % options.log_steps != 0),
    }
    for key, bad in wrong.items():
        if bad:
            hint = _HINTS.get(key, "")
            raise ValueError(f"training.{key} is out of range{hint}: got {getattr(options, key)!r}.")
    try:
        check_balance(options.language_alpha, options.language_temperature)
    except ValueError as error:
        raise ValueError(f"training.language_alpha or language_temperature: {error}") from error
    return options


def _is_mini_batch(size: int | str) -> bool:
    return size == AUTO if isinstance(size, str) else size >= 0 and size % 2 == 0
