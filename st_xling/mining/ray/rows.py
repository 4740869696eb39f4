"""Embeddings on their way to another process: those in files by the files' names, others as they are."""

from __future__ import annotations

import io
import mmap
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from st_xling.utils.cosines import Embeddings


class RowRange:
    """Rows ``start:stop`` of embeddings, read when they are asked for.

    Args:
        embeddings: *Shape:* ``(n, dim)``
        start: First row.
        stop: Row after the last.
    """

    ndim = 2

    def __init__(self, embeddings: Embeddings, start: int, stop: int) -> None:
        self._embeddings, self._start = embeddings, start
        self.shape: tuple[int, ...] = (stop - start, int(embeddings.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return np.asarray(self._embeddings[self._start + start : self._start + max(start, stop)])
        return np.asarray(self._embeddings[self._start + rows])


def pack(embeddings: Embeddings) -> Any:
    """What to send: arrays in memory themselves, for ray to share, anything else as bytes with names of files."""
    if isinstance(embeddings, Tensor):
        return embeddings.detach().cpu()
    if isinstance(embeddings, np.ndarray) and not _is_file(embeddings):
        return embeddings
    stream = io.BytesIO()
    _ByName(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(embeddings)
    return stream.getvalue()


def unpack(packed: Any) -> Embeddings:
    """The embeddings, in the process they were sent to by :func:`pack`; only ever bytes of our own program."""
    return pickle.loads(packed) if isinstance(packed, bytes) else packed


class _ByName(pickle.Pickler):
    """Pickles memory maps, wherever they are inside, by file, place and shape: numpy would write all their rows."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or not _is_file(value):
            return NotImplemented
        assert isinstance(value, np.memmap)
        mapped = value.offset - value.offset % mmap.ALLOCATIONGRANULARITY
        inside = value.ctypes.data - np.frombuffer(value._mmap, dtype=np.uint8).ctypes.data  # type: ignore[attr-defined]
        path = str(Path(str(value.filename)).resolve())
        return _reopen, (path, value.dtype.str, mapped + inside, value.shape)


def _is_file(array: np.ndarray) -> bool:
    """Whether these are rows of a file that lie there in order and as it has them."""
    return (
        isinstance(array, np.memmap)
        and getattr(array, "_mmap", None) is not None
        and array.filename is not None
        and array.mode in ("r", "r+")
        and array.flags.c_contiguous
    )


def _reopen(path: str, dtype: str, offset: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.memmap(path, dtype=np.dtype(dtype), mode="r", offset=offset, shape=shape)
