"""The names that recipes know objectives by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from st_xling import losses
from st_xling.losses.base import CrossLingualLoss
from st_xling.training.strict_keys import option_types


@dataclass(frozen=True)
class Objective:
    """A loss class, and the options that its name in recipes stands for.

    Attributes:
        loss: The class.
        preset: Options that the name fixes.
    """

    loss: type[CrossLingualLoss]
    preset: dict[str, Any] = field(default_factory=dict)

    def option_types(self) -> dict[str, tuple[type, ...]]:
        """Options that a recipe may set, with their types."""
        return {name: kinds for name, kinds in option_types(self.loss).items() if name not in self.preset}


OBJECTIVES = {
    "translation_ranking": Objective(losses.TranslationRankingLoss),
    "representation_translation": Objective(losses.RepresentationTranslationLoss),
    "tlm": Objective(losses.TranslationLanguageModelingLoss, {"objective": "tlm"}),
    "mlm": Objective(losses.TranslationLanguageModelingLoss, {"objective": "mlm"}),
    "word_alignment": Objective(losses.WordAlignmentLoss),
    "semantic_contrastive": Objective(losses.SemanticContrastiveLoss),
    "language_contrastive": Objective(losses.LanguageContrastiveLoss),
    "in_batch_ranking": Objective(losses.InBatchRankingLoss),
    "siamese_contrastive": Objective(losses.SiameseContrastiveLoss),
}
