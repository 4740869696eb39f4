"""Batches dealt out to several processes in whole rounds, so that none waits for one that has run out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler


class WholeRounds(BatchSampler):
    """The batches of a sampler, but for those of an epoch's last round that do not reach every process.

    accelerate deals batch ``i`` to process ``i % processes`` and, as the host sets it up, some processes get one more:
    they would wait for ever for the others' negatives and gradients. Batches may be of any size.

    Args:
        batches: The host's or our batch sampler, the same in every process.
        processes: Processes that share a round.

    Raises:
        ValueError: Not one whole round.
    """

    def __init__(self, batches: Any, processes: int) -> None:
        self.batches, self.processes = batches, processes
        # accelerate tells the epoch to the sampler's sampler; without a size it deals short batches too.
        self.sampler, self.batch_size, self.drop_last = batches, None, True  # type: ignore[assignment]
        if len(self) == 0:
            raise ValueError(
                f"{processes} processes need {processes} batches an epoch: the data give {len(batches)}; lower the "
                "batch size, or train in fewer processes."
            )

    def __len__(self) -> int:
        return len(self.batches) // self.processes * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        return islice(iter(self.batches), len(self))
