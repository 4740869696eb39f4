"""Each query's nearest sentence by cosine, and how often that is its translation."""

from __future__ import annotations

import numpy as np

from st_xling.utils.cosines import Embeddings, check_pair, exact_cosines, fixed_point


def nearest(queries: Embeddings, corpus: Embeddings, *, block: int = 1024) -> np.ndarray:
    """Index of the corpus vector with the highest cosine to each query; the lowest index among equals.

    Cosines are those of :mod:`st_xling.utils.cosines`, so neither ``block`` nor the place of a row changes the
    answer. At most ``block * block`` cosines are held at a time.

    Args:
        queries: Any float dtype, numpy or torch, normalised or not. *Shape:* ``(queries, dim)``
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
    for start in range(0, queries.shape[0], block):
        query_block = fixed_point(queries, start, start + block)
        rows = slice(start, start + len(query_block))
        for corpus_start in range(0, corpus.shape[0], block):
            cosines = exact_cosines(query_block, fixed_point(corpus, corpus_start, corpus_start + block))
            first = cosines.argmax(axis=1)  # numpy promises the first of equals; torch.argmax does not
            highest = cosines[np.arange(len(first)), first]
            better = highest > best[rows]  # strictly: an equal cosine in a later block has a higher index
            best[rows] = np.where(better, highest, best[rows])
            indices[rows] = np.where(better, corpus_start + first, indices[rows])
    return indices


def retrieval_accuracy(source: Embeddings, target: Embeddings) -> tuple[float, float]:
    """Share of rows whose nearest neighbour in the other language is the row's own translation (P@1).

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
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned: got {source.shape[0]} and {target.shape[0]} rows; "
            "pass one translation per sentence."
        )
    forward = nearest(source, target)
    backward = nearest(target, source)
    own = np.arange(len(forward))
    return float(np.mean(forward == own)), float(np.mean(backward == own))
