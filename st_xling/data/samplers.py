"""Batch samplers whose every epoch is a function of the seed and the epoch alone, so that a resumed run agrees."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.util.distributed import get_world_size
from torch.utils.data import SequentialSampler

from st_xling.data.balance import apportion, check_balance, draw, language_shares, pair_rows
from st_xling.data.batches import arrange
from st_xling.data.text_columns import row_keys, text_lengths

logger = logging.getLogger(__name__)


class ShuffledBatchSampler(DefaultBatchSampler):
    """Shuffled batches, drawn afresh from ``seed + epoch`` in each epoch.

    The default of sentence-transformers carries one generator through all epochs: a run resumed in its second epoch
    would see other batches than one that was never stopped. Pass the class as the training argument ``batch_sampler``;
    for other options, ``functools.partial(ShuffledBatchSampler, alpha=0.5)``.

    Where several processes share a step, their batches are cut from one that is as many times as large: they are of one
    pair together, of like length together, and share no text with one another.

    Args:
        dataset: A ``datasets.Dataset``.
        batch_size: Rows a batch.
        drop_last: Leave out the rows, other ones each epoch, that do not fill a batch.
        valid_label_columns: Columns that hold no sentences.
        seed: Of the shuffling.
        alpha: Balance languages, see :func:`language_shares`. An epoch is as long as the data set all the same: small
            languages are repeated in it, large ones come in part, another part each time.
        temperature: The same, as 1 / ``alpha``.
        one_pair: Every batch holds a single pair of languages. A pair with fewer rows than a batch has one short batch.
        keep_duplicates_apart: No two rows of a batch share a text. See :func:`keep_apart`.
        processes: Processes that share a step; ``None``: as in ``torch.distributed``.
    Raises:
        ValueError: Options out of range; no language columns that the options need; with ``one_pair``, a pair with
            fewer rows than processes.
    """

    lengths: np.ndarray | None = None

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
        *,
        alpha: float | None = None,
        temperature: float | None = None,
        one_pair: bool = False,
        keep_duplicates_apart: bool = True,
        processes: int | None = None,
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
        self.one_pair = one_pair
        self.processes = get_world_size() if processes is None else processes
        self.balanced = check_balance(alpha, temperature) != 1
        self.keys = row_keys(dataset, without=valid_label_columns or ()) if keep_duplicates_apart else None
        self.pairs = pair_rows(dataset) if self.rows and (one_pair or self.balanced) else {}
        counts = [len(rows) for rows in self.pairs.values()]
        shares = language_shares(counts, alpha=alpha, temperature=temperature) if counts else []
        self.quotas = apportion(self.rows, shares) if self.balanced else counts
        self.warned = False
        self._check_pairs()

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed((self.seed or 0) + self.epoch)
        whole: list[np.ndarray] = []
        short: list[np.ndarray] = []
        left_out = 0
        for order in self._sections(generator):
            drop_last = self._drops(len(order))
            batches, more = arrange(order, self.step_rows, lengths=self.lengths, keys=self.keys, drop_last=drop_last)
            left_out += more
            last = bool(batches) and not drop_last and len(order) % self.step_rows != 0
            short += batches[len(batches) - last :]
            whole += batches[: len(batches) - last]
        self._warn(left_out)
        # Several processes want all batches but the last ones to be full; one mixes them in.
        groups = [whole + short] if self.processes == 1 else [whole, short]
        for batches in groups:
            for position in torch.randperm(len(batches), generator=generator).tolist():
                yield from self._shares(batches[position])

    def __len__(self) -> int:
        sections = self.quotas if self.one_pair else [self.rows]
        return self.processes * sum(
            rows // self.step_rows if self._drops(rows) else -(-rows // self.step_rows) for rows in sections
        )

    @property
    def step_rows(self) -> int:
        """Rows of a batch of all processes together."""
        return self.batch_size * self.processes

    def _sections(self, generator: torch.Generator) -> list[np.ndarray]:
        """The rows of the epoch, shuffled, in as many parts as must not be mixed."""
        if not self.balanced and not self.one_pair:
            return [torch.randperm(self.rows, generator=generator).numpy()]
        drawn = [
            draw(rows, quota, epoch=self.epoch, seed=[self.seed or 0, number])
            for number, (rows, quota) in enumerate(zip(self.pairs.values(), self.quotas))
        ]
        if self.one_pair:
            return drawn
        mixed = np.concatenate(drawn) if drawn else np.zeros(0, np.int64)
        return [mixed[torch.randperm(len(mixed), generator=generator).numpy()]]

    def _drops(self, rows: int) -> bool:
        """Return whether rows that do not fill a batch are dropped; a pair that fills none at all has a short one."""
        return self.drop_last and not (self.one_pair and rows < self.step_rows)

    def _shares(self, batch: np.ndarray) -> list[list[int]]:
        """The batches of the processes, one after the other, as accelerate deals them out; all of one size."""
        rows = len(batch) // self.processes
        return [batch[start : start + rows].tolist() for start in range(0, rows * self.processes, rows or 1)]

    def _warn(self, left_out: int) -> None:
        if left_out and not self.warned:
            self.warned = True
            logger.warning(
                "%s of %s rows share a text with more rows than there are batches to keep them apart: they are left "
                "out of this epoch, and their batches are shorter. Remove repeated rows, lower batch_size, or switch "
                "keep_duplicates_apart off.",
                f"{left_out:,}",
                f"{self.rows:,}",
            )

    def _check_pairs(self) -> None:
        quotas = zip(self.pairs, self.quotas)
        small = [f"{'-'.join(pair)} ({quota})" for pair, quota in quotas if 0 < quota < self.processes]
        if self.one_pair and small:
            raise ValueError(
                f"batches of one pair need a row of it for each of {self.processes} processes: got {', '.join(small)}; "
                "mix the batches, or leave these out."
            )
        if not self.quotas or min(self.quotas) > 0:
            return
        none = ["-".join(pair) for pair, quota in zip(self.pairs, self.quotas) if not quota]
        logger.warning("%s: too few rows to come up in an epoch of %d", ", ".join(none), self.rows)


class LengthGroupedBatchSampler(ShuffledBatchSampler):
    """Shuffled batches whose rows are of similar length: less padding, the same rows.

    Windows of 32 batches are sorted by characters before they are cut. The negatives of a sentence are then about as
    long as its translation, which makes ranking slightly harder.

    Args:
        dataset: A ``datasets.Dataset``; its string columns except ``*_language`` count towards the length.
        **options: As of :class:`ShuffledBatchSampler`.
    """

    def __init__(self, dataset: Any, *args: Any, **options: Any) -> None:
        super().__init__(dataset, *args, **options)
        self.lengths = np.asarray(text_lengths(dataset))
