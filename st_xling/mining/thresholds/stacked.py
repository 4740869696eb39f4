"""Several sets of embeddings as one, without copying them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from st_xling.utils.cosines import Embeddings, float64_rows


class Stacked:
    """Rows of several sets, one below another; read as float64, piece by piece.

    Args:
        parts: Sets of one dim. *Shapes:* ``(rows, dim)``
    """

    ndim = 2

    def __init__(self, parts: Sequence[Embeddings]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.shape[0] for part in parts])
        self.shape: tuple[int, ...] = (int(self._ends[-1]), parts[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            return self._range(start, stop)
        homes = np.searchsorted(self._ends, rows, side="right")
        result = np.empty((len(rows), self.shape[1]))
        for home in np.unique(homes).tolist():
            places = np.flatnonzero(homes == home)
            begin = int(self._ends[home]) - self._parts[home].shape[0]
            result[places] = _picked(self._parts[home], rows[places] - begin)
        return result

    def _range(self, start: int, stop: int) -> np.ndarray:
        pieces = []
        for part, end in zip(self._parts, self._ends.tolist()):
            begin = end - part.shape[0]
            if start < end and stop > begin:
                pieces.append(float64_rows(part, max(start - begin, 0), min(stop, end) - begin))
        return np.concatenate(pieces) if pieces else np.empty((0, self.shape[1]))


def _picked(part: Embeddings, rows: np.ndarray) -> np.ndarray:
    return float64_rows(part[rows], 0, None)
