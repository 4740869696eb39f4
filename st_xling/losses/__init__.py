"""Objectives: a pure tensor function and the module that feeds it, one a file."""

from st_xling.losses.base import CrossLingualLoss
from st_xling.losses.combined import CombinedLoss
from st_xling.losses.representation_translation import RepresentationTranslationLoss
from st_xling.losses.translation_ranking import TranslationRankingLoss, translation_ranking

__all__ = [
    "CombinedLoss",
    "CrossLingualLoss",
    "RepresentationTranslationLoss",
    "TranslationRankingLoss",
    "translation_ranking",
]
