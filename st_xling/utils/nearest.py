"""Each query's nearest sentence by cosine, and how often that is its translation: P@1, P@N, mteb's weighted F1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from st_xling.utils.cosines import Embeddings, check_pair, rounded_cosines, unit_vectors

_BLOCK = 1024
"""Rows of either matrix that are compared at a time."""


def nearest(queries: Embeddings, corpus: Embeddings, *, block: int = _BLOCK) -> np.ndarray:
    """Index of the corpus vector with the highest cosine to each query; the lowest index among equals.

    Cosines are those of :mod:`st_xling.utils.cosines`, so neither ``block`` nor the place of a row changes the
    answer. At most ``block * block`` cosines are held at a time.

    Args:
        queries: Any float dtype, numpy or torch, normalized or not. *Shape:* ``(queries, dim)``
        corpus: Vectors to search. *Shape:* ``(corpus, dim)``
        block: Rows of either matrix compared at a time.
    Returns:
        Corpus indices, int64. *Shape:* ``(queries,)``
    Raises:
        ValueError: On an empty matrix, unequal dims, or rows that are zero or not finite.
    Example:
        >>> nearest(np.array([[1.0, 0.1], [0.0, 2.0]]), np.eye(2)).tolist()
        [0, 1]
    """
    if block < 1:
        raise ValueError(f"block must be at least 1 row: got {block}; leave it out for the default.")
    check_pair(queries, corpus, "queries", "corpus")
    best = np.full(queries.shape[0], -np.inf, dtype=np.float32)
    indices = np.zeros(queries.shape[0], dtype=np.int64)
    for rows, start, cosines in _cosine_blocks(queries, corpus, block):
        first = cosines.argmax(axis=1)  # numpy promises the first of equals; torch.argmax does not
        highest = cosines[np.arange(len(first)), first]
        better = highest > best[rows]  # strictly: an equal cosine in a later block has a higher index
        best[rows] = np.where(better, highest, best[rows])
        indices[rows] = np.where(better, start + first, indices[rows])
    return indices


def nearest_both_ways(source: Embeddings, target: Embeddings) -> tuple[np.ndarray, np.ndarray]:
    """The :func:`nearest` target of each source, and the other way around. *Shape of each:* ``(rows,)``"""
    return nearest(source, target), nearest(target, source)


def translation_ranks(queries: Embeddings, corpus: Embeddings) -> np.ndarray:
    """Count the corpus vectors that are nearer to query ``i`` than row ``i``: 0 where that is the nearest.

    Of equal cosines the lowest index comes first, as in :func:`nearest`.

    Args:
        queries: Any float dtype, numpy or torch, normalized or not. *Shape:* ``(pairs, dim)``
        corpus: Their translations, row-aligned. *Shape:* ``(pairs, dim)``
    Returns:
        int64. *Shape:* ``(pairs,)``
    Raises:
        ValueError: On sides of unequal length or width, empty ones, or rows that are zero or not finite.
    Example:
        >>> translation_ranks(np.array([[1.0, 0.1], [1.0, 0.2]]), np.eye(2)).tolist()
        [0, 1]
    """
    if queries.shape[0] != corpus.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned: got {queries.shape[0]} and {corpus.shape[0]} rows; "
            "pass one translation per sentence."
        )
    check_pair(queries, corpus, "queries", "corpus")
    ranks = np.zeros(queries.shape[0], dtype=np.int64)
    blocks = [
        np.einsum("ij,ij->i", *(unit_vectors(rows, start, start + _BLOCK) for rows in (queries, corpus)))
        for start in range(0, len(ranks), _BLOCK)
    ]
    own = rounded_cosines(np.concatenate(blocks))  # equal to those below
    for rows, start, cosines in _cosine_blocks(queries, corpus, _BLOCK):
        mine = own[rows, None]
        earlier = np.arange(start, start + cosines.shape[1]) < np.arange(rows.start, rows.stop)[:, None]
        ranks[rows] += ((cosines > mine) | ((cosines == mine) & earlier)).sum(axis=1)
    return ranks


def _cosine_blocks(queries: Embeddings, corpus: Embeddings, block: int) -> Iterator[tuple[slice, int, np.ndarray]]:
    """All cosines, block by block: rows of the queries, the first row of the corpus, and the cosines between them."""
    for start in range(0, queries.shape[0], block):
        query_block = unit_vectors(queries, start, start + block)
        for corpus_start in range(0, corpus.shape[0], block):
            cosines = rounded_cosines(query_block @ unit_vectors(corpus, corpus_start, corpus_start + block).T)
            yield slice(start, start + len(query_block)), corpus_start, cosines


def retrieval_accuracy(source: Embeddings, target: Embeddings) -> tuple[float, float]:
    """Share of rows whose nearest neighbor in the other language is the row's own translation (P@1).

    A hit is index ``i`` retrieving index ``i``, LASER's rule: of two equal sentences only the first can be found.

    Args:
        source: *Shape:* ``(pairs, dim)``
        target: Translations, row-aligned. *Shape:* ``(pairs, dim)``
    Returns:
        Fractions in [0, 1]: source finds target, target finds source.
    Raises:
        ValueError: As :func:`nearest`, and when there are different numbers of rows.
    Source:
        Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings", section 4.4.
    """
    forward, backward = precision_at(source, target, at=(1,))
    return forward[1], backward[1]


def precision_at(
    source: Embeddings, target: Embeddings, *, at: Sequence[int] = (1, 5)
) -> tuple[dict[int, float], dict[int, float]]:
    """Share of rows whose translation is among the N nearest by cosine, in both directions.

    Args:
        source: *Shape:* ``(pairs, dim)``
        target: Translations, row-aligned. *Shape:* ``(pairs, dim)``
        at: Values of N; one of at least the number of pairs gives 1.
    Returns:
        Fractions in [0, 1] by N: source finds target, target finds source.
    Raises:
        ValueError: As :func:`translation_ranks`; an N below 1.
    Source:
        Huang et al. 2023 (mBERT-SF), equation 4, from Chinese to Vietnamese.
    """
    if not at or min(at) < 1:
        raise ValueError(f"at must hold numbers of candidates, 1 or more: got {tuple(at)}.")
    forward, backward = translation_ranks(source, target), translation_ranks(target, source)
    return {n: float(np.mean(forward < n)) for n in at}, {n: float(np.mean(backward < n)) for n in at}


def weighted_f1(found: ArrayLike) -> float:
    r"""F1 of "which sentence did row i find?" read as classification into as many classes as there are sentences.

    mteb takes row :math:`i`'s own number as its class and the number of its nearest neighbor as the prediction, and
    calls scikit-learn's ``f1_score(average="weighted", zero_division=0)``. Each class has one member, so with
    :math:`c_i` the rows that found sentence :math:`i`

    .. math:: \frac{1}{n} \sum_{i=1}^{n} \frac{2\,[\,\mathrm{found}_i = i\,]}{1 + c_i}

    A hit counts in full only where no other row found the same sentence: it is at most the accuracy (P@1), and
    the two agree where every sentence is found at most once. There are no distractors and no threshold, so it is not
    the F1 of mining, whatever the data set is called.

    Args:
        found: Index of each row's nearest neighbor. *Shape:* ``(rows,)``
    Returns:
        A fraction in [0, 1].
    Source:
        mteb 2.26.24, ``abstasks/text/bitext_mining.py``, method ``_compute_metrics``.
    Example:
        >>> round(weighted_f1([0, 0, 2]), 4)
        0.5556
    """
    indices = np.asarray(found, dtype=np.int64)
    if indices.ndim != 1 or not len(indices):
        raise ValueError(f"found must be a list of at least one index: got shape {indices.shape}.")
    # Indices beyond the rows, which a larger corpus would have, are no class of any row.
    counts = np.bincount(indices, minlength=len(indices))[: len(indices)]
    hits = indices == np.arange(len(indices))
    return float(np.mean(2 * hits / (1 + counts)))
