"""The host's trainer, which also remembers what the loss has learned."""

from __future__ import annotations

import logging
from typing import Any

from accelerate.utils import broadcast
from sentence_transformers import SentenceTransformerTrainer
from torch import Tensor, nn

from st_xling.models.adapters import has_adapters
from st_xling.training.collator import CrossLingualDataCollator
from st_xling.training.columns import check_columns
from st_xling.training.finite import TOTAL, FiniteGuard
from st_xling.training.lora import load_adapters
from st_xling.training.loss_state import load_loss_state, own_state, save_loss_state
from st_xling.training.rounds import WholeRounds

logger = logging.getLogger(__name__)


class CrossLingualTrainer(SentenceTransformerTrainer):
    """``SentenceTransformerTrainer`` that saves and restores the loss's own parameters with every checkpoint.

    Takes the host's arguments. Besides the optimised weights it keeps, in each checkpoint, ``loss.safetensors`` with
    the heads that the loss owns; resuming restores them, so that a killed and resumed run ends where an undisturbed
    one does. Columns ``source_language`` and ``target_language`` reach the losses as ids.

    In several processes all start with the main one's heads, every epoch is shuffled anew (the host deals out the same
    order again), and the batches at its end that do not reach every process are left out.

    Mixed precision holds for all that the loss computes: the host gives it to the model's own pass alone, and leaves
    passes and heads of token-level losses in float32. Similarities stay in float32.

    NaN or infinity in a loss, a gradient or a weight stops training before it is used or saved (:class:`FiniteGuard`).
    Adapters that peft has put into the model are restored without their base model.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
        ValueError: The data set has too few text columns for the loss, or is empty; in several processes, fewer batches
            than processes, or a loss for each data set: processes must have the same loss in the same step.
    """

    data_collator_class = CrossLingualDataCollator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        languages = next((found for loss in self._losses() if (found := _languages(loss))), None)
        if languages and isinstance(self.data_collator, CrossLingualDataCollator):
            self.data_collator.languages = {name: number for number, name in enumerate(languages)}
        self._check_data()
        self.finite = FiniteGuard()
        self.add_callback(self.finite)

    def _losses(self) -> list[nn.Module]:
        return list(self.loss.values()) if isinstance(self.loss, dict) else [self.loss]

    def _all_losses(self) -> nn.Module:
        return nn.ModuleDict(self.loss) if isinstance(self.loss, dict) else self.loss

    def _check_data(self) -> None:
        data = self.train_dataset
        for part in data.values() if isinstance(data, dict) else [data]:
            if part is not None and hasattr(part, "__len__") and len(part) == 0:
                raise ValueError("training needs at least one pair: the data set is empty; check the reader's report.")
        for name, part in data.items() if isinstance(data, dict) else [("", data)]:
            check_columns(self.loss[name] if isinstance(self.loss, dict) else self.loss, part)
        if isinstance(self.loss, dict) and self.args.world_size > 1:
            raise ValueError(
                f"{self.args.world_size} processes share their negatives, so all need the same loss in a step: got "
                "a loss for each data set; train in one process, or with one loss."
            )

    def get_batch_sampler(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        sampler = super().get_batch_sampler(dataset, *args, **kwargs)
        return sampler if isinstance(self.train_dataset, dict) else self._in_rounds(sampler)

    def get_multi_dataset_batch_sampler(self, *args: Any, **kwargs: Any) -> Any:
        return self._in_rounds(super().get_multi_dataset_batch_sampler(*args, **kwargs))

    def _in_rounds(self, sampler: Any) -> Any:
        # The host evens out batches when it evaluates and not when it trains.
        if sampler is None or self.args.world_size == 1 or self.accelerator.even_batches:
            return sampler
        return WholeRounds(sampler, self.args.world_size)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        if self.args.world_size > 1:
            for tensor in own_state(self._all_losses(), self.model).values():
                tensor.data.copy_(broadcast(tensor.data))
        return super().train(*args, **kwargs)

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

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        norm = super()._clip_grad_norm(model)
        self.finite.see_gradient_norm(norm if self.accelerator.scaler is None else None)
        return norm

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        owned = own_state(self._all_losses(), self.model)
        self.finite.check_weights(self.args, self.state, [*self.model.named_parameters(), *owned.items()])
        super()._save_checkpoint(*args, **kwargs)

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
        if has_adapters(self.model):
            load_adapters(getattr(self.model, "_orig_mod", self.model), checkpoint_path)
        else:
            super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)
        load_loss_state(self._all_losses(), self.model, checkpoint_path)


def _languages(loss: nn.Module) -> list[str] | None:
    """The language names that a loss, or a term of a sum, was built with."""
    return next((names for part in loss.modules() if (names := getattr(part, "languages", None))), None)
