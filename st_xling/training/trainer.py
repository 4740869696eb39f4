"""The host's trainer, which also remembers what the loss has learned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from accelerate.utils import broadcast
from sentence_transformers import SentenceTransformerTrainer
from torch import Tensor, nn

from st_xling.training.collator import CrossLingualDataCollator
from st_xling.training.columns import check_columns
from st_xling.training.guarded import GuardedTrainer
from st_xling.training.loss_state import load_loss_state, own_state, save_loss_state
from st_xling.training.rounds import WholeRounds

logger = logging.getLogger(__name__)


class CrossLingualTrainer(GuardedTrainer, SentenceTransformerTrainer):
    """``SentenceTransformerTrainer`` that saves and restores the loss's own parameters with every checkpoint.

    Takes the host's arguments. Besides the optimised weights it keeps, in each checkpoint, ``loss.safetensors`` with
    the heads that the loss owns; resuming restores them, so that a killed and resumed run ends where an undisturbed
    one does. Columns ``source_language`` and ``target_language`` reach the losses as ids.

    In several processes all start with the main one's heads, every epoch is shuffled anew (the host deals out the same
    order again), and the batches at its end that do not reach every process are left out.

    Mixed precision holds for all that the loss computes: the host gives it to the model's own pass alone, and leaves
    passes and heads of token-level losses in float32. Similarities stay in float32.

    What it shares with our other trainers is in :class:`GuardedTrainer`.

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

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self.model.named_parameters()
        yield from own_state(self._all_losses(), self.model).items()

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.args.should_save:
            save_loss_state(self._all_losses(), self.model, output_dir)
        super()._save_optimizer_and_scheduler(output_dir)

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)
        load_loss_state(self._all_losses(), self.model, checkpoint_path)


def _languages(loss: nn.Module) -> list[str] | None:
    """The language names that a loss, or a term of a sum, was built with."""
    return next((names for part in loss.modules() if (names := getattr(part, "languages", None))), None)
