"""Batch samplers whose every epoch is a function of the seed and the epoch alone, so that a resumed run agrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import SequentialSampler


class ShuffledBatchSampler(DefaultBatchSampler):
    """Shuffled batches, drawn afresh from ``seed + epoch`` in each epoch.

    The host's default carries one generator through all epochs: a run resumed in its second epoch would see other
    batches than one that was never stopped. Pass the class as the training argument ``batch_sampler``.

    Args:
        dataset: A ``datasets.Dataset``.
        batch_size: Rows a batch.
        drop_last: Leave out the rows, other ones each epoch, that do not fill a batch.
        seed: Of the shuffling.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            SequentialSampler(dataset),
            batch_size=batch_size,
            drop_last=drop_last,
            valid_label_columns=valid_label_columns,
            generator=generator,
            seed=seed,
        )
        self.rows = len(dataset)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed((self.seed or 0) + self.epoch)
        order = torch.randperm(self.rows, generator=generator)
        if self.drop_last:
            order = order[: self.rows // self.batch_size * self.batch_size]
        batches = self.cut(order) if len(order) else []  # an empty tensor would split into one empty batch
        for position in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[position].tolist()

    def cut(self, order: torch.Tensor) -> list[torch.Tensor]:
        """Cut shuffled row numbers into batches. *Shape:* ``(rows,)`` → ``(batch_size,)`` each"""
        return list(order.split(self.batch_size))


class LengthGroupedBatchSampler(ShuffledBatchSampler):
    """Shuffled batches whose rows are of similar length: less padding, the same rows.

    Windows of 32 batches are sorted by characters before they are cut. The negatives of a sentence are then about as
    long as its translation, which makes ranking slightly harder.

    Args:
        dataset: A ``datasets.Dataset``; its string columns except ``*_language`` count towards the length.
    """

    window_batches = 32

    def __init__(self, dataset: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        self.lengths = torch.tensor(text_lengths(dataset))

    def cut(self, order: torch.Tensor) -> list[torch.Tensor]:
        windows = order.split(self.window_batches * self.batch_size)
        ordered = [window[self.lengths[window].argsort(stable=True)] for window in windows]
        return [batch for window in ordered for batch in window.split(self.batch_size)]


_TEXT = ("string", "large_string")  # Arrow's two kinds of text; Parquet and pandas give the second


def text_lengths(dataset: Any) -> list[int]:
    """Characters a row over all text columns of a ``datasets.Dataset``. *Shape:* ``(rows,)``"""
    columns = [name for name, kind in dataset.features.items() if getattr(kind, "dtype", None) in _TEXT]
    columns = [name for name in columns if not name.endswith("_language")]
    texts = dataset.with_format(None)
    totals = [0] * len(dataset)
    for name in columns:
        totals = [total + len(text) for total, text in zip(totals, texts[name][:])]
    return totals
