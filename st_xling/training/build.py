"""A recipe's losses, built on a model and its data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import nn

from st_xling.losses.combined import CombinedLoss, Term
from st_xling.training.objectives import OBJECTIVES
from st_xling.training.recipe import Recipe
from st_xling.training.weights import LinearRamp, ScheduledWeights
from st_xling.utils.languages import canonical_language

T = TypeVar("T")


def build_loss(
    recipe: Recipe, model: nn.Module, *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]] = ()
) -> CombinedLoss:
    """The weighted sum that a recipe describes.

    Args:
        recipe: What to train with.
        model: The ``SentenceTransformer`` to train.
        token_ids: Token ids that each text column uses: the meaning of ``target_vocabulary: auto``.
        languages: Languages of each text column, for losses that are told the language. Left unset (or ``auto``), a
            loss is told it where the column that it rebuilds has several; ``languages: []`` tells it none.

    Raises:
        ValueError: Options that the loss refuses.
    """
    terms = []
    for name, given in recipe.losses.items():
        options: dict[str, Any] = {**OBJECTIVES[name].preset, **given}
        weight = options.pop("weight", 1.0)
        weight = weight["start"] if isinstance(weight, dict) else weight
        columns = options.pop("columns", None)
        direction = options.get("direction", "target")
        if options.get("target_vocabulary") == "auto":
            options["target_vocabulary"] = sorted(_rebuilt(direction, token_ids))
        if "languages" in OBJECTIVES[name].option_types():
            options["languages"] = _languages(options.get("languages"), direction, languages)
        try:
            with torch.random.fork_rng():  # new heads are drawn
                torch.manual_seed(recipe.training.seed)
                loss = OBJECTIVES[name].loss(model, **options)
        except TypeError as error:
            raise ValueError(f"losses.{name} has an option of the wrong type: {error}") from error
        except ValueError as error:
            raise ValueError(f"losses.{name}: {error}") from error
        terms.append(Term(loss, weight, None if columns is None else tuple(columns), name=name))
    return CombinedLoss(model, terms)


def scheduled_weights(recipe: Recipe, loss: CombinedLoss) -> ScheduledWeights | None:
    """The callback that moves the recipe's changing weights, if it has any."""
    ramps = {
        name: LinearRamp(**given["weight"])
        for name, given in recipe.losses.items()
        if isinstance(given["weight"], dict)
    }
    return ScheduledWeights(loss, ramps) if ramps else None


def _rebuilt(direction: str, columns: Sequence[Iterable[T]]) -> set[T]:
    """What occurs in the columns that a direction rebuilds, of the tokens or languages of each."""
    source, target = set(columns[0]), set(columns[1])
    return {"source": source, "target": target}.get(direction, source | target)


def _languages(given: Any, direction: str, columns: Sequence[Iterable[str]]) -> list[str] | None:
    if isinstance(given, list):
        return given or None
    if not columns:
        return None
    # Every language of the data has an id, also those that are never rebuilt: both columns name theirs.
    everywhere = sorted(_rebuilt("both", columns))
    return (
        everywhere if given == "auto" or len(set(map(canonical_language, _rebuilt(direction, columns)))) > 1 else None
    )
