"""LASER's embedding files: bare numbers, row after row, without a header."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from st_xling.utils.text import describe_missing

_DTYPES = ("float32", "float16")
_LOOKED_AT = 1024


def open_laser(path: str | Path, *, dim: int = 1024, dtype: str = "float32", rows: int | None = None) -> np.memmap:
    """Map a raw embedding file into memory.

    The file says nothing of itself, so that a wrong ``dim`` or ``dtype`` gives noise. What can be checked is: the size
    must be a whole number of rows, the number of rows that of the text where it is known, and the first and last rows
    finite and not zero, which halves or pairs of numbers rarely are.

    Args:
        path: ``.raw``, ``.emb``, ``.enc``: any name will do.
        dim: Width of the vectors: 1024 for LASER 1 to 3.
        dtype: ``"float32"``, or ``"float16"`` for files written with ``--fp16``; little-endian.
        rows: Sentences of the text, if known.
    Returns:
        Read-only. *Shape:* ``(rows, dim)``
    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file cannot hold such rows.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}: got {dtype!r}.")
    if dim < 1:
        raise ValueError(f"dim must be at least 1: got {dim}; LASER's is 1024.")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(describe_missing(path))
    size, row_bytes = path.stat().st_size, dim * np.dtype(dtype).itemsize
    if not size or size % row_bytes:
        raise ValueError(
            f"{path}: expected a whole number of rows of {row_bytes:,} bytes ({dim} x {dtype}), got {size:,} bytes; "
            "the file is cut off, or dim or dtype is another."
        )
    if rows is not None and rows * row_bytes != size:
        widths = {name: rows * np.dtype(name).itemsize for name in _DTYPES}
        fits = [f"dim={size // width}, dtype={name!r}" for name, width in widths.items() if width and not size % width]
        raise ValueError(
            f"{path}: expected {rows:,} rows of {dim} x {dtype}, got {size // row_bytes:,}; "
            + (f"{' or '.join(fits)} would fit." if fits else "this is not the text that was encoded.")
        )
    array = np.memmap(path, dtype=np.dtype(dtype).newbyteorder("<"), mode="r", shape=(size // row_bytes, dim))
    for first in {0, max(0, len(array) - _LOOKED_AT)}:
        block = np.asarray(array[first : first + _LOOKED_AT], dtype=np.float32)
        bad = np.flatnonzero(~np.isfinite(block).all(axis=1) | ~block.any(axis=1))
        if bad.size:
            raise ValueError(
                f"{path}: row {first + int(bad[0])} is not finite or only zeros when read as {dim} x {dtype}; check "
                "dim and dtype, or encode the text again."
            )
    return array
