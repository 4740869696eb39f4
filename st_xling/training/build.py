"""A recipe's losses, built on a model and its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from st_xling.losses.base import CombinedLoss, Term
from st_xling.training.objectives import OBJECTIVES
from st_xling.training.recipe import Recipe
from st_xling.training.weights import LinearRamp, ScheduledWeights


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
        options = OBJECTIVES[name].loss.resolve_options(options, token_ids=token_ids, languages=languages)
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
