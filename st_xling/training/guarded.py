"""What our trainers add to the host's, whichever kind of model they train."""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.trainer import BaseTrainer
from torch import Tensor

from st_xling.models.lora import has_adapters, load_adapters
from st_xling.training.finite_trainer import FiniteTrainer


class GuardedTrainer(FiniteTrainer, BaseTrainer):
    """Goes before one of the host's trainers among the bases of a class.

    Besides what :class:`FiniteTrainer` does: of checkpoints that judge alike, the latest is kept. Mixed precision holds
    for all that the loss computes. Adapters that peft has put into the model are restored without their base model.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
    """

    def autocast_smart_context_manager(self, *args: Any, **kwargs: Any) -> Any:
        return self.accelerator.autocast()

    def track_loss_components(self, loss: dict[str, Tensor]) -> None:
        super().track_loss_components(loss)
        if self.model.training:
            self.finite.see_losses(loss)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """The host keeps the first of equal checkpoints; of two that judge alike, the later has learned more."""
        name = str(self.args.metric_for_best_model)
        value = metrics.get(name, metrics.get(f"eval_{name}"))
        if value is not None and value == self.state.best_metric:
            self.state.best_metric = None
        return super()._determine_best_metric(metrics, trial)

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        if has_adapters(self.model):
            load_adapters(getattr(self.model, "_orig_mod", self.model), checkpoint_path)
        else:
            super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)
