"""Exact nearest rows of a large store for a few queries: one direction, in bounded memory."""

from __future__ import annotations

import numpy as np
import torch
from tqdm import tqdm

from st_xling.mining.neighbours import Neighbours
from st_xling.mining.search.exact_rows import exact_rows
from st_xling.mining.search.keys import cosines_of, indices_of
from st_xling.mining.search.side import Side
from st_xling.utils.cosines import Embeddings, check_shapes

# Rows of the store compared at a time.
_ROWS = 2**16


def nearest_rows(
    queries: Embeddings,
    store: Embeddings,
    *,
    k: int,
    memory_mib: int = 256,
    device: str | torch.device = "cpu",
    progress: bool = False,
) -> Neighbours:
    """The ``k`` rows of the store nearest to each query by exact cosine, lowest row first among equals.

    Beyond the queries and one block of the store, which may be larger than the memory, this takes ``memory_mib`` and
    about ``12 * k`` bytes for each of 65,536 rows.

    Args:
        queries: Few, or many. *Shape:* ``(queries, dim)``
        store: *Shape:* ``(rows, dim)``
        k: At most the rows of the store.
        memory_mib: Bound on one block of products, in MiB.
        device: Where to compute.
        progress: Show a bar on stderr.
    Raises:
        ValueError: When dims differ, a side is empty, ``k`` is out of range, or rows are zero or not finite.
    """
    queries, store = check_shapes(queries, store, "queries", "store")
    rows = int(store.shape[0])
    if not 1 <= k <= rows:
        raise ValueError(f"k must lie between 1 and the rows of the store: got k={k} for {rows} rows.")
    device = torch.device(device)
    own = Side(queries, "queries", device)
    every = np.arange(own.rows)
    best = (np.empty((own.rows, 0), dtype=np.float32), np.empty((own.rows, 0), dtype=np.int64))
    for start in tqdm(range(0, rows, _ROWS), desc="search", unit="block", disable=not progress):
        part = Side(store[start : start + _ROWS], f"store (from row {start})", device)
        keys = exact_rows(own, part, every, k=min(k, part.rows), memory_mib=memory_mib)
        cosines = np.concatenate([best[0], cosines_of(keys).numpy()], axis=1)
        indices = np.concatenate([best[1], indices_of(keys).numpy() + start], axis=1)
        # Those found before have lower rows and come first: a stable sort leaves them there.
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(cosines, order, axis=1), np.take_along_axis(indices, order, axis=1)
    return Neighbours(*best)
