"""Cosines that do not depend on the order in which they are summed.

A float32 product may differ in its last bits with the shape of the block it is computed in. That is enough to let one
of two identical sentences win over the other by chance. Cosines that decide are therefore summed in float64 and rounded
to multiples of :math:`2^{-24}`, which float32 holds exactly: sums in another order differ by about
:math:`10^{-16}`, so they are rounded to the same number.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import torch


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

#: Cosines are whole multiples of one by this.
STEPS = 2.0**24


def check_pair(first: Embeddings, second: Embeddings, first_name: str, second_name: str) -> None:
    """Raise unless both are non-empty matrices of equal width with finite, non-zero rows.

    Args:
        first: *Shape:* ``(n, dim)``
        second: *Shape:* ``(m, dim)``
        first_name: What to call ``first`` in an error, such as ``"source_embeddings"``.
        second_name: What to call ``second``.
    Raises:
        ValueError: Naming the side and, for bad values, the first rows concerned.
    """
    first, second = check_shapes(first, second, first_name, second_name)
    for embeddings, name in ((first, first_name), (second, second_name)):
        checked_lengths(embeddings, name)


def as_embeddings(embeddings: Any, name: str) -> Embeddings:
    """Convert embeddings that a caller passes to those that a search reads; copied only if torch lacks the type.

    Args:
        embeddings: numpy or torch, real numbers of any type and memory order; nested lists; rows on disk.
        name: What to call it in an error.
    Raises:
        ValueError: For anything else.
    """
    if isinstance(embeddings, torch.Tensor):
        if embeddings.layout != torch.strided or embeddings.is_complex() or embeddings.is_quantized:
            kind = embeddings.layout if embeddings.layout != torch.strided else embeddings.dtype
            raise ValueError(f"{name} must hold dense real numbers: got {kind}; convert it to float32.")
        is_float8 = embeddings.is_floating_point() and embeddings.element_size() == 1  # torch does not compute in it
        return embeddings.float() if is_float8 else embeddings
    if isinstance(embeddings, (list, tuple)):
        try:
            embeddings = np.array([np.asarray(row, dtype=np.float64) for row in embeddings])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be vectors of one length: {error}; stack one vector per sentence.") from None
    if isinstance(embeddings, np.ndarray):
        if embeddings.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers: got {embeddings.dtype}; convert it to float32.")
        # ascontiguousarray keeps a negative stride over one row, which torch does not take.
        return embeddings.copy() if min(embeddings.strides, default=0) < 0 else embeddings
    if not (hasattr(embeddings, "shape") and hasattr(embeddings, "ndim")):
        raise ValueError(f"{name} must be an array of numbers: got {type(embeddings).__name__}; pass numpy or torch.")
    rows: Embeddings = embeddings
    return rows


def check_shapes(
    first: Embeddings, second: Embeddings, first_name: str, second_name: str
) -> tuple[Embeddings, Embeddings]:
    """The part of :func:`check_pair` that reads no values; returns both by :func:`as_embeddings`."""
    first, second = as_embeddings(first, first_name), as_embeddings(second, second_name)
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
    faults = {"NaN or infinity": ~np.isfinite(lengths), "only zeros": lengths == 0}
    found = [f"{fault} in {_listed(np.flatnonzero(bad).tolist())}" for fault, bad in faults.items() if bad.any()]
    if found:
        raise ValueError(
            f"{name} must hold finite vectors of non-zero length: got {' and '.join(found)}; "
            "drop these sentences or check the model and its precision."
        )
    return lengths


def _lengths(rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.add.reduce(rows * rows, axis=1))


def _listed(rows: list[int], shown: int = 5) -> str:
    listed = ", ".join(map(str, rows[:shown]))
    more = f" and {len(rows) - shown} more" if len(rows) > shown else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {listed}{more}"
