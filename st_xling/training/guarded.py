"""What our trainers add to the host's, whichever kind of model they train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sentence_transformers.base.trainer import BaseTrainer
from torch import Tensor

from st_xling.models.adapters import has_adapters
from st_xling.training.finite import TOTAL, FiniteGuard
from st_xling.training.lora import load_adapters


class GuardedTrainer(BaseTrainer):
    """Goes before one of the host's trainers among the bases of a class.

    NaN or infinity in a loss, a gradient or a weight stops training before it is used or saved (:class:`FiniteGuard`).
    A run that is resumed from its last checkpoint makes no further step. Of checkpoints that judge alike, the latest is
    kept. Mixed precision holds for all that the loss computes. Adapters that peft has put into the model are restored
    without their base model.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.finite = FiniteGuard()
        self.add_callback(self.finite)

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        """What a checkpoint keeps, by name."""
        return self.model.named_parameters()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step >= self.state.max_steps:
            # The host asks after a step: resumed from the last checkpoint, it would make one more.
            self.control.should_training_stop = True
            return None
        return super()._run_epoch(*args, **kwargs)

    def autocast_smart_context_manager(self, *args: Any, **kwargs: Any) -> Any:
        return self.accelerator.autocast()

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        result = super().compute_loss(*args, **kwargs)
        loss = result[0] if isinstance(result, tuple) else result
        if self.model.training:
            self.finite.see_losses({TOTAL: loss})
        return result

    def track_loss_components(self, loss: dict[str, Tensor]) -> None:
        super().track_loss_components(loss)
        if self.model.training:
            self.finite.see_losses(loss)

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        self.finite.see_gradient_norm(norm if self.accelerator.scaler is None else None)
        return norm

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.finite.check_weights(self.args, self.state, self.trained_weights())
        super()._save_checkpoint(*args, **kwargs)

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
