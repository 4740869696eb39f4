"""Rows of an epoch in the shares of their languages, cut into batches of like length that repeat no text."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

WINDOW_BATCHES = 32
NEAR_BATCHES = 16


def language_shares(rows: Sequence[float], *, alpha: float | None = None) -> list[float]:
    r"""Compute the share of each language in the batches.

    .. math:: p_i = n_i^\alpha / \sum_j n_j^\alpha

    Args:
        rows: Rows :math:`n_i` of each language.
        alpha: Exponent in [0, 1], the inverse of a temperature: 1 or ``None`` leaves the data as it is, 0 makes all
            languages equal. Devlin et al. 2019 took 0.7 for multilingual BERT, Conneau et al. 2020 took 0.3 for XLM-R.

    Raises:
        ValueError: If ``alpha`` is out of range.

    Example:
        >>> language_shares([900, 100], alpha=0.5)
        [0.75, 0.25]
    """
    exponent = 1.0 if alpha is None else alpha
    if not 0 <= exponent <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha}; 1 is the data as it is, 0 all languages alike.")
    powers = [float(count) ** exponent for count in rows]
    return [power / math.fsum(powers) for power in powers]


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Divide ``total`` into whole numbers that differ from their exact share by less than one (largest remainder)."""
    exact = [total * share for share in shares]
    counts = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


def draw(rows: np.ndarray, count: int, *, epoch: int, seed: Sequence[int]) -> np.ndarray:
    """Draw the rows that one language gives to one epoch.

    They are a stretch of an endless row of shuffled passes: epoch ``e`` takes the rows from ``e · count`` to
    ``(e + 1) · count``. So a small language is repeated evenly, a large one continues where the last epoch stopped, and
    any epoch can be drawn without those before it.

    Args:
        rows: Row numbers of the language.
        count: How many to draw.
        epoch: Counted from 0.
        seed: Numbers that belong to the run and the language.
    """
    first = epoch * count
    end = first + count
    passes = range(first // len(rows), -(-end // len(rows)))
    drawn = [rows[:0]]
    for number in passes:
        drawn.append(rows[shuffled(len(rows), [*seed, number])])
    start = first - passes.start * len(rows)
    return np.concatenate(drawn)[start : start + count]


def shuffled(count: int, seed: Sequence[int]) -> np.ndarray:
    """Return a permutation that is a function of the numbers in ``seed``. *Shape:* ``(count,)``"""
    # A sequence of seeds keeps [0, 1] and [1, 0] apart, which a sum would not.
    return np.random.default_rng([number % 2**64 for number in seed]).permutation(count)


def arrange(
    order: np.ndarray,
    size: int,
    *,
    lengths: np.ndarray | None = None,
    keys: np.ndarray | None = None,
    drop_last: bool = False,
) -> tuple[list[np.ndarray], int]:
    """Cut shuffled rows into batches.

    Args:
        order: Row numbers, shuffled. *Shape:* ``(rows,)``
        size: Rows per batch.
        lengths: Length of each row of the data set. Windows of 32 batches are sorted by it before they are cut.
        keys: Keys of each row's texts, to keep equal texts apart (see :func:`keep_apart`). *Shape:* ``(rows, columns)``
        drop_last: Drop the last rows if they do not fill a batch.

    Returns:
        Batches of ``size`` rows, the last perhaps shorter, and the number of rows that :func:`keep_apart` dropped.
    """
    if drop_last:
        order = order[: len(order) // size * size]
    batches: list[np.ndarray] = []
    for start in range(0, len(order), WINDOW_BATCHES * size):
        window = order[start : start + WINDOW_BATCHES * size]
        if lengths is not None:
            window = window[lengths[window].argsort(kind="stable")]
        batches += [window[begin : begin + size] for begin in range(0, len(window), size)]
    if keys is None:
        return batches, 0
    if lengths is not None:
        # Neighboring batches then have neighboring lengths, so that rows of like length are swapped.
        last = len(batches) - (len(order) % size != 0)
        batches[:last] = sorted(batches[:last], key=lambda batch: int(lengths[batch].sum()))
    return keep_apart(batches, keys)


def keep_apart(batches: Sequence[np.ndarray], keys: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Swap rows between batches until no two rows of a batch share a text.

    Near batches are tried first, so that batches of like length stay so; ``NoDuplicatesBatchSampler`` of
    sentence-transformers fills batches from one shuffled queue and cannot respect lengths. A row whose text is already
    in every other batch is dropped, and its batch is shorter.

    Args:
        batches: Row numbers of each batch.
        keys: Keys of each row's texts, compared across columns. *Shape:* ``(data set rows, columns)``
    Returns:
        The batches, in the same order, and the number of dropped rows.
    """
    if not batches or keys.shape[1] == 0:
        return list(batches), 0
    swaps = _Swaps(batches, keys)
    unresolved = [slot for slot in swaps.conflicts() if not swaps.swap(slot)]
    unresolved = [slot for slot in unresolved if not swaps.swap(slot)]  # later swaps may have made room
    swaps.rows[unresolved] = -1
    resolved = [batch[batch >= 0] for batch in np.split(swaps.rows, swaps.starts[1:-1])]
    return resolved, len(unresolved)


class _Swaps:
    """The rows of all batches in one line of slots, cut at ``starts``, and the texts of each batch so far looked at."""

    def __init__(self, batches: Sequence[np.ndarray], keys: np.ndarray) -> None:
        sizes = [len(batch) for batch in batches]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.batch_of_slot = np.repeat(np.arange(len(batches)), sizes)
        self.rows = np.concatenate(batches)
        self.keys = keys
        self.counts: dict[int, Counter[int]] = {}
        self.cursor: dict[int, int] = {}  # text → where the last search for a batch without it stopped
        self.hopeless: set[int] = set()  # texts for which a search has failed

    def conflicts(self) -> list[int]:
        """Find the slots whose row shares a text with an earlier row of its batch."""
        keys = self.keys[self.rows]
        slots = np.repeat(np.arange(len(self.rows)), keys.shape[1])
        numbers = np.unique(keys, return_inverse=True)[1].ravel()
        # One number for batch and text together, whose first slot keeps the text.
        text_in_batch = self.batch_of_slot[slots] * (int(numbers.max(initial=0)) + 1) + numbers
        _, first, inverse = np.unique(text_in_batch, return_index=True, return_inverse=True)
        conflicting = slots != slots[first][inverse]  # a row with two equal texts does not conflict with itself
        return np.unique(slots[conflicting]).tolist()

    def swap(self, slot: int) -> bool:
        """Swap the row of ``slot`` for one that fits here, from a batch without its texts; false if there is none."""
        here = int(self.batch_of_slot[slot])
        texts = self._texts(slot)
        # Texts of the other rows of this batch; the slot's own are put back unless it is swapped.
        texts_here = self._count(here)
        _subtract(texts_here, texts)
        common = next((text for text in texts if text in texts_here), None)
        if common is None:  # an earlier swap has removed the row with the same text
            texts_here.update(texts)
            return True
        for there in self._batches_to_try(here, common):
            texts_there = self._count(there)
            if there == here or not texts_there.keys().isdisjoint(texts):
                continue
            partner = self._partner(there, slot, texts_here)
            if partner is None:
                continue
            self.cursor[common] = there
            partner_texts = self._texts(partner)
            _subtract(texts_there, partner_texts)
            texts_there.update(texts)
            texts_here.update(partner_texts)
            self.rows[slot], self.rows[partner] = self.rows[partner], self.rows[slot]
            return True
        self.hopeless.add(common)
        texts_here.update(texts)
        return False

    def _batches_to_try(self, here: int, text: int) -> Iterator[int]:
        """Yield batches around ``here``, then all from where the last search for a batch without the text stopped."""
        count = len(self.starts) - 1
        for distance in range(1, NEAR_BATCHES + 1):
            for batch in (here - distance, here + distance):
                if 0 <= batch < count:
                    yield batch
        if text not in self.hopeless:
            start = self.cursor.get(text, here)
            for step in range(count):
                yield (start + step) % count

    def _partner(self, there: int, slot: int, texts_here: Counter[int]) -> int | None:
        """Find a slot of batch ``there`` whose row fits next to these texts; the first one tried is of like length."""
        start = int(self.starts[there])
        size = int(self.starts[there + 1]) - start
        offset = slot - int(self.starts[self.batch_of_slot[slot]])
        for step in range(size):
            candidate = start + (offset + step) % size
            if texts_here.keys().isdisjoint(self._texts(candidate)):
                return candidate
        return None

    def _texts(self, slot: int) -> set[int]:
        return set(self.keys[self.rows[slot]].tolist())

    def _count(self, batch: int) -> Counter[int]:
        if batch not in self.counts:
            rows = self.rows[self.starts[batch] : self.starts[batch + 1]]
            # A row with two equal texts has the text once.
            texts_of_rows = map(set, self.keys[rows].tolist())
            self.counts[batch] = Counter(itertools.chain.from_iterable(texts_of_rows))
        return self.counts[batch]


def _subtract(counts: Counter[int], keys: set[int]) -> None:
    # A text that is gone must leave the counter, which is asked for membership.
    for key in keys:
        counts[key] -= 1
        if counts[key] == 0:
            del counts[key]
