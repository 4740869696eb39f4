"""Recipes of cross-encoders by name or from a YAML file, with strict keys."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.models.cross_encoder import Head
from st_xling.training.recipe import TrainingOptions, check_training, training_options
from st_xling.training.recipe_files import names_in, read_recipe
from st_xling.training.reranker.ranking_losses import read_loss
from st_xling.training.reranker.recipe import (
    XPI,
    CrossEncoderRecipe,
    NegativeOptions,
    PairOptions,
    SentenceOptions,
)
from st_xling.training.strict_keys import check_keys, merge, read_options, set_key

_HERE = "st_xling.training.reranker"
_KEYS = ("name", "summary", "strategy", "negatives", "sentences", "head", "loss", "model", "training")
_OF_ENCODERS = (
    "mini_batch_size",
    "memory_budget",
    "language_alpha",
    "language_temperature",
    "batches",
    "keep_duplicates_apart",
    "shuffle_buffer",
)
"""Training options that mean nothing here: balance is the strategy's, mini-batches are the loss's."""


def cross_encoder_recipe_names() -> list[str]:
    """Names of the cross-encoders' recipes that come with the package."""
    return names_in(_HERE)


def is_cross_encoder_recipe(name_or_path: str) -> bool:
    """Whether a recipe's name or file is a cross-encoder's: it has a ``strategy``; an encoder's has ``losses``."""
    if Path(name_or_path).suffix not in (".yaml", ".yml"):
        return name_or_path in cross_encoder_recipe_names()
    return "strategy" in read_recipe(name_or_path, _HERE)


def load_cross_encoder_recipe(
    name_or_path: str, *, tiny: bool = False, xpi: bool = False, overrides: dict[str, Any] | None = None
) -> CrossEncoderRecipe:
    """Read a recipe by name, or from a YAML file.

    Args:
        name_or_path: One of :func:`cross_encoder_recipe_names`, or a path that ends in ``.yaml``.
        tiny: Apply the ``tiny`` sections, meant for encoders that start from random weights.
        xpi: XPI comes before, by the recipe ``xpi`` and what is said under this one's key ``xpi``.
        overrides: Dotted key → value, applied last: ``{"training.epochs": 2, "xpi.training.epochs": 1}``.

    Raises:
        ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.
    """
    raw = _sections(name_or_path, tiny=tiny)
    for key, value in (overrides or {}).items():
        set_key(raw, key, value)
    before = raw.pop(XPI, None)
    recipe = _read(raw, name=Path(name_or_path).stem)
    if recipe.strategy == XPI and (xpi or before is not None):
        raise ValueError(f"XPI comes before a re-ranking recipe: got it before {recipe.name}, which is XPI itself.")
    if not xpi:
        if any(key == XPI or key.startswith(f"{XPI}.") for key in overrides or {}):
            raise ValueError(
                "options under 'xpi' are of a stage that is not there: give --xpi-data, or leave them out."
            )
        return recipe
    shared = {"head": recipe.head, "model": dataclasses.asdict(recipe.model)}
    before = {} if before is None else before
    check_keys(before, ["negatives", "sentences", "loss", "training"], XPI)
    # Told once, for both stages; what is said under xpi wins.
    told = {key: raw["training"][key] for key in ("seed", "precision", "lora") if key in raw.get("training", {})}
    stage = merge(merge(_sections(XPI, tiny=tiny), {"training": told}), merge(before, shared))
    return dataclasses.replace(recipe, xpi=_read(stage, name=XPI))


def _sections(name_or_path: str, *, tiny: bool) -> dict[str, Any]:
    raw = read_recipe(name_or_path, _HERE)
    check_keys(raw, [*_KEYS, XPI, "tiny"], "the recipe")
    changes = raw.pop("tiny", None) or {}
    check_keys(changes, ["negatives", "sentences", "head", "loss", "model", "training", XPI], "tiny")
    return merge(raw, changes) if tiny else raw


def _read(raw: dict[str, Any], *, name: str) -> CrossEncoderRecipe:
    check_keys(raw, _KEYS, "the recipe")
    strategy, head = raw.get("strategy"), raw.get("head", "cls")
    known = (XPI, *STRATEGIES)
    if strategy not in known:
        raise ValueError(f"strategy must be one of {', '.join(known)}: got {strategy!r}.")
    if head not in get_args(Head):
        raise ValueError(f"head must be one of {', '.join(get_args(Head))}: got {head!r}.")
    if strategy != XPI and raw.get("sentences"):
        raise ValueError(f"'sentences' shapes what XPI makes of parallel text: strategy {strategy!r} takes none.")
    given = raw.get("training") or {}
    takes = [entry.name for entry in dataclasses.fields(TrainingOptions) if entry.name not in _OF_ENCODERS]
    check_keys(given, takes, "training")
    negatives = NegativeOptions(**read_options(NegativeOptions, raw.get("negatives"), "negatives"))
    drawn = 1 if negatives.per_positive is None else negatives.per_positive
    if drawn < 0 or not 0 <= negatives.hard <= drawn:
        raise ValueError(f"negatives.hard counts among negatives.per_positive: got {negatives.hard} of {drawn}.")
    return CrossEncoderRecipe(
        name=str(raw.get("name", name)),
        summary=str(raw.get("summary", "")),
        strategy=strategy,
        negatives=negatives,
        sentences=SentenceOptions(**read_options(SentenceOptions, raw.get("sentences"), "sentences")),
        head=head,
        loss=read_loss(raw.get("loss")),
        model=PairOptions(**read_options(PairOptions, raw.get("model"), "model")),
        training=check_training(training_options(given)),
    )
