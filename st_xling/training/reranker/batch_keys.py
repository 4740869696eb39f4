"""What the rows of a loss say, whatever the language: what in-batch negatives are kept apart by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.reranking.pairs import KEY_COLUMNS

if TYPE_CHECKING:
    from datasets import Dataset


def meaning_keys(pairs: Dataset, rows: Dataset) -> np.ndarray | None:
    """Keys of each row's texts, shared by translations; ``None`` where ``pairs`` have none.

    Args:
        pairs: Labelled pairs, with :data:`~st_xling.data.reranking.pairs.KEY_COLUMNS` if they were aligned.
        rows: Made of them for a loss: a column ``query``, the others passages.
    Returns:
        A text that stands for two meanings (``Taxi`` in two languages) has the key of the last.
        *Shape:* ``(rows, columns)``, uint64
    """
    if not set(KEY_COLUMNS) <= set(pairs.column_names):
        return None
    queries, passages = (dict(zip(pairs[side], pairs[f"{side}_key"])) for side in ("query", "passage"))
    columns = [(queries if name == "query" else passages, rows[name]) for name in rows.column_names]
    return np.stack([np.fromiter((keys[text] for text in column), np.uint64) for keys, column in columns], axis=1)
