"""Exact shares: how many rows each form takes, and which, at random but evenly among the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def even_counts(total: int, parts: int) -> list[int]:
    """``total`` over ``parts``, as evenly as whole numbers can be; the first parts take the remainder.

    Example:
        >>> even_counts(8, 3)
        [3, 3, 2]
    """
    return [total // parts + (part < total % parts) for part in range(parts)]


def spread(counts: Sequence[int], labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A form for each row: form ``f`` exactly ``counts[f]`` times, in like proportion for either label.

    Rows are shuffled within their label and meet a sequence in which every form recurs at even distances; so among the
    rows of one label the share of a form is its share overall, but for a row or two where forms are few.

    Args:
        counts: Rows of each form; they sum to the number of rows.
        labels: 0 or 1. *Shape:* ``(rows,)``
        rng: What shuffles.
    Returns:
        Numbers of forms. *Shape:* ``(rows,)``
    """
    assert sum(counts) == len(labels), (counts, len(labels))
    forms = np.repeat(np.arange(len(counts)), counts)
    due = np.concatenate([np.zeros(0), *((np.arange(count) + 0.5) / count for count in counts if count)])
    shuffled = rng.permutation(len(labels))
    rows = shuffled[np.argsort(-np.asarray(labels)[shuffled], kind="stable")]
    chosen = np.empty(len(labels), np.int64)
    chosen[rows] = forms[np.argsort(due, kind="stable")]
    return chosen


def share_counts(total: int, shares: Sequence[float]) -> list[int]:
    """``total`` cut by shares that sum to 1, each part at least 1; largest remainders round up, earlier ones first.

    Raises:
        ValueError: A share is not above 0, they do not sum to 1, or there are fewer things than parts.
    """
    if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"shares must be above 0 and sum to 1: got {', '.join(f'{share:g}' for share in shares)}.")
    if total < len(shares):
        raise ValueError(f"cannot cut {total} into {len(shares)} parts of at least one; ask for fewer parts.")
    counts = [max(1, int(total * share + 1e-9)) for share in shares]
    while sum(counts) != total:
        step = 1 if sum(counts) < total else -1
        gaps = [
            step * (total * share - count) if step > 0 or count > 1 else -np.inf for share, count in zip(shares, counts)
        ]
        counts[int(np.argmax(gaps))] += step
    return counts
