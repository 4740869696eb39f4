"""A trainer that computes the terms of a step one after the other, and adds their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from st_xling.training.collator import CrossLingualDataCollator
from st_xling.training.retriever.terms import TermByTermLoss
from st_xling.training.trainer import CrossLingualTrainer


class RetrievalCollator(CrossLingualDataCollator):
    """Batches whose columns may be of unequal length: cells that are ``None`` are left out."""

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = {}
        for name in features[0] if features else ():
            batch |= super().__call__([{name: row[name]} for row in features if row[name] is not None])
        return batch


class RetrievalTrainer(CrossLingualTrainer):
    """:class:`CrossLingualTrainer` with a backward pass for each term of a :class:`TermByTermLoss`.

    Gradients add up in the parameters until the optimiser's step, so the step is that of one backward pass through the
    sum, in the memory of the largest term.

    Args:
        one_by_one: Whether to; otherwise there is one backward pass.
    """

    data_collator_class = RetrievalCollator

    def __init__(self, *args: Any, one_by_one: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.one_by_one = one_by_one

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:
        loss = self.loss
        if not self.one_by_one or not isinstance(loss, TermByTermLoss):
            return super().training_step(model, inputs, *args, **kwargs)
        values = []
        try:
            for name in loss.names:
                loss.only = name
                values.append(super().training_step(model, dict(inputs), *args, **kwargs))
        finally:
            loss.only = None
        return torch.stack(values).sum()

    def track_loss_components(self, loss: dict[str, Tensor]) -> None:
        super().track_loss_components(loss)
        own: Any = self.loss
        if isinstance(own, TermByTermLoss) and own.only not in (None, own.names[0]):
            # The host divides by its calls, and a step has one for each term.
            self.accum_loss_components["train" if self.model.training else "eval"]["steps"] -= 1
