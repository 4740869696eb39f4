"""Rows kept out of a stream, drawn while it passes by; and a sample of what does pass."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

MOST_ROWS = 1000
"""Of one source, whatever the share: so many tell enough, and are soon encoded."""


def check_hold_out(hold_out: float) -> None:
    """Raise ``ValueError`` unless this is a share in [0, 1) or a whole number of rows."""
    if not (0 <= hold_out < 1 or (hold_out >= 1 and float(hold_out).is_integer())):
        raise ValueError(
            f"hold_out must be a share in [0, 1) or a whole number of rows: got {hold_out:g}; 0.05 is usual."
        )


def set_apart(
    rows: Iterable[Item], hold_out: float, kept: list[Item], *, seed: int = 0, most: int = MOST_ROWS
) -> Iterator[Item]:
    """Pass rows on, but for some.

    Args:
        rows: Of a length that need not be known.
        hold_out: The share of them to keep out, no more than ``most`` rows; or, from 1 on, their number.
        kept: Where they go; complete once all others have been passed on.
        seed: Of the draw.
        most: Rows that a share may amount to.
    """
    check_hold_out(hold_out)
    draw = random.Random(seed)
    share, places = (hold_out, most) if hold_out < 1 else (1.0, int(hold_out))
    drawn = 0
    for row in rows:
        if draw.random() < share:
            drawn += 1
            if len(kept) < places:
                kept.append(row)
                continue
            place = draw.randrange(drawn)
            if place < places:  # the one that it replaces is passed on in its stead
                kept[place], row = row, kept[place]
        yield row


def sampled(rows: Iterable[Item], size: int, sample: list[Item], *, seed: int = 0) -> Iterator[Item]:
    """Pass all rows on, and put ``size`` of them, each as likely as any other, into ``sample``."""
    draw = random.Random(seed)
    for number, row in enumerate(rows, 1):
        if len(sample) < size:
            sample.append(row)
        elif (place := draw.randrange(number)) < size:
            sample[place] = row
        yield row
