"""The host libraries' ``Trainer``, which stops at what is not a number and ends where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from transformers import Trainer

from st_xling.training.finite import TOTAL, FiniteGuard


class FiniteTrainer(Trainer):
    """``transformers.Trainer``, or what else goes after it among the bases of a class.

    NaN or infinity in a loss, a gradient or a weight stops training before it is used or saved (:class:`FiniteGuard`).
    A run that is resumed from its last checkpoint makes no further step.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.finite = FiniteGuard()
        self.add_callback(self.finite)

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        """What a checkpoint keeps, by name."""
        assert self.model is not None
        return self.model.named_parameters()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step >= self.state.max_steps:
            # The host asks after a step: resumed from the last checkpoint, it would make one more.
            self.control.should_training_stop = True
            return None
        return super()._run_epoch(*args, **kwargs)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        result = super().compute_loss(*args, **kwargs)
        loss = result[0] if isinstance(result, tuple) else result
        assert self.model is not None
        if self.model.training:
            self.finite.see_losses({TOTAL: loss})
        return result

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        self.finite.see_gradient_norm(norm if self.accelerator.scaler is None else None)
        return norm

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.finite.check_weights(self.args, self.state, self.trained_weights())
        super()._save_checkpoint(*args, **kwargs)
