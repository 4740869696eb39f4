"""Recipes: YAML files with strict keys → what a model is trained by. One reader for all kinds of models.

A recipe is a dataclass whose fields are the file's sections. A section that is a dataclass itself is read by its
types; others name their reader in the field's metadata. The recipes of retrievers, adapters and cross-encoders are
defined with their training; a file's kind is recognized by a key that no other kind has.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from sentence_transformers.sentence_transformer import losses as st_losses
from torch import nn

from st_xling import losses
from st_xling.losses.base import CrossLingualLoss
from st_xling.training.arguments import CrossLingualTrainingArguments, TrainerArguments, read_arguments
from st_xling.training.options import (
    ModelOptions,
    OptimizationArguments,
    ParallelDataOptions,
    ReplayOptions,
    TeacherOptions,
)
from st_xling.training.recipe_files import check_keys, option_types, read_options, read_sections, read_value
from st_xling.utils.languages import is_code
from st_xling.utils.options import helpful_arguments, nearest_name

_NO_OBJECTIVES = ("CrossLingualLoss", "TokenLevelLoss", "CombinedLoss", "CachedLoss", "TranslationLanguageModelingLoss")


_READ_NEGATIVES = (
    *("in_batch_ranking", "MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "TripletLoss"),
    *("MultipleNegativesSymmetricRankingLoss", "CachedMultipleNegativesSymmetricRankingLoss"),
    *("GISTEmbedLoss", "CachedGISTEmbedLoss"),
)
"""Losses that read hard negatives; ``translation_ranking`` does if its option is set."""

_LEARN_VECTORS = ("MSELoss", "EmbedDistillLoss")
"""Losses of ST whose labels are a teacher's vectors."""


@dataclass(frozen=True)
class RecipeLoss:
    """A loss class, ours or sentence-transformers', and the options behind its name in recipes.

    Attributes:
        loss: The class.
        preset: Options that the name fixes.
    """

    loss: type[nn.Module]
    preset: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return issubclass(self.loss, CrossLingualLoss)

    def option_types(self) -> dict[str, Any]:
        """Options that a recipe may set → annotations; of ST's losses only the names are checked."""
        if self.is_ours:
            types = option_types(self.loss)
        else:
            names = inspect.signature(self.loss).parameters.keys() - {"model", "show_progress_bar"}
            types = dict.fromkeys(names, Any)
        return {name: annotation for name, annotation in types.items() if name not in self.preset}


def _name_in_recipes(class_name: str) -> str:
    """``"TranslationRankingLoss"`` → ``"translation_ranking"``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name.removesuffix("Loss")).lower()


_OUR_LOSSES = {
    _name_in_recipes(name): RecipeLoss(getattr(losses, name))
    for name in losses.__all__
    if name.endswith("Loss") and name not in _NO_OBJECTIVES
}
_PRESETS = {name: RecipeLoss(losses.TranslationLanguageModelingLoss, {"objective": name}) for name in ("mlm", "tlm")}

OBJECTIVES = _OUR_LOSSES | _PRESETS
"""Name in recipes → objective: every loss of ``st_xling.losses``, and the presets."""

_ST_OBJECTIVES = {name: RecipeLoss(getattr(st_losses, name)) for name in st_losses.__all__ if name.endswith("Loss")}


def objective(name: str) -> RecipeLoss:
    """Find a loss by its name in recipes.

    Args:
        name: One of :data:`OBJECTIVES`, the class of a loss of ST, or the import path of any other class, such as
            ``my_package.MyLoss``, that takes the model first.

    Raises:
        ValueError: No such loss; the nearest name is given, or why it cannot be imported.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    if name in _ST_OBJECTIVES:
        return _ST_OBJECTIVES[name]
    if "." not in name:
        raise ValueError(f"no loss is called {name!r}{nearest_name(name, [*OBJECTIVES, *_ST_OBJECTIVES])}")
    module, _, attribute = name.rpartition(".")
    try:
        loss = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"the loss {name!r} cannot be imported ({error}); install its package, or set PYTHONPATH to its folder."
        ) from error
    if not (inspect.isclass(loss) and issubclass(loss, nn.Module)):
        raise ValueError(f"the loss {name!r} must be a class of losses, a torch.nn.Module: got {loss!r}.")
    return RecipeLoss(loss)


def reads_negatives(losses: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Names of the terms that read all columns, hard negatives among them."""
    names: set[str] = set()
    for name, options in losses.items():
        wrapped_losses = options.get("loss", {})
        if name in _READ_NEGATIVES or options.get("hard_negatives") or reads_negatives(wrapped_losses):
            names.add(name)
    return names


def read_losses(section: Any, where: str = "losses") -> dict[str, dict[str, Any]]:
    """Read a recipe's section ``losses``: objective → its options, with ``weight`` and ``columns``.

    A weight of 0 switches a term off, its cost included. A loss of ST that wraps another, such as ``MatryoshkaLoss``,
    has it under ``loss``, in the same form.
    """
    section = section or {}
    if not isinstance(section, dict) or not section:
        raise ValueError(f"a recipe needs at least one loss under {where!r}: got {section!r}.")
    paths = [name for name in section if "." in str(name)]  # of classes elsewhere
    check_keys(section, [*OBJECTIVES, *_ST_OBJECTIVES, *paths], where)
    terms: dict[str, dict[str, Any]] = {}
    for name, options in section.items():
        if options is None:  # a key without a value
            options = {}
        terms[name] = _read_loss_options(name, options, f"{where}.{name}")
    used = {name: options for name, options in terms.items() if options["weight"] != 0}
    if not used:
        raise ValueError(f"every loss of the recipe has weight 0: {', '.join(terms)}; give one of them a weight.")
    return used


def _read_loss_options(name: str, section: Any, where: str) -> dict[str, Any]:
    types = {"weight": float, "columns": Any, **objective(name).option_types()}
    check_keys(section, types, where)
    options = {key: read_value(value, types[key], f"{where}.{key}") for key, value in section.items()}
    options.setdefault("weight", 1.0)
    columns = options.get("columns")
    if columns is not None:
        is_list_of_positions = isinstance(columns, list) and all(type(column) is int for column in columns)
        if not is_list_of_positions:
            raise ValueError(f"{where}.columns must be a list of positions such as [0, 1]: got {columns!r}.")
    if "loss" in types:
        options["loss"] = read_losses(section.get("loss"), f"{where}.loss")
    return options


@dataclass(frozen=True, kw_only=True)
class BaseRecipe:
    """A recipe of any kind. Subclasses are frozen dataclasses, ``name`` first."""

    kind: ClassVar[str]
    arguments_class: ClassVar[type[OptimizationArguments]]
    """Class of the section ``arguments``."""

    @classmethod
    def load(cls: type[R], name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None) -> R:
        """Read a recipe of this kind by name, or from a YAML file.

        Args:
            name_or_path: One of :func:`recipe_names`, or a path that ends in ``.yaml``.
            tiny: Apply the recipe's ``tiny`` section, meant for models that start from random weights.
            overrides: Dotted key → value, applied last: ``{"arguments.num_train_epochs": 2}``.

        Raises:
            ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.

        Example:
            >>> load_recipe("dap", overrides={"arguments.num_train_epochs": 2}).arguments.num_train_epochs
            2.0
        """
        sections = [entry.name for entry in dataclasses.fields(cls)]
        raw = read_sections(name_or_path, cls.kind, sections, tiny=tiny, overrides=overrides)
        hints: dict[str, Any] = get_type_hints(cls)
        values: dict[str, Any] = {"name": Path(name_or_path).stem, "summary": ""}
        # A section is read by its own reader, or by the types of the dataclass that it becomes.
        for entry in dataclasses.fields(cls):
            section = raw.get(entry.name)
            kind = hints[entry.name]
            if entry.name == "arguments":
                values["arguments"] = read_arguments(cls.arguments_class, section)
            elif "read" in entry.metadata and (entry.name in raw or entry.default is dataclasses.MISSING):
                values[entry.name] = entry.metadata["read"](section)
            elif dataclasses.is_dataclass(kind):
                values[entry.name] = read_section(kind, section, entry.name)
            elif entry.name in raw:
                values[entry.name] = read_value(section, kind, entry.name)
        recipe = cls(**values)
        recipe.check()
        return recipe

    def check(self) -> None:
        """Raise ``ValueError`` for sections that do not fit together."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as a file has them."""
        content: dict[str, Any] = {}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, TrainerArguments):
                value = value.recorded()
            elif dataclasses.is_dataclass(value):
                value = dataclasses.asdict(value)  # type: ignore[arg-type]
            content[entry.name] = copy.deepcopy(value)
        return content


def read_section(kind: Any, section: Any, where: str) -> Any:
    """Read a section into a dataclass, whose fields may be sections themselves.

    Args:
        kind: The dataclass.
        section: Mapping of names to values.
        where: Name of the section, for messages.

    Raises:
        ValueError: A name that is not known (the nearest is given), or a bad value.
    """
    hints = get_type_hints(kind)
    section = {} if section is None else section
    check_keys(section, [entry.name for entry in dataclasses.fields(kind)], where)
    subsections = {name: hints[name] for name in section if dataclasses.is_dataclass(hints[name])}
    options = {name: value for name, value in section.items() if name not in subsections}
    values = read_options(kind, options, where)
    for name, subsection_kind in subsections.items():
        values[name] = read_section(subsection_kind, section[name], f"{where}.{name}")
    return kind(**values)


R = TypeVar("R", bound=BaseRecipe)
TrainFunction = TypeVar("TrainFunction", bound=Callable[..., Any])


def trains_by_recipe(function: TrainFunction) -> TrainFunction:
    """Let a training argument that is passed to ``function``, and belongs in its recipe, raise ``TypeError`` saying so.

    Args:
        function: Trains by a recipe, and takes its own options by keyword.
    """
    keywords = inspect.signature(function).parameters
    argument_names = [entry.name for entry in dataclasses.fields(CrossLingualTrainingArguments)]

    def explain(name: str, value: Any) -> str | None:
        [nearest] = difflib.get_close_matches(name, [*keywords, *argument_names], n=1, cutoff=0.5) or [""]
        if nearest not in argument_names or nearest in keywords:
            return None
        setting = f"load_recipe(…, overrides={{'arguments.{nearest}': {value!r}}})"
        return f"training arguments are set in the recipe, by {setting}"

    return helpful_arguments(function, explain)


def read_parallel_data(section: Any) -> ParallelDataOptions:
    """Read the section ``data`` of a recipe for encoders."""
    if isinstance(section, dict) and section.get("pivot") == "none":
        section = {**section, "pivot": None}
    return read_section(ParallelDataOptions, section, "data")


@dataclass(frozen=True)
class LossRecipe(BaseRecipe):
    """A recipe whose model learns by a sum of losses.

    Attributes:
        losses: Name of the objective → its options, ``weight`` and ``columns`` among them.
        arguments: Training arguments.
        model: Pooling and length of every model that is trained.
        bare: Pooling and length of a transformer that has none; a model of sentence-transformers keeps its own.
    """

    arguments_class: ClassVar[type[OptimizationArguments]] = CrossLingualTrainingArguments

    name: str
    summary: str
    losses: dict[str, dict[str, Any]] = field(metadata={"read": read_losses})
    arguments: CrossLingualTrainingArguments
    model: ModelOptions = field(default_factory=ModelOptions)
    bare: ModelOptions = field(default_factory=ModelOptions)


@dataclass(frozen=True)
class Recipe(LossRecipe):
    """A named way to train an encoder: objectives with their weights and options, and the options of training.

    Attributes:
        data: What is done to the data before training: pivot, teacher, hard negatives, near-translations, replay.
        start: Model that a run starts from where none is given; ``None``: one must be given.
    """

    kind: ClassVar[str] = "encoder"

    data: ParallelDataOptions = field(default_factory=ParallelDataOptions, metadata={"read": read_parallel_data})
    start: str | None = None

    @property
    def taught(self) -> dict[str, dict[str, Any]]:
        """The losses that learn from the teacher."""
        return {name: options for name, options in self.losses.items() if name in _LEARN_VECTORS}

    def check(self) -> None:
        teacher = self.data.teacher
        count = self.data.hard_negatives.num_negatives
        if teacher != TeacherOptions() and not self.taught:
            raise ValueError(
                f"nothing in {self.name} learns from a teacher: got data.teacher.model {teacher.model!r}; add a loss, "
                f"such as losses.{_LEARN_VECTORS[0]}.weight=1, or take the recipe distill."
            )
        if count and "translation_ranking" not in self.losses:
            raise ValueError(
                f"negatives are mined for translation_ranking: got data.hard_negatives.num_negatives {count}, and "
                f"{', '.join(self.losses)}; leave it out, or add that loss."
            )
        if self.data.hard_swaps and "translation_ranking" not in self.losses:
            raise ValueError(
                f"near-translations are negatives of translation_ranking: got data.hard_swaps "
                f"{', '.join(self.data.hard_swaps)}, and {', '.join(self.losses)}; leave it out, or add that loss."
            )
        if self.data.pivot is not None and not is_code(self.data.pivot):
            raise ValueError(f"data.pivot must be a language code, or none: got {self.data.pivot!r}.")

    def as_dict(self) -> dict[str, Any]:
        content = super().as_dict()
        if not self.taught:
            del content["data"]["teacher"]
        if not self.data.hard_negatives.num_negatives:
            del content["data"]["hard_negatives"]
        if self.data.replay == ReplayOptions():
            del content["data"]["replay"]
        if not self.data.hard_swaps:
            del content["data"]["hard_swaps"]
        if self.start is None:
            del content["start"]
        return content


load_recipe = Recipe.load
