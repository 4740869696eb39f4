"""A recipe's losses, built on a model and its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from st_xling.losses.combined import CombinedLoss, Term
from st_xling.training.objectives import OBJECTIVES
from st_xling.training.recipe import Recipe
from st_xling.training.weights import LinearRamp, ScheduledWeights


def build_loss(
    recipe: Recipe, model: nn.Module, *, token_ids: Sequence[set[int]], languages: Sequence[str] = ()
) -> CombinedLoss:
    """The weighted sum that a recipe describes.

    Args:
        recipe: What to train with.
        model: The ``SentenceTransformer`` to train.
        token_ids: Token ids that each text column uses: the meaning of ``target_vocabulary: auto``.
        languages: Languages of the data, for losses that are told the language (``languages: auto``).

    Raises:
        ValueError: Options that the loss refuses.
    """
    terms = []
    for name, given in recipe.losses.items():
        options: dict[str, Any] = {**OBJECTIVES[name].preset, **given}
        weight = options.pop("weight", 1.0)
        weight = weight["start"] if isinstance(weight, dict) else weight
        columns = options.pop("columns", None)
        if options.get("target_vocabulary") == "auto":
            options["target_vocabulary"] = sorted(_rebuilt_ids(options.get("direction", "target"), token_ids))
        if options.get("languages") == "auto":
            options["languages"] = list(languages) or None
        try:
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


def _rebuilt_ids(direction: str, token_ids: Sequence[set[int]]) -> set[int]:
    source, target = token_ids[0], token_ids[1]
    return {"source": source, "target": target}.get(direction, source | target)
