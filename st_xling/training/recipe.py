"""Recipes: YAML files with strict keys → what a model is trained by. One reader for all kinds of models.

A recipe is a dataclass whose fields are the file's sections. A section that is a dataclass itself is read by its
types; others name their reader in the field's metadata. The recipes of retrievers, adapters and cross-encoders are
defined with their training; a file's kind is recognized by a key that no other kind has.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.base.training_args import BaseTrainingArguments
from sentence_transformers.sentence_transformer import losses as st_losses
from torch import nn

from st_xling import losses
from st_xling.losses.base import CrossLingualLoss
from st_xling.training.arguments import read_training
from st_xling.training.options import (
    LAST_RANK,
    ModelOptions,
    NegativeOptions,
    TeacherOptions,
    TrainingOptions,
    unused_options,
)
from st_xling.training.recipe_files import check_keys, option_types, read_options, read_sections, read_value

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
class Objective:
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
        """Options that a recipe may set → annotations; of ST's losses the names alone are checked."""
        own = inspect.signature(self.loss).parameters.keys() - {"model", "show_progress_bar"}
        types = option_types(self.loss) if self.is_ours else dict.fromkeys(own, Any)
        return {name: kinds for name, kinds in types.items() if name not in self.preset}


OBJECTIVES = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Loss")).lower(): Objective(getattr(losses, name))
    for name in losses.__all__
    if name.endswith("Loss") and name not in _NO_OBJECTIVES
} | {name: Objective(losses.TranslationLanguageModelingLoss, {"objective": name}) for name in ("mlm", "tlm")}
"""Name in recipes → objective: every loss of ``st_xling.losses``, and the presets."""

_ST_OBJECTIVES = {name: Objective(getattr(st_losses, name)) for name in st_losses.__all__ if name.endswith("Loss")}


def objective(name: str) -> Objective:
    """By its name in recipes: one of :data:`OBJECTIVES`, or the class of a loss of ST."""
    return OBJECTIVES.get(name) or _ST_OBJECTIVES[name]


def reads_negatives(losses: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Names of the terms that read all columns, hard negatives among them."""
    return {
        name
        for name, options in losses.items()
        if name in _READ_NEGATIVES or options.get("hard_negatives") or reads_negatives(options.get("loss", {}))
    }


def read_losses(section: Any, where: str = "losses") -> dict[str, dict[str, Any]]:
    """Read a recipe's section ``losses``: objective → its options, with ``weight`` and ``columns``.

    A weight of 0 switches a term off, its cost included. A loss of ST that wraps another, such as ``MatryoshkaLoss``,
    has it under ``loss``, in the same form.
    """
    section = section or {}
    if not isinstance(section, dict) or not section:
        raise ValueError(f"a recipe needs at least one loss under {where!r}: got {section!r}.")
    check_keys(section, [*OBJECTIVES, *_ST_OBJECTIVES], where)
    terms = {
        name: _loss_options(name, {} if options is None else options, f"{where}.{name}")
        for name, options in section.items()
    }
    used = {name: options for name, options in terms.items() if options["weight"] != 0}
    if not used:
        raise ValueError(f"every loss of the recipe has weight 0: {', '.join(terms)}; give one of them a weight.")
    return used


def _loss_options(name: str, section: Any, where: str) -> dict[str, Any]:
    known = {"weight": float, "columns": Any, **objective(name).option_types()}
    check_keys(section, known, where)
    options = {key: read_value(value, known[key], f"{where}.{key}") for key, value in section.items()}
    options.setdefault("weight", 1.0)
    columns = options.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(type(column) is int for column in columns)):
        raise ValueError(f"{where}.columns must be a list of positions such as [0, 1]: got {columns!r}.")
    if "loss" in known:
        options["loss"] = read_losses(section.get("loss"), f"{where}.loss")
    return options


@dataclass(frozen=True, kw_only=True)
class BaseRecipe:
    """A recipe of any kind. Subclasses are frozen dataclasses, ``name`` first."""

    kind: ClassVar[str]
    arguments: ClassVar[type[BaseTrainingArguments] | None] = SentenceTransformerTrainingArguments
    """ST's training arguments, any of which the section ``training`` may set; ``None``: only those named there."""

    @classmethod
    def load(cls: type[R], name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None) -> R:
        """Read a recipe of this kind by name, or from a YAML file.

        Args:
            name_or_path: One of :func:`recipe_names`, or a path that ends in ``.yaml``.
            tiny: Apply the recipe's ``tiny`` section, meant for models that start from random weights.
            overrides: Dotted key → value, applied last: ``{"training.num_train_epochs": 2}``.

        Raises:
            ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.

        Example:
            >>> load_recipe("dap", overrides={"training.num_train_epochs": 2}).training.num_train_epochs
            2.0
        """
        sections = [entry.name for entry in dataclasses.fields(cls)]
        raw = read_sections(name_or_path, cls.kind, sections, tiny=tiny, overrides=overrides)
        hints: dict[str, Any] = get_type_hints(cls)
        values: dict[str, Any] = {"name": Path(name_or_path).stem, "summary": ""}
        # A section is read by its own reader, or by the types of the dataclass that it becomes.
        for entry in dataclasses.fields(cls):
            section, kind = raw.get(entry.name), hints[entry.name]
            if entry.name == "training":
                values["training"] = read_training(section, arguments=cls.arguments, kind=cls.kind)
            elif "read" in entry.metadata and (entry.name in raw or entry.default is dataclasses.MISSING):
                values[entry.name] = entry.metadata["read"](section)
            elif dataclasses.is_dataclass(kind):
                values[entry.name] = kind(**read_options(kind, section, entry.name))  # type: ignore[operator, arg-type]
            elif entry.name in raw:
                values[entry.name] = read_value(section, kind, entry.name)
        recipe = cls(**values)
        recipe.check()
        return recipe

    def check(self) -> None:
        """Raise ``ValueError`` for sections that do not fit together."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as a file has them."""
        content = dataclasses.asdict(self)
        nested = {name: part.as_dict() for name in content if hasattr(part := getattr(self, name), "as_dict")}
        unused = unused_options(self.kind)
        training = {key: value for key, value in nested["training"].items() if key not in unused}
        return content | nested | {"training": training}


R = TypeVar("R", bound=BaseRecipe)


@dataclass(frozen=True)
class Recipe(BaseRecipe):
    """A named way to train an encoder: objectives with their weights and options, model and training options.

    Attributes:
        losses: Name of the objective → its options, ``weight`` and ``columns`` among them.
        model: Holds for every model that is trained.
        bare: Holds besides for a transformer that has no pooling and length of its own; a ready model keeps them.
        teacher: What losses learn from that compare with another model.
        negatives: Hard ones for ``translation_ranking``, mined from the training text.
    """

    kind: ClassVar[str] = "encoder"

    name: str
    summary: str
    losses: dict[str, dict[str, Any]] = field(metadata={"read": read_losses})
    model: ModelOptions = field(default_factory=ModelOptions)
    bare: ModelOptions = field(default_factory=ModelOptions)
    teacher: TeacherOptions = field(default_factory=TeacherOptions)
    negatives: NegativeOptions = field(default_factory=NegativeOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    @property
    def taught(self) -> dict[str, dict[str, Any]]:
        """Those of the losses that learn from the teacher."""
        return {name: options for name, options in self.losses.items() if name in _LEARN_VECTORS}

    def check(self) -> None:
        if self.teacher != TeacherOptions() and not self.taught:
            raise ValueError(
                f"nothing in {self.name} learns from a teacher: got teacher.model {self.teacher.model!r}; add a loss, "
                f"such as losses.{_LEARN_VECTORS[0]}.weight=1, or take the recipe distill."
            )
        if not 0 <= self.negatives.count < LAST_RANK:
            raise ValueError(
                f"negatives.count must be from 0 to {LAST_RANK - 1}: got {self.negatives.count}; they are drawn from "
                f"the ranks 2 to {LAST_RANK}."
            )
        if self.negatives.count and "translation_ranking" not in self.losses:
            raise ValueError(
                f"negatives are mined for translation_ranking: got negatives.count {self.negatives.count}, and "
                f"{', '.join(self.losses)}; leave it out, or add that loss."
            )

    def as_dict(self) -> dict[str, Any]:
        used = {"teacher": bool(self.taught), "negatives": bool(self.negatives.count)}
        return {name: value for name, value in super().as_dict().items() if used.get(name, True)}


load_recipe = Recipe.load
