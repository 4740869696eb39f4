"""Recipes of retrievers: those of encoders, with a section ``retrieval``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_xling.training.recipe import Recipe, recipe_of
from st_xling.training.recipe_files import names_in, read_recipe
from st_xling.training.strict_keys import check_keys, read_options, set_key

_HERE = "st_xling.training.retriever"
_SECTION = "retrieval"

ENCODERS = ("shared", "separate")
GRADIENTS = ("one_by_one", "together")
RANKING, SEMANTIC, LANGUAGE = "in_batch_ranking", "semantic_contrastive", "language_contrastive"


@dataclass(frozen=True)
class RetrievalOptions:
    """What only retrievers have.

    Attributes:
        encoders: ``"separate"``: one for queries and one for passages, from the same start, of which the contrastive
            terms train the latter alone, as in the paper; or ``"shared"``.
        gradients: ``"one_by_one"``: each term is computed and its gradient added before the next, as in the paper, in
            the memory of the largest; ``"together"``: one backward pass through all. The step is the same.
        parallel_batch_size: Pairs of parallel text in a batch, and as many of the others, beside
            ``training.batch_size`` queries; ``None``: as many as queries.
    """

    encoders: str = "separate"
    gradients: str = "one_by_one"
    parallel_batch_size: int | None = None


@dataclass(frozen=True)
class RetrievalRecipe(Recipe):
    """A named way to train a retriever."""

    retrieval: RetrievalOptions = RetrievalOptions()


def retrieval_recipe_names() -> list[str]:
    """Names of the recipes of retrievers that come with the package."""
    return names_in(_HERE)


def is_retrieval_recipe(name_or_path: str) -> bool:
    """Whether a name or a YAML file is a retriever's recipe; a file is, if it has a section ``retrieval``."""
    if name_or_path in retrieval_recipe_names():
        return True
    path = Path(name_or_path)
    return path.suffix in (".yaml", ".yml") and path.is_file() and _SECTION in read_recipe(name_or_path, _HERE)


def load_retrieval_recipe(
    name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None
) -> RetrievalRecipe:
    """Read a recipe by name, or from a YAML file; see :func:`~st_xling.training.load_recipe` for the arguments.

    Raises:
        ValueError: As there; no IR loss, losses or options that a retriever does not take.
    """
    raw, changes = read_recipe(name_or_path, _HERE), dict(overrides or {})
    for key in [key for key in changes if key.partition(".")[0] == _SECTION]:
        set_key(raw, key, changes.pop(key))
    options = RetrievalOptions(**read_options(RetrievalOptions, raw.pop(_SECTION, None), _SECTION))
    for name, choices in (("encoders", ENCODERS), ("gradients", GRADIENTS)):
        if getattr(options, name) not in choices:
            given = getattr(options, name)
            raise ValueError(f"{_SECTION}.{name} must be one of {', '.join(choices)}: got {given!r}.")
    size = options.parallel_batch_size
    if size is not None and size < 2:
        raise ValueError(f"{_SECTION}.parallel_batch_size must be at least 2 pairs, to contrast: got {size}.")
    recipe = recipe_of(raw, Path(name_or_path).stem, tiny=tiny, overrides=changes, other_sections=(_SECTION,))
    _check(recipe)
    if size is not None and not set(recipe.losses) & {SEMANTIC, LANGUAGE}:
        raise ValueError(
            f"{recipe.name} reads no parallel text: got {_SECTION}.parallel_batch_size {size}; leave it out."
        )
    fields = {field.name: getattr(recipe, field.name) for field in dataclasses.fields(Recipe)}
    return RetrievalRecipe(**fields, retrieval=options)


def _check(recipe: Recipe) -> None:
    check_keys(recipe.losses, (RANKING, SEMANTIC, LANGUAGE), "losses of a retriever")
    if RANKING not in recipe.losses:
        raise ValueError(f"a retriever learns by {RANKING}: got {', '.join(recipe.losses)} alone; add it.")
    for name, options in recipe.losses.items():
        if "columns" in options:
            raise ValueError(f"losses.{name}.columns follow from the term: leave them out.")
    if recipe.training.mini_batch_size != 0 or recipe.training.lora is not None:
        raise ValueError(
            "retrievers are trained without mini-batches and adapters: got training.mini_batch_size or training.lora; "
            "leave it out, or lower training.batch_size."
        )
