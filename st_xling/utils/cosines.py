"""Cosines that do not depend on the order in which they are summed; each query's nearest sentence by them.

A float32 product may differ in its last bits with the shape of the block it is computed in. That is enough to let one
of two identical sentences win over the other by chance. Cosines that decide are therefore summed in float64 and rounded
to multiples of :math:`2^{-24}`, which float32 holds exactly: sums in another order differ by about
:math:`10^{-16}`, so they are rounded to the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike


class RowsOnDisk(Protocol):
    """Rows that are read when needed, as of an ``EmbeddingStore``: slices and int64 indices give numpy arrays."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray: ...


Embeddings: TypeAlias = "np.ndarray | torch.Tensor | RowsOnDisk"

# Rows read at a time: at common widths they stay in a processor's second-level cache.
_ROWS_AT_ONCE = 256

_BLOCK = 1024
"""Rows of either matrix that are compared at a time."""

#: Cosines are whole multiples of one by this.
STEPS = 2.0**24


def check_pair(first: Embeddings, second: Embeddings, first_name: str, second_name: str) -> None:
    """Raise unless both are non-empty matrices of equal width with finite, non-zero rows.

    Args:
        first: *Shape:* ``(n, dim)``
        second: *Shape:* ``(m, dim)``
        first_name: Name of ``first`` in errors, such as ``"source_embeddings"``.
        second_name: Name of ``second``.

    Raises:
        ValueError: Naming the side and, for bad values, the first rows concerned.
    """
    first, second = check_shapes(first, second, first_name, second_name)
    for embeddings, name in ((first, first_name), (second, second_name)):
        checked_lengths(embeddings, name)


def as_embeddings(embeddings: Any, name: str) -> Embeddings:
    """Convert embeddings that a caller passes to those that a search reads.

    Args:
        embeddings: numpy or torch, real numbers of any type and memory order; lists of vectors; rows on disk.
        name: Name of the argument in an error.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(embeddings, (list, tuple)):
        try:
            embeddings = np.asarray(embeddings, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be vectors of numbers, all of one length: got {error}.") from error
    if not (hasattr(embeddings, "shape") and hasattr(embeddings, "ndim")):
        raise ValueError(f"{name} must be an array of numbers: got {type(embeddings).__name__}; pass numpy or torch.")
    if isinstance(embeddings, torch.Tensor):
        if embeddings.layout != torch.strided:
            raise ValueError(f"{name} must be dense: got {embeddings.layout}; call to_dense() first.")
        is_real = not embeddings.is_complex()
    else:
        is_real = not (isinstance(embeddings, np.ndarray) and embeddings.dtype.kind in "cUS")  # complex, or text
    if not is_real:
        raise ValueError(f"{name} must hold real numbers: got {embeddings.dtype}; pass the vectors of the sentences.")
    # torch takes no negative stride, which ascontiguousarray keeps over one row.
    is_turned = isinstance(embeddings, np.ndarray) and min(embeddings.strides, default=0) < 0
    rows: Embeddings = embeddings.copy() if is_turned else embeddings
    return rows


def check_shapes(
    first: Embeddings, second: Embeddings, first_name: str, second_name: str
) -> tuple[Embeddings, Embeddings]:
    """The part of :func:`check_pair` that reads no values; returns both by :func:`as_embeddings`."""
    first = as_embeddings(first, first_name)
    second = as_embeddings(second, second_name)
    for embeddings, name in ((first, first_name), (second, second_name)):
        if embeddings.ndim != 2:
            raise ValueError(
                f"{name} must have 2 dimensions (sentences, dim): got shape {tuple(embeddings.shape)}; "
                "stack one vector per sentence."
            )
        if 0 in embeddings.shape:
            raise ValueError(
                f"{name} must hold at least one vector: got shape {tuple(embeddings.shape)}; add sentences."
            )
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"{first_name} and {second_name} must have the same dim: got {first.shape[1]} and {second.shape[1]}; "
            "encode both sides with one model."
        )
    return first, second


def unit_vectors(embeddings: Embeddings, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Rows ``start:stop``, finite and not zero, by their lengths, in float64. *Shape:* ``(stop - start, dim)``"""
    rows = float64_rows(embeddings, start, stop)
    return rows / _lengths(rows)[:, None]


def rounded_cosines(products: np.ndarray) -> np.ndarray:
    """float32 cosines from float64 products of unit vectors; equal if these differ by no more than their last bits.

    Args:
        products: *Shape:* any
    """
    return (np.rint(products * STEPS) / STEPS).astype(np.float32)


def float64_rows(embeddings: Embeddings, start: int, stop: int | None) -> np.ndarray:
    """Rows ``start:stop`` as float64 in C order, on the CPU; possibly a view. *Shape:* ``(stop - start, dim)``"""
    rows = embeddings[start:stop]
    if isinstance(rows, torch.Tensor):
        rows = rows.detach().to(device="cpu", dtype=torch.float64).numpy()
    # C order: numpy then sums each row by itself, in the same order wherever the row is.
    return np.ascontiguousarray(rows, dtype=np.float64)


def checked_lengths(embeddings: Embeddings, name: str) -> np.ndarray:
    """Lengths of all rows, float64, if they are finite and not zero. *Shape:* ``(n,)``

    Raises:
        ValueError: Naming the side, what is wrong and the first rows concerned.
    """
    lengths = np.empty(embeddings.shape[0])
    for start in range(0, len(lengths), _ROWS_AT_ONCE):
        lengths[start : start + _ROWS_AT_ONCE] = _lengths(float64_rows(embeddings, start, start + _ROWS_AT_ONCE))
    faults: list[str] = []
    for fault, is_bad in (("NaN or infinity", ~np.isfinite(lengths)), ("only zeros", lengths == 0)):
        if is_bad.any():
            faults.append(f"{fault} in {_name_rows(np.flatnonzero(is_bad).tolist())}")
    if faults:
        raise ValueError(
            f"{name} must hold finite vectors of non-zero length: got {' and '.join(faults)}; "
            "drop these sentences or check the model and its precision."
        )
    return lengths


def _lengths(rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.add.reduce(rows * rows, axis=1))


def _name_rows(rows: list[int], shown: int = 5) -> str:
    """Return the first of some rows by number, and how many others there are."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    names = ", ".join(map(str, rows[:shown]))
    others = f" and {len(rows) - shown} more" if len(rows) > shown else ""
    return f"rows {names}{others}"


def nearest(queries: Embeddings, corpus: Embeddings) -> np.ndarray:
    """Index of the corpus vector with the highest cosine to each query; the lowest index among equals.

    Cosines are those of this module, so the place of a row does not change the answer.

    Args:
        queries: Any float dtype, numpy or torch, normalized or not. *Shape:* ``(queries, dim)``
        corpus: Vectors to search. *Shape:* ``(corpus, dim)``
    Returns:
        Corpus indices, int64. *Shape:* ``(queries,)``
    Raises:
        ValueError: On an empty matrix, unequal dims, or rows that are zero or not finite.

    Example:
        >>> nearest(np.array([[1.0, 0.1], [0.0, 2.0]]), np.eye(2)).tolist()
        [0, 1]
    """
    check_pair(queries, corpus, "queries", "corpus")
    best = np.full(queries.shape[0], -np.inf, dtype=np.float32)
    indices = np.zeros(queries.shape[0], dtype=np.int64)
    for rows, start, cosines in _cosine_blocks(queries, corpus):
        first = cosines.argmax(axis=1)  # numpy promises the first of equals; torch.argmax does not
        highest = cosines[np.arange(len(first)), first]
        better = highest > best[rows]  # strictly: an equal cosine in a later block has a higher index
        best[rows] = np.where(better, highest, best[rows])
        indices[rows] = np.where(better, start + first, indices[rows])
    return indices


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
    pair_products = []
    for start in range(0, len(ranks), _BLOCK):
        query_block = unit_vectors(queries, start, start + _BLOCK)
        corpus_block = unit_vectors(corpus, start, start + _BLOCK)
        pair_products.append(np.einsum("ij,ij->i", query_block, corpus_block))
    pair_cosines = rounded_cosines(np.concatenate(pair_products))  # equal to those below
    for rows, start, cosines in _cosine_blocks(queries, corpus):
        pair_cosine = pair_cosines[rows, None]
        is_earlier = np.arange(start, start + cosines.shape[1]) < np.arange(rows.start, rows.stop)[:, None]
        is_nearer = (cosines > pair_cosine) | ((cosines == pair_cosine) & is_earlier)
        ranks[rows] += is_nearer.sum(axis=1)
    return ranks


def _cosine_blocks(queries: Embeddings, corpus: Embeddings) -> Iterator[tuple[slice, int, np.ndarray]]:
    """All cosines, block by block: rows of the queries, the first row of the corpus, and the cosines between them."""
    for start in range(0, queries.shape[0], _BLOCK):
        query_block = unit_vectors(queries, start, start + _BLOCK)
        for corpus_start in range(0, corpus.shape[0], _BLOCK):
            cosines = rounded_cosines(query_block @ unit_vectors(corpus, corpus_start, corpus_start + _BLOCK).T)
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
        ValueError: As :func:`translation_ranks`.
    Source:
        Huang et al. 2023 (mBERT-SF), equation 4, from Chinese to Vietnamese.
    """
    forward = translation_ranks(source, target)
    backward = translation_ranks(target, source)
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
    # Indices beyond the rows, which a larger corpus would have, are no class of any row.
    counts = np.bincount(indices, minlength=len(indices))[: len(indices)]
    return float(np.mean(2 * (indices == np.arange(len(indices))) / (1 + counts)))
