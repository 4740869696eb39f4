"""Rows in some order → batches: of like length, without duplicates, the same for every process."""

from __future__ import annotations

import numpy as np

from st_xling.data.duplicates import keep_apart

WINDOW_BATCHES = 32


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
