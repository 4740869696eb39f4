"""One shard of a store: vectors checked and turned into the bytes of a file, and read again a slice at a time."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from st_xling.utils.cosines import Embeddings

#: Names that ``dtype`` may take.
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

#: Names that ``file_format`` may take.
FILE_FORMATS = ("safetensors", "npy")

_TENSOR = "embeddings"
_SHOWN = 5


def check_format(dtype: str, file_format: str) -> None:
    """Raise unless vectors of this type can be kept in such files."""
    for name, value, allowed in (("dtype", dtype, tuple(DTYPES)), ("file_format", file_format, FILE_FORMATS)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}: got {value!r}.")
    if dtype == "bfloat16" and file_format == "npy":
        raise ValueError(".npy files have no bfloat16: use file_format='safetensors', or dtype='float16'.")


def shard_rows_to_write(rows: Embeddings, dtype: str, place: Callable[[int], str]) -> Tensor:
    """Vectors rounded to ``dtype``, each finite and not zero.

    Args:
        rows: *Shape:* ``(rows, dim)``
        dtype: As in :data:`DTYPES`.
        place: Says where a row comes from, for the error.
    Raises:
        ValueError: Naming the first rows that are NaN, infinite or zero, or become so in ``dtype``.
    """
    # A copy: torch does not like memory that cannot be written to, such as a read-only map.
    given = rows.detach().cpu() if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
    if given.ndim != 2 or 0 in given.shape:
        raise ValueError(f"expected vectors of shape (rows, dim), none of them 0: got {tuple(given.shape)}.")
    if not given.is_floating_point():
        raise ValueError(f"expected vectors of floating-point numbers: got {given.dtype}; convert them to float32.")
    made = given.to(DTYPES[dtype]).contiguous()
    for tensor, remedy in (
        (given, "mend or drop these sentences, or check the model and the precision it runs in"),
        (made, f"{dtype} cannot hold them: normalise the vectors, or write float32"),
    ):
        bad = ~torch.isfinite(tensor).all(dim=1)
        faults = {"NaN or infinite": bad, "only zeros": ~bad & ~tensor.any(dim=1)}
        found = [f"{name} in {_rows(rows, place)}" for name, rows in faults.items() if rows.any()]
        if found:
            raise ValueError(f"expected finite vectors of non-zero length: got {' and '.join(found)}; {remedy}.")
    return made


def shard_bytes(rows: Tensor, file_format: str) -> bytes:
    """The file that holds these vectors; equal vectors give equal bytes."""
    if file_format == "safetensors":
        return save({_TENSOR: rows})
    buffer = io.BytesIO()
    np.save(buffer, rows.numpy(), allow_pickle=False)
    return buffer.getvalue()


def shard_shape(path: Path) -> tuple[tuple[int, ...], str]:
    """Shape and dtype that the file's own header gives.

    Raises:
        ValueError: If it is no shard.
    """
    try:
        if path.suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            return array.shape, str(array.dtype)
        with safe_open(path, framework="pt") as file:
            part = file.get_slice(_TENSOR)
            names = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
            return tuple(part.get_shape()), names.get(part.get_dtype(), part.get_dtype())
    except (SafetensorError, ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected a shard of embeddings, got: {error}; write the store again.") from error


def map_shard(path: Path) -> np.ndarray:
    """A shard mapped into memory, read-only: only what is looked at is read. *Shape:* ``(rows, dim)``

    Returns:
        The numbers as they are on the disk; bfloat16 as its bits, int16, for :func:`readable`.
    """
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False)
    with safe_open(path, framework="pt") as file:
        rows = file.get_tensor(_TENSOR)
    array = (rows.view(torch.int16) if rows.dtype == torch.bfloat16 else rows).numpy()
    array.flags.writeable = False
    return array


def readable(rows: np.ndarray) -> np.ndarray:
    """Rows of :func:`map_shard` as numbers: bfloat16 is the upper half of a float32."""
    return (rows.astype(np.uint16).astype(np.uint32) << 16).view(np.float32) if rows.dtype == np.int16 else rows


def _rows(mask: Tensor, place: Callable[[int], str]) -> str:
    found = torch.nonzero(mask).flatten().tolist()
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(place(row) for row in found[:_SHOWN]) + more
