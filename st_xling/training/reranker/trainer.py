"""The host's trainer of cross-encoders, which stops at what is not a number and resumes adapters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sentence_transformers.cross_encoder import CrossEncoderTrainer

from st_xling.training.guarded import GuardedTrainer


class RankingTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds.

    Args:
        *args, **options: The host's.
        keys: Of the training rows' texts; beside equal texts, those of equal keys are kept out of each other's batches,
            by samplers that keep duplicates apart. *Shape:* ``(rows, columns)``, uint64
    """

    def __init__(self, *args: Any, keys: np.ndarray | None = None, **options: Any) -> None:
        self.row_keys = keys
        super().__init__(*args, **options)

    def get_batch_sampler(self, dataset: Any, *args: Any, **options: Any) -> Any:
        """Of the training rows; evaluators make batches of their own."""
        sampler: Any = super().get_batch_sampler(dataset, *args, **options)
        known = getattr(sampler, "keys", None)
        if self.row_keys is not None and known is not None and len(known) == len(self.row_keys):
            sampler.keys = np.concatenate([known, self.row_keys], axis=1)
        return sampler
