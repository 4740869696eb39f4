"""The rows of a store's shards as one array."""

from __future__ import annotations

from collections import OrderedDict
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.stores.manifest import Manifest
from st_xling.mining.stores.shard_files import map_shard, readable

#: Shards mapped into memory at a time. Systems allow some ten thousand maps a process.
_MAPPED = 1024


class ShardedRows:
    """A read-only array of shape ``(rows, dim)`` that lies in several files.

    ``store[a:b]`` reads no other rows, and copies none where they lie in one file; ``store[i]`` is one vector;
    ``store[indices]`` and ``store[mask]`` gather. All are numpy arrays of ``dtype``; bfloat16, which numpy lacks, is
    read as float32, which holds it exactly. There are ``shape``, ``ndim``, ``len`` and ``numpy.asarray(store)``, which
    reads everything. It can be pickled and read in several processes.

    Attributes:
        path: The folder.
        manifest: What the folder says of itself.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._ends = list(accumulate(shard.rows for shard in manifest.shards))
        self._maps: OrderedDict[int, np.ndarray] = OrderedDict()

    @property
    def rows(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def dim(self) -> int:
        return self.manifest.dim

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.dim

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype:
        """Of what indexing returns; what is on the disk is ``manifest.header.dtype``."""
        return np.dtype("float16" if self.manifest.header.dtype == "float16" else "float32")

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, key: int | slice | np.ndarray | list[int]) -> np.ndarray:
        """Rows; see the class.

        Raises:
            IndexError: For a row that is not there.
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(self.rows)
            return self._range(start, max(start, stop)) if step == 1 else self._gather(np.arange(start, stop, step))
        if isinstance(key, (int, np.integer)):
            return self._gather(np.array([key]))[0]
        indices = np.asarray(key)
        if indices.dtype == bool and indices.shape == (self.rows,):
            indices = np.flatnonzero(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(f"a store takes a slice, a row, a list of rows or a mask of {self.rows}: got {key!r}")
        return self._gather(indices.astype(np.int64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a store lies in files: it becomes an array only by copying.")
        return np.array(self[:], dtype=dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": OrderedDict()}

    def _range(self, start: int, stop: int) -> np.ndarray:
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right").tolist()
        parts = []
        for number in range(first, last + 1) if start < stop else ():
            begin = self._ends[number] - self.manifest.shards[number].rows
            parts.append(readable(self._map(number)[max(start - begin, 0) : stop - begin]))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.dim), dtype=self.dtype)

    def _gather(self, rows: np.ndarray) -> np.ndarray:
        if rows.size and not (-self.rows <= rows.min() and rows.max() < self.rows):
            raise IndexError(f"{self.path} has {self.rows} rows: got rows from {rows.min()} to {rows.max()}")
        rows = rows % max(self.rows, 1)
        result = np.empty((len(rows), self.dim), dtype=self.dtype)
        homes = np.searchsorted(self._ends, rows, side="right")
        for home in np.unique(homes).tolist():
            places = np.flatnonzero(homes == home)
            begin = self._ends[home] - self.manifest.shards[home].rows
            result[places] = readable(self._map(home)[rows[places] - begin])
        return result

    def _map(self, number: int) -> np.ndarray:
        if number not in self._maps:
            self._maps[number] = map_shard(self.path / self.manifest.shards[number].file)
            if len(self._maps) > _MAPPED:
                self._maps.popitem(last=False)
        return self._maps[number]
