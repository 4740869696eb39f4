"""Negatives: other rows' passages, with a seed, never one that says what the positive says."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from st_xling.data.leak_key import text_hashes
from st_xling.data.reranking.aligned import AlignedPairs
from st_xling.data.reranking.draw_apart import draw_apart, group_numbers
from st_xling.data.reranking.same_text import joined_classes


def draw_negatives(
    pairs: AlignedPairs,
    *,
    negatives_per_positive: int = 1,
    hard_negatives: int = 0,
    groups: Sequence[Hashable] | None = None,
    symmetric: bool = False,
    seed: int = 0,
) -> np.ndarray:
    """For each positive pair, rows whose passages are not relevant to its query.

    A row never serves whose passage is, under the leak key and in *any* language, the positive's own, another relevant
    one of the same query (the same in any language), or the query itself. The negatives of a positive differ from each
    other in the same sense. Each distinct passage is as likely as any other, however often it occurs.

    Args:
        pairs: Pairs in any number of languages, labelled negatives among them or not.
        negatives_per_positive: Drawn for each row of label 1.
        hard_negatives: How many of them come from the positive's own group (an article, say), as far as it has them.
        groups: Group of each row; with ``hard_negatives``. *Shape:* ``(pairs,)``
        symmetric: Query and passage are of one kind, as in paraphrase identification: whoever is a paraphrase of a
            paraphrase, on whichever side, counts as the same.
        seed: Of the draw.
    Returns:
        Row numbers, in the order of the rows of label 1. *Shape:* ``(positives, negatives_per_positive)``
    Raises:
        ValueError: Some positive has too few other passages; ``groups`` are missing or of another length.
    """
    if negatives_per_positive < 0:
        raise ValueError(f"negatives_per_positive must be 0 or more: got {negatives_per_positive}.")
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    queries, passages, forbidden = _classes(pairs, positives, symmetric)
    items, first_rows, numbers = np.unique(passages, return_index=True, return_inverse=True)
    numbers = numbers.reshape(len(pairs))
    places = np.minimum(np.searchsorted(items, forbidden[:, 1]), max(0, len(items) - 1))
    known = items[places] == forbidden[:, 1] if len(items) else np.zeros(len(forbidden), bool)
    of_items = None
    if hard_negatives:
        if groups is None or len(groups) != len(pairs):
            raise ValueError(
                f"hard negatives need the group of each of the {len(pairs)} pairs: got "
                f"{'none' if groups is None else len(groups)}; pass groups, or hard_negatives=0."
            )
        of_items = group_numbers([groups[row] for row in first_rows.tolist()])
    drawn = draw_apart(
        queries[positives],
        np.stack([forbidden[known, 0], places[known]], axis=1),
        len(items),
        each=negatives_per_positive,
        hard=hard_negatives,
        groups=of_items,
        own_groups=None if of_items is None else of_items[numbers[positives]],
        seed=seed,
    )
    return first_rows[drawn]


def with_negatives(pairs: AlignedPairs, **options: Any) -> AlignedPairs:
    """The pairs as they are, then the negatives that :func:`draw_negatives` finds, positive by positive, with label 0.

    Args, Raises: as :func:`draw_negatives`.
    """
    drawn = draw_negatives(pairs, **options)
    asked = np.repeat(np.flatnonzero(np.asarray(pairs.labels, bool)), drawn.shape[1]).tolist()
    shown = drawn.ravel().tolist()
    return AlignedPairs(
        {code: [*texts, *(texts[row] for row in asked)] for code, texts in pairs.queries.items()},
        {code: [*texts, *(texts[row] for row in shown)] for code, texts in pairs.passages.items()},
        [*pairs.labels, *[0] * len(shown)],
    )


def _classes(pairs: AlignedPairs, positives: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A class for each query and each passage, and which query must not meet which passage, in classes."""
    hashed: dict[int, np.ndarray] = {}  # by identity: the two sides of parallel text are the same lists
    for column in (*pairs.queries.values(), *pairs.passages.values()):
        if id(column) not in hashed:
            hashed[id(column)] = text_hashes(column)
    sides = [(hashed[id(pairs.queries[code])], hashed[id(pairs.passages[code])]) for code in pairs.languages]
    rows = len(pairs)
    if symmetric:
        partner = np.arange(2 * rows, dtype=np.uint64)
        partner[rows + positives] = positives
        both = joined_classes([*(np.concatenate(side) for side in sides), partner])
        queries, passages = both[:rows], both[rows:]
        return queries, passages, np.stack([queries, queries], axis=1)
    queries = joined_classes([query for query, _ in sides])
    passages = joined_classes([passage for _, passage in sides])
    forbidden = [np.stack([queries[positives], passages[positives]], axis=1)]
    for query, passage in sides:
        texts, first = np.unique(passage, return_index=True)
        places = np.minimum(np.searchsorted(texts, query), max(0, len(texts) - 1))
        echo = np.flatnonzero(texts[places] == query) if rows else np.zeros(0, np.int64)
        forbidden.append(np.stack([queries[echo], passages[first[places[echo]]]], axis=1))
    return queries, passages, np.concatenate(forbidden)
