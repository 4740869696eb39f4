"""The losses of a recipe, as the host's card data take them: for their names and citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

XPR_CITATION = """
@article{chen2020crosslingual,
    title = {Cross-Lingual Passage Re-Ranking With Alignment Augmented Multilingual BERT},
    author = {Chen, Dongmei and Zhang, Sheng and Zhang, Xin and Yang, Kaijing},
    journal = {IEEE Access},
    year = {2020},
    doi = {10.1109/ACCESS.2020.3041605},
}
"""


def recipe_losses(recipe: Mapping[str, Any]) -> list[nn.Module]:
    """A module of each class of loss that a recipe names; unbuilt: they tell class and citation, and no more.

    Args:
        recipe: As a run's manifest has it; losses that are not known here are left out.
    """
    kinds = dict.fromkeys([*_of_encoders(recipe), *_of_adapters(recipe), *_of_cross_encoders(recipe)])
    return [kind.__new__(kind) for kind in kinds]


def recipe_citations(recipe: Mapping[str, Any]) -> dict[str, str]:
    """BibTeX of a recipe as a whole, where its losses are not what the paper is about, by title."""
    return {"XPI and XPR": XPR_CITATION} if "strategy" in recipe else {}


def _of_encoders(recipe: Mapping[str, Any]) -> list[type[nn.Module]]:
    from st_xling.training.recipe import OBJECTIVES

    names = [name for name, given in (recipe.get("losses") or {}).items() if (given or {}).get("weight") != 0]
    return [OBJECTIVES[name].loss for name in names if name in OBJECTIVES]


def _of_adapters(recipe: Mapping[str, Any]) -> list[type[nn.Module]]:
    from st_xling.losses import SiameseContrastiveLoss

    return [SiameseContrastiveLoss] if "adapter" in recipe else []


def _of_cross_encoders(recipe: Mapping[str, Any]) -> list[type[nn.Module]]:
    from st_xling.training.ranking_losses import RankingLoss, loss_names

    if "strategy" not in recipe:
        return []
    names = [(stage.get("loss") or {}).get("name") for stage in (recipe.get("xpi"), recipe) if stage]
    return [RankingLoss(name).kind for name in names if name in loss_names()]
