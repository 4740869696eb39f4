r"""Cosines that come out the same whatever the block shape, thread count or machine.

A BLAS product may differ in its last bit with the shape of the block it is computed in. That is enough to let one of
two identical sentences win over the other by chance. Here every unit vector is rounded to a grid of step
:math:`2^{-26}`: products of two coordinates are then integers below :math:`2^{53}` in units of :math:`2^{-52}`, and so
are their partial sums (by Cauchy-Schwarz), hence float64 adds them without any rounding, in any order. The sum is
rounded once, to float32. The grid moves a cosine by about :math:`10^{-8}`, less than that rounding, and never by more
than :math:`\sqrt{\mathrm{dim}}\,2^{-26}`.
"""

from __future__ import annotations

from collections.abc import Sequence
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

FRACTION_BITS = 26


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
        check_rows(embeddings, name, range(embeddings.shape[0]))


def as_embeddings(embeddings: Any, name: str) -> Embeddings:
    """What a caller may pass, as what a search reads; a copy only where torch lacks the form.

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


def lengths(embeddings: Embeddings, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Euclidean lengths of rows ``start:stop``; zero, infinite or NaN where squares leave the range of float64.

    Where a length lies in [1e-140, 1e140], ``rint(row / length * 2 ** 26)`` is what :func:`fixed_point` gives:
    the power of two by which that function scales a row changes no digit.

    Returns:
        float64. *Shape:* ``(stop - start,)``
    """
    rows = float64_rows(embeddings, start, stop)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.add.reduce(rows * rows, axis=1))


def fixed_point(embeddings: Embeddings, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Unit vectors of rows ``start:stop``, as whole multiples of ``2 ** -26``.

    Args:
        embeddings: Finite, non-zero rows, any float dtype, on any device. *Shape:* ``(n, dim)``
        start: First row.
        stop: Row after the last; all remaining rows by default.
    Returns:
        Integers held in float64. Equal rows, and rows that differ by a power of two, give equal results.
        *Shape:* ``(stop - start, dim)``
    """
    rows = float64_rows(embeddings, start, stop)
    # Scaling by a power of two is exact and keeps the squares of very long or very short vectors in range.
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    rows = np.ldexp(rows, -exponents)
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    return np.rint(rows / lengths * 2.0**FRACTION_BITS)


def exact_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All cosines between two blocks from :func:`fixed_point`.

    Args:
        first: *Shape:* ``(n, dim)``
        second: *Shape:* ``(m, dim)``
    Returns:
        float32 cosines in [-1, 1], without negative zeros. *Shape:* ``(n, m)``
    """
    return rounded_cosines(first @ second.T)


def rounded_cosines(products: np.ndarray) -> np.ndarray:
    """float32 cosines from inner products of rows from :func:`fixed_point`; these are exact, however they are summed.

    Args:
        products: Overwritten. *Shape:* any
    """
    products *= 2.0 ** (-2 * FRACTION_BITS)
    np.clip(products, -1.0, 1.0, out=products)
    products += 0.0  # -0.0 becomes 0.0, so that equal numbers have equal bits
    return products.astype(np.float32)


def float64_rows(embeddings: Embeddings, start: int, stop: int | None) -> np.ndarray:
    """Rows ``start:stop`` as float64 in C order, on the CPU; possibly a view. *Shape:* ``(stop - start, dim)``"""
    rows = embeddings[start:stop]
    if isinstance(rows, torch.Tensor):
        rows = rows.detach().to(device="cpu", dtype=torch.float64).numpy()
    # C order: numpy then sums each row by itself, in the same order wherever the row stands.
    return np.ascontiguousarray(rows, dtype=np.float64)


def check_rows(embeddings: Embeddings, name: str, rows: Sequence[int]) -> None:
    """Raise unless the rows at these ascending indices are finite and not zero.

    Raises:
        ValueError: Naming the side, what is wrong and the first rows concerned.
    """
    faults: dict[str, list[int]] = {"NaN or infinity": [], "only zeros": []}
    block = 4096 if isinstance(rows, range) else 1
    for first in range(0, len(rows), block):
        start = rows[first]
        values = float64_rows(embeddings, start, start + block)
        faults["NaN or infinity"] += (start + np.flatnonzero(~np.isfinite(values).all(axis=1))).tolist()
        faults["only zeros"] += (start + np.flatnonzero(~values.any(axis=1))).tolist()
    found = [f"{fault} in {_listed(bad)}" for fault, bad in faults.items() if bad]
    if found:
        raise ValueError(
            f"{name} must hold finite vectors of non-zero length: got {' and '.join(found)}; "
            "drop these sentences or check the model and its precision."
        )


def _listed(rows: list[int], shown: int = 5) -> str:
    listed = ", ".join(map(str, rows[:shown]))
    more = f" and {len(rows) - shown} more" if len(rows) > shown else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {listed}{more}"
