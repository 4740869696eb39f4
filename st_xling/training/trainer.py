"""The host's trainer, which also remembers what the loss has learned."""

from __future__ import annotations

import logging
from typing import Any

from sentence_transformers import SentenceTransformerTrainer
from torch import nn

from st_xling.training.collator import CrossLingualDataCollator
from st_xling.training.loss_state import load_loss_state, save_loss_state

logger = logging.getLogger(__name__)


class CrossLingualTrainer(SentenceTransformerTrainer):
    """``SentenceTransformerTrainer`` that saves and restores the loss's own parameters with every checkpoint.

    Takes the host's arguments. Besides the optimised weights it keeps, in each checkpoint, ``loss.safetensors`` with
    the heads that the loss owns; resuming restores them, so that a killed and resumed run ends where an undisturbed
    one does. Columns ``source_language`` and ``target_language`` reach the losses as ids.

    Raises:
        ValueError: The data set has too few text columns for the loss, or is empty.
    """

    data_collator_class = CrossLingualDataCollator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        languages = next((found for loss in self._losses() if (found := _languages(loss))), None)
        if languages and isinstance(self.data_collator, CrossLingualDataCollator):
            self.data_collator.languages = {name: number for number, name in enumerate(languages)}
        self._check_data()

    def _losses(self) -> list[nn.Module]:
        return list(self.loss.values()) if isinstance(self.loss, dict) else [self.loss]

    def _all_losses(self) -> nn.Module:
        return nn.ModuleDict(self.loss) if isinstance(self.loss, dict) else self.loss

    def _check_data(self) -> None:
        data = self.train_dataset
        for part in data.values() if isinstance(data, dict) else [data]:
            if part is not None and hasattr(part, "__len__") and len(part) == 0:
                raise ValueError("training needs at least one pair: the data set is empty; check the reader's report.")

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.args.should_save:
            save_loss_state(self._all_losses(), self.model, output_dir)
        super()._save_optimizer_and_scheduler(output_dir)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """The host keeps the first of equal checkpoints; of two that judge alike, the later has learned more."""
        name = str(self.args.metric_for_best_model)
        value = metrics.get(name, metrics.get(f"eval_{name}"))
        if value is not None and value == self.state.best_metric:
            self.state.best_metric = None
        return super()._determine_best_metric(metrics, trial)

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)
        load_loss_state(self._all_losses(), self.model, checkpoint_path)


def _languages(loss: nn.Module) -> list[str] | None:
    """The language names that a loss, or a term of a sum, was built with."""
    return next((names for part in loss.modules() if (names := getattr(part, "languages", None))), None)
