"""Distinct items drawn for each of many rows, never one that the row forbids; vectorised over the rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

logger = logging.getLogger(__name__)

ROUNDS = 50
"""Draws before the rows that still lack items are settled one by one."""


def draw_apart(
    askers: np.ndarray,
    forbidden: np.ndarray,
    items: int,
    *,
    each: int,
    hard: int = 0,
    groups: np.ndarray | None = None,
    own_groups: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """``each`` different items for every row, uniformly among those that its asker does not forbid.

    Work and memory grow with rows x each: faulty draws alone are drawn again.

    Args:
        askers: Who asks in each row, a number from 0. *Shape:* ``(rows,)``
        forbidden: Asker and item that must not meet. *Shape:* ``(forbidden, 2)``
        items: How many there are; they are 0, 1, …
        each: Items a row.
        hard: How many of them come from the row's own group, as far as it has so many.
        groups: Group of each item, numbers from 0; only with ``hard``. *Shape:* ``(items,)``
        own_groups: Group of each row, one that has items. *Shape:* ``(rows,)``
        seed: Of the draw.
    Returns:
        Items, the hard ones first. *Shape:* ``(rows, each)``
    Raises:
        ValueError: Some row has fewer than ``each`` items left.
    """
    rng = np.random.default_rng(seed)
    if not 0 <= hard <= each:
        raise ValueError(f"hard negatives must be among the {each} of each positive: got {hard}; lower it.")
    met = np.unique(forbidden[:, 0] * items + forbidden[:, 1])
    allowed = items - np.bincount(met // items if items else met, minlength=int(askers.max(initial=-1)) + 1)[askers]
    short = np.flatnonzero(allowed < each)
    if len(short):
        raise ValueError(
            f"cannot draw {each} negatives for each positive: {len(short)} of {len(askers)} have fewer passages that "
            f"are neither relevant nor a translation or duplicate of a relevant one, the fewest {allowed.min()}; "
            "lower negatives_per_positive, or add pairs."
        )
    drawn = np.full((len(askers), each), -1, np.int64)
    if hard and groups is not None and own_groups is not None:
        order = np.argsort(groups, kind="stable")
        ends = np.cumsum(np.bincount(groups))
        low, high = ends[own_groups] - np.bincount(groups)[own_groups], ends[own_groups]
        near = high - low - _met_in_group(met, items, groups, askers, own_groups)
        if (near < hard).any():
            logger.warning(
                "%s of %s positives have fewer than %d hard negatives in their group: the rest comes from elsewhere",
                f"{(near < hard).sum():,}", f"{len(near):,}", hard,
            )  # fmt: skip
        _fill(drawn, np.arange(each) < np.minimum(near, hard)[:, None], order, low, high, askers, met, items, rng)
    everywhere = np.zeros(len(askers), np.int64), np.full(len(askers), items)
    _fill(drawn, drawn < 0, np.arange(items), *everywhere, askers, met, items, rng)
    return drawn


def _fill(
    drawn: np.ndarray,
    wanted: np.ndarray,
    order: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    askers: np.ndarray,
    met: np.ndarray,
    items: int,
    rng: np.random.Generator,
) -> None:
    """Put items of ``order[low:high]`` where they are wanted, in place."""
    wanted = wanted.copy()
    rows = np.flatnonzero(wanted.any(1))
    for _ in range(ROUNDS):
        if not len(rows):
            return
        blank = wanted[rows]
        tried = order[rng.integers(low[rows, None], high[rows, None], size=blank.shape)]
        tried = np.where(blank, tried, drawn[rows])
        refused = blank & (_among(met, askers[rows, None] * items + tried) | _repeated(tried, blank))
        drawn[rows] = np.where(refused, -1, tried)
        wanted[rows] = refused
        rows = rows[refused.any(1)]
    for row in rows.tolist():
        members = order[low[row] : high[row]]
        free = ~_among(met, askers[row] * items + members) & ~np.isin(members, drawn[row])
        drawn[row, wanted[row]] = rng.permutation(members[free])[: wanted[row].sum()]


def _among(met: np.ndarray, codes: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(met, codes), max(0, len(met) - 1))
    return met[places] == codes if len(met) else np.zeros(codes.shape, bool)


def _repeated(values: np.ndarray, blank: np.ndarray) -> np.ndarray:
    """True where a new value is one that the row has already, or has twice now. *Shape:* ``(rows, each)``"""
    order = np.argsort(values * 2 + blank, axis=1, kind="stable")  # what is settled comes before what is new
    ordered = np.take_along_axis(values, order, 1)
    again = np.zeros(values.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
    return again


def _met_in_group(
    met: np.ndarray, items: int, groups: np.ndarray, askers: np.ndarray, own_groups: np.ndarray
) -> np.ndarray:
    """How many items of its own group each row's asker forbids. *Shape:* ``(rows,)``"""
    size = int(groups.max(initial=0)) + 1
    codes, counts = np.unique(met // items * size + groups[met % items], return_counts=True)
    asked = askers * size + own_groups
    places = np.minimum(np.searchsorted(codes, asked), max(0, len(codes) - 1))
    return np.where(codes[places] == asked, counts[places], 0) if len(codes) else np.zeros(len(askers), np.int64)


def group_numbers(groups: Sequence[object]) -> np.ndarray:
    """Groups of any kind as numbers from 0, in the order of their first items. *Shape:* ``(items,)``"""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(group, len(seen)) for group in groups], np.int64)
