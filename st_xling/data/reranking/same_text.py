"""Which rows say the same, as far as their texts show: equal in any one language is the same in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from st_xling.data.leak_key import text_hashes


def same_text_classes(columns: Iterable[Sequence[str]]) -> np.ndarray:
    """A number for each row, shared by rows whose texts have the same leak key in any one column, and so on from these.

    Args:
        columns: One aligned column of texts for each language. *Shape:* ``(rows,)`` each
    Returns:
        Classes 0, 1, … in the order of their first rows. *Shape:* ``(rows,)``
    Example:
        >>> same_text_classes([["The cat.", "A dog", "the cat"], ["Die Katze", "Ein Hund", "Der Kater"]]).tolist()
        [0, 1, 0]
    """
    return joined_classes([text_hashes(column) for column in columns])


def same_text_keys(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """A key for each of these classes, which other data with the same texts give too.

    Args:
        columns: One aligned column of texts for each language. *Shape:* ``(rows,)`` each
    Returns:
        The hash of the leak key of the class's first text in the first language, uint64. *Shape:* ``(rows,)``
    """
    hashes = [_column_hashes(column) for column in columns]
    classes = joined_classes(hashes)
    first = np.unique(classes, return_index=True)[1]
    return hashes[0][first][classes]


def joined_classes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The same of numbers: rows that share a number in any one column are of one class. *Shape:* ``(rows,)`` each"""
    rows = len(columns[0])
    groups = [_grouped(column) for column in columns] if rows else []
    first = np.arange(rows)  # of each row: the smallest row that it is known to be joined with
    while True:
        before = first
        for order, starts in groups:
            least = np.minimum.reduceat(first[order], starts)
            joined = np.empty_like(first)
            joined[order] = np.repeat(least, np.diff(np.append(starts, rows)))
            # What a row was joined with before is joined with its new partner too, so that long chains end soon.
            first = np.minimum(first, joined)
            np.minimum.at(first, before, first.copy())
        first = first[first]
        if np.array_equal(first, before):
            break
    return np.unique(first, return_inverse=True)[1].reshape(rows)


def _column_hashes(column: Sequence[str]) -> np.ndarray:
    known = dict(zip(distinct := dict.fromkeys(column), text_hashes(distinct).tolist()))  # negatives repeat texts
    return np.fromiter((known[text] for text in column), np.uint64, len(column))


def _grouped(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows ordered by their number, and where each number begins."""
    order = np.argsort(column, kind="stable")
    starts = np.flatnonzero(np.append(True, column[order][1:] != column[order][:-1]))
    return order, starts
