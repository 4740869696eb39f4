"""Negatives: other rows' passages, with a seed, never one of the positive's meaning."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from st_xling.data.reranking.pairs import AlignedPairs, joined_classes, pick
from st_xling.data.text_columns import find_sorted, text_hashes

logger = logging.getLogger(__name__)

_ROUNDS = 50  # of draws, before the rows that still lack items are filled one by one


def draw_negatives(
    pairs: AlignedPairs, *, negatives_per_positive: int = 1, symmetric: bool = False, seed: int = 0
) -> np.ndarray:
    """For each positive pair, rows whose passages are not relevant to its query.

    A row never serves whose passage is, under the leak key and in *any* language, the positive's own, another relevant
    one of the same query (the same in any language), or the query itself. The negatives of a positive differ from each
    other in the same sense. Each distinct passage is as likely as any other, however often it occurs.

    Args:
        pairs: Pairs in any number of languages, labeled negatives among them or not.
        negatives_per_positive: Drawn for each row of label 1.
        symmetric: Query and passage are of one kind, as in paraphrase identification: whoever is a paraphrase of a
            paraphrase, as query or as passage, counts as the same.
        seed: Of the draw.
    Returns:
        Row numbers, in the order of the rows of label 1. *Shape:* ``(positives, negatives_per_positive)``
    Raises:
        ValueError: Some positive has too few other passages.
    """
    if negatives_per_positive < 0:
        raise ValueError(f"negatives_per_positive must be 0 or more: got {negatives_per_positive}.")
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    queries, passages, forbidden = _classes(pairs, positives, symmetric)
    items, first_rows = np.unique(passages, return_index=True)
    places, known = find_sorted(items, forbidden[:, 1])
    met = np.stack([forbidden[known, 0], places[known]], axis=1)
    return first_rows[draw_apart(queries[positives], met, len(items), each=negatives_per_positive, seed=seed)]


def with_negatives(pairs: AlignedPairs, **options: Any) -> AlignedPairs:
    """The pairs as they are, then the negatives that :func:`draw_negatives` finds, positive by positive, with label 0.

    Args, Raises: as :func:`draw_negatives`.
    """
    drawn = draw_negatives(pairs, **options)
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    rows = range(len(pairs))
    return AlignedPairs(
        pick(pairs.queries, [*rows, *np.repeat(positives, drawn.shape[1]).tolist()]),
        pick(pairs.passages, [*rows, *drawn.ravel().tolist()]),
        [*pairs.labels, *[0] * drawn.size],
    )


def _classes(pairs: AlignedPairs, positives: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A class for each query and each passage, and which query must not meet which passage, in classes."""
    hashed: dict[int, np.ndarray] = {}  # by identity: queries and passages of parallel text are the same lists
    for column in (*pairs.queries.values(), *pairs.passages.values()):
        if id(column) not in hashed:
            hashed[id(column)] = text_hashes(column)
    hashes = [(hashed[id(pairs.queries[code])], hashed[id(pairs.passages[code])]) for code in pairs.languages]
    rows = len(pairs)
    if symmetric:
        # Queries above passages, and one more column that joins the two of each positive.
        partner = np.arange(2 * rows, dtype=np.uint64)
        partner[rows + positives] = positives
        both = joined_classes([*(np.concatenate(columns) for columns in hashes), partner])
        queries, passages = both[:rows], both[rows:]
        return queries, passages, np.stack([queries, queries], axis=1)
    queries = joined_classes([query for query, _ in hashes])
    passages = joined_classes([passage for _, passage in hashes])
    forbidden = [np.stack([queries[positives], passages[positives]], axis=1)]
    for query, passage in hashes:  # passages that repeat the query
        texts, first = np.unique(passage, return_index=True)
        places, known = find_sorted(texts, query)
        forbidden.append(np.stack([queries[known], passages[first[places[known]]]], axis=1))
    return queries, passages, np.concatenate(forbidden)


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
    if not 0 <= hard <= each:
        raise ValueError(f"hard negatives must be among the {each} of each positive: got {hard}; lower it.")
    rng = np.random.default_rng(seed)
    # An asker and an item as one number; sorted, so that pairs can be looked up.
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

    def fill(wanted: np.ndarray, order: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Put items of ``order[low:high]``, one slice a row, where they are wanted."""
        wanted = wanted.copy()
        rows = np.flatnonzero(wanted.any(1))
        for _ in range(_ROUNDS):
            if not len(rows):
                return
            blank = wanted[rows]
            tried = order[rng.integers(low[rows, None], high[rows, None], size=blank.shape)]
            tried = np.where(blank, tried, drawn[rows])
            refused = blank & (find_sorted(met, askers[rows, None] * items + tried)[1] | _repeated(tried, blank))
            drawn[rows] = np.where(refused, -1, tried)
            wanted[rows] = refused
            rows = rows[refused.any(1)]
        # Rows that forbid nearly everything: what is left is listed.
        for row in rows.tolist():
            members = order[low[row] : high[row]]
            free = ~find_sorted(met, askers[row] * items + members)[1] & ~np.isin(members, drawn[row])
            drawn[row, wanted[row]] = rng.permutation(members[free])[: wanted[row].sum()]

    if hard and groups is not None and own_groups is not None:
        order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
        high = np.cumsum(sizes)[own_groups]
        low = high - sizes[own_groups]
        # Items of the own group that the asker forbids are not near enough to be drawn.
        codes, counts = np.unique(met // items * len(sizes) + groups[met % items], return_counts=True)
        places, known = find_sorted(codes, askers * len(sizes) + own_groups)
        near = high - low
        near[known] -= counts[places[known]]
        if (near < hard).any():
            logger.warning(
                "%s of %s positives have fewer than %d hard negatives in their group: the rest comes from elsewhere",
                f"{(near < hard).sum():,}", f"{len(near):,}", hard,
            )  # fmt: skip
        fill(np.arange(each) < np.minimum(near, hard)[:, None], order, low, high)
    fill(drawn < 0, np.arange(items), np.zeros(len(askers), np.int64), np.full(len(askers), items))
    return drawn


def _repeated(values: np.ndarray, blank: np.ndarray) -> np.ndarray:
    """True where a new value is one that the row has already, or has twice now. *Shape:* ``(rows, each)``"""
    order = np.argsort(values * 2 + blank, axis=1, kind="stable")  # what was drawn before comes before what is new
    ordered = np.take_along_axis(values, order, 1)
    again = np.zeros(values.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
    return again
