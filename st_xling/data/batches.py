"""Rows in some order → batches: of like length, without duplicates, the same for every process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

WINDOW_BATCHES = 32
NEAR_BATCHES = 16
SPARE_TRIES = 256
TRIES_A_ROW = 10
"""Looks for a place, over all rows together: text that is nearly all alike ends in shorter batches, not in hours."""


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
        size: Rows a batch.
        lengths: Of each row of the data set: windows of 32 batches are sorted by it before they are cut.
        keys: Of each row's texts, which are then kept apart (see :func:`keep_apart`). *Shape:* ``(rows, columns)``
        drop_last: Leave out the last rows if they do not fill a batch.
    Returns:
        Batches of ``size`` rows, the last perhaps shorter; and how many rows were left out for their texts.
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
        # The next batch in line is then the one of next length, so that swapping saves the grouping.
        last = len(batches) - (len(order) % size != 0)
        batches[:last] = sorted(batches[:last], key=lambda batch: int(lengths[batch].sum()))
    return keep_apart(batches, keys)


def keep_apart(batches: Sequence[np.ndarray], keys: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Swap rows between batches until no two rows of a batch share a text.

    Swapping keeps every batch's size and every row, and looks at near batches first, so that rows grouped by length
    stay so. A text that comes more often than there are batches cannot be placed each time: what is left over is
    replaced by other rows, and where none fits (fewer distinct texts than a batch has rows), the batch is shorter.

    Unlike ``NoDuplicatesBatchSampler`` of sentence-transformers, which fills batch after batch from one shuffled queue
    and so cannot respect lengths, this costs Python time only where batches really hold duplicates.

    Args:
        batches: Row numbers of each batch.
        keys: Keys of each row's texts, counted across columns. *Shape:* ``(data set rows, columns)``
    Returns:
        The batches, in the same order, and how many rows could not be placed.
    """
    if not batches or keys.shape[1] == 0:
        return list(batches), 0
    state = _Batches(batches, keys)
    left = [slot for slot in state.conflicts() if not state.swap(slot)]
    left = [slot for slot in left if not state.swap(slot)]  # later swaps may have made room
    # All rows without a place leave before any is replaced, so that none stands in another's way.
    for slot in left:
        state.clear(slot)
    state.reset_tries()
    for slot in left:
        state.fill(slot)
    return state.batches(), len(left)


class _Batches:
    """Batches whose rows change places: all rows in one line of slots, cut at ``starts``.

    Invariant: where ``counts`` has an entry for a batch, it counts how many rows of the batch hold each key.
    """

    def __init__(self, batches: Sequence[np.ndarray], keys: np.ndarray) -> None:
        sizes = [len(batch) for batch in batches]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(len(batches)), sizes)
        self.rows = np.concatenate(batches)
        self.all_keys = keys
        self.counts: dict[int, Counter[int]] = {}  # of the batches that have been looked into
        self.cursor: dict[int, int] = {}  # where the search for a place of a key has come to
        self.everywhere: set[int] = set()  # keys that every batch holds
        self.unfillable: set[int] = set()
        self.reset_tries()

    def reset_tries(self) -> None:
        self.tries = 10_000 + TRIES_A_ROW * len(self.rows)

    def conflicts(self) -> list[int]:
        """Slots whose row shares a text with a row before it in its batch."""
        keys = self.all_keys[self.rows]
        slots = np.repeat(np.arange(len(self.rows)), keys.shape[1])
        numbers = np.unique(keys, return_inverse=True)[1].ravel()
        # One number for batch and key together; a stable sort keeps the slots of each such number in their order.
        places = self.owner[slots] * (int(numbers.max(initial=0)) + 1) + numbers
        order = np.argsort(places, kind="stable")
        places, slots = places[order], slots[order]
        begins = np.concatenate([[True], places[1:] != places[:-1]])[: len(places)]
        first = slots[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        return np.unique(slots[slots != first]).tolist()  # a row of two equal texts is in no conflict with itself

    def swap(self, slot: int) -> bool:
        """Swap the row of ``slot`` into a batch without its texts, for a row that fits here; false if there is none."""
        here, own = int(self.owner[slot]), self._keys(slot)
        around = self._count(here)
        _remove(around, own)
        if around.keys().isdisjoint(own):  # an earlier swap took the row with the same text away
            around.update(own)
            return True
        common = next(key for key in own if key in around)
        if common not in self.everywhere and self.tries > 0:
            for there in self._elsewhere(here, common):
                others = self._count(there)
                if not others.keys().isdisjoint(own):
                    continue
                partner = self._partner(there, slot, around)
                if partner is not None:
                    theirs = self._keys(partner)
                    _remove(others, theirs)
                    others.update(own)
                    around.update(theirs)
                    self.rows[slot], self.rows[partner] = self.rows[partner], self.rows[slot]
                    return True
            rest = (self._count(batch) for batch in range(len(self.starts) - 1) if batch != here)
            if self.tries > 0 and all(common in count for count in rest):
                self.everywhere.add(common)
        around.update(own)
        return False

    def clear(self, slot: int) -> None:
        _remove(self._count(int(self.owner[slot])), self._keys(slot))
        self.rows[slot] = -1

    def fill(self, slot: int) -> None:
        """Put a row of some other batch into an empty slot, a second time, where one fits."""
        here, count = int(self.owner[slot]), len(self.rows)
        if here in self.unfillable or self.tries <= 0:
            return
        around = self._count(here)
        # Candidates are spread evenly over all slots, beginning with the next one.
        for step in range(min(SPARE_TRIES, count)):
            self.tries -= 1
            other = (slot + 1 + step * max(1, count // SPARE_TRIES)) % count
            if self.rows[other] >= 0 and around.keys().isdisjoint(self._keys(other)):
                self.rows[slot] = self.rows[other]
                around.update(self._keys(slot))
                return
        self.unfillable.add(here)

    def batches(self) -> list[np.ndarray]:
        return [batch[batch >= 0] for batch in np.split(self.rows, self.starts[1:-1])]

    def _elsewhere(self, here: int, key: int) -> Iterator[int]:
        """The near batches, nearest first; then all, going on where the last search for the same text stopped."""
        count = len(self.starts) - 1
        for distance in range(1, NEAR_BATCHES + 1):
            yield from (batch for batch in (here - distance, here + distance) if 0 <= batch < count)
        start = self.cursor.get(key, here)
        for step in range(count):
            if self.tries <= 0:
                return
            self.tries -= 1
            batch = (start + step) % count
            self.cursor[key] = batch
            if batch != here:
                yield batch

    def _partner(self, there: int, slot: int, around: Counter[int]) -> int | None:
        """A slot of ``there`` whose row fits into ``around``; first the same place as ``slot``, of like length."""
        start, end = int(self.starts[there]), int(self.starts[there + 1])
        offset = slot - int(self.starts[self.owner[slot]])
        for step in range(end - start):
            self.tries -= 1
            candidate = start + (offset + step) % (end - start)
            if around.keys().isdisjoint(self._keys(candidate)):
                return candidate
        return None

    def _keys(self, slot: int) -> set[int]:
        return set(self.all_keys[self.rows[slot]].tolist())

    def _count(self, batch: int) -> Counter[int]:
        if batch not in self.counts:
            rows = self.rows[self.starts[batch] : self.starts[batch + 1]]
            self.counts[batch] = Counter(key for row in self.all_keys[rows[rows >= 0]].tolist() for key in set(row))
        return self.counts[batch]


def _remove(counts: Counter[int], keys: set[int]) -> None:
    # A key with a count of 0 has to go, as membership is what is asked of the counts.
    for key in keys:
        counts[key] -= 1
        if counts[key] == 0:
            del counts[key]
