"""Recipes of adapters: a YAML file with strict keys → layer, network, loss and training options."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from st_xling.losses.siamese_contrastive import Distance, Negatives, check_options
from st_xling.models.load import Pooling
from st_xling.models.view import Centre, check_centre
from st_xling.training.adapter.network import Network, check_network
from st_xling.training.recipe import TrainingOptions, check_training, training_options
from st_xling.training.recipe_files import names_in, read_recipe
from st_xling.training.strict_keys import check_keys, merge, read_options, set_key

_HERE = "st_xling.training.adapter"
_KEYS = ("name", "summary", "adapter", "loss", "model", "training")
_TAKES = ("epochs", "max_steps", "batch_size", "learning_rate", "warmup", "schedule", "weight_decay", "seed")
"""Training options that mean something for a layer on cached vectors."""


@dataclass(frozen=True)
class AdapterOptions:
    """What is trained, and on which layer.

    Attributes:
        layer: Of the encoder, counted from 1; in a sweep each in turn.
        network: ``"linear"``, ``"tanh"``, ``"relu"`` or ``"two-layer"``, see :class:`Adapter`.
        dropout: Of its outputs, while it is trained.
        centre: After training, ``"per_language"``: each language's unit vectors less their own mean, as in the paper;
            ``"joint"``: less one mean of all languages; ``"none"``: unit length alone.
    """

    layer: int = 7
    network: Network = "linear"
    dropout: float = 0.2
    centre: Centre = "per_language"


@dataclass(frozen=True)
class SiameseOptions:
    """Options of :func:`~st_xling.losses.siamese_contrastive`."""

    margin: float = 1.0
    distance: Distance = "euclidean"
    negatives: Negatives = "worst"


@dataclass(frozen=True)
class EncoderOptions:
    """How text becomes the vectors below the adapter. ``max_length`` of ``None`` keeps what the model has."""

    pooling: Pooling = "mean"
    max_length: int | None = None


@dataclass(frozen=True)
class AdapterRecipe:
    """A named way to train an adapter."""

    name: str
    summary: str = ""
    adapter: AdapterOptions = field(default_factory=AdapterOptions)
    loss: SiameseOptions = field(default_factory=SiameseOptions)
    model: EncoderOptions = field(default_factory=EncoderOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; of the training options those that count here."""
        content = dataclasses.asdict(self)
        return content | {"training": {key: content["training"][key] for key in _TAKES}}


def adapter_recipe_names() -> list[str]:
    """Names of the adapters' recipes that come with the package."""
    return names_in(_HERE)


def is_adapter_recipe(name_or_path: str) -> bool:
    """Whether a recipe's name or file is an adapter's: it has a key ``adapter``."""
    if Path(name_or_path).suffix not in (".yaml", ".yml"):
        return name_or_path in adapter_recipe_names()
    return "adapter" in read_recipe(name_or_path, _HERE)


def load_adapter_recipe(
    name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None
) -> AdapterRecipe:
    """Read a recipe by name, or from a YAML file.

    Args:
        name_or_path: One of :func:`adapter_recipe_names`, or a path that ends in ``.yaml``.
        tiny: Apply the recipe's ``tiny`` section, meant for small encoders of random weights.
        overrides: Dotted key → value, applied last: ``{"adapter.layer": 5}``.

    Raises:
        ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.
    """
    raw = read_recipe(name_or_path, _HERE)
    check_keys(raw, [*_KEYS, "tiny"], "the recipe")
    changes = raw.pop("tiny", None) or {}
    check_keys(changes, _KEYS[2:], "tiny")
    if tiny:
        raw = merge(raw, changes)
    for key, value in (overrides or {}).items():
        set_key(raw, key, value)
    check_keys(raw, _KEYS, "the recipe")
    check_keys(raw.get("training") or {}, _TAKES, "training")
    recipe = AdapterRecipe(
        name=str(raw.get("name", Path(name_or_path).stem)),
        summary=str(raw.get("summary", "")),
        adapter=AdapterOptions(**read_options(AdapterOptions, raw.get("adapter"), "adapter")),
        loss=SiameseOptions(**read_options(SiameseOptions, raw.get("loss"), "loss")),
        model=EncoderOptions(**read_options(EncoderOptions, raw.get("model"), "model")),
        training=check_training(training_options(raw.get("training"))),
    )
    check_network(recipe.adapter.network, recipe.adapter.dropout)
    check_centre(recipe.adapter.centre)
    check_options(recipe.loss.margin, recipe.loss.distance, recipe.loss.negatives)
    if recipe.model.pooling not in get_args(Pooling):
        raise ValueError(f"model.pooling must be one of {get_args(Pooling)}: got {recipe.model.pooling!r}.")
    return recipe
