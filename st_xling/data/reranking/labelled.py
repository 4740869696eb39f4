"""Labelled pairs as a ``datasets.Dataset``, the form that cross-encoders are trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_COLUMNS = ("query", "passage", "label", "query_language", "passage_language")
"""The columns of every labelled dataset: strings, but for ``label``, a float of 0 or 1."""

KEY_COLUMNS = ("query_key", "passage_key")
"""Beside them, where pairs are aligned: 64 bits that texts share which say the same, in whatever language."""


def labelled_dataset(
    queries: Sequence[str],
    passages: Sequence[str],
    labels: Sequence[int] | np.ndarray,
    query_languages: Sequence[str],
    passage_languages: Sequence[str],
    *,
    keys: Sequence[np.ndarray] = (),
) -> Dataset:
    """One row a pair, in the order given; ``keys`` are of queries and of passages. *Shape:* ``(pairs,)`` each"""
    import pyarrow as pa
    from datasets import Dataset

    numbers = np.asarray(labels, np.float32)  # the host's binary cross-entropy takes floats
    columns = dict(zip(PAIR_COLUMNS, [queries, passages, numbers, query_languages, passage_languages]))
    kinds = {name: pa.float32() if name == "label" else pa.string() for name in PAIR_COLUMNS}
    if keys:
        columns |= dict(zip(KEY_COLUMNS, keys))
        kinds |= dict.fromkeys(KEY_COLUMNS, pa.uint64())
    return Dataset(pa.table(columns, schema=pa.schema(list(kinds.items()))))


def in_languages(pairs: Any, rows: np.ndarray, query_codes: np.ndarray, passage_codes: np.ndarray) -> Dataset:
    """Rows of :class:`~st_xling.data.reranking.aligned.AlignedPairs`, each side in the language chosen for it.

    Args:
        pairs: The aligned pairs.
        rows: Row of each pair, in the order wanted; a row may come several times. *Shape:* ``(pairs,)``
        query_codes: Place of the query's language in ``pairs.languages``. *Shape:* ``(pairs,)``
        passage_codes: The same, of the passage. *Shape:* ``(pairs,)``
    """
    languages = pairs.languages
    asked, shown = ([languages[code] for code in codes.tolist()] for codes in (query_codes, passage_codes))
    numbers = rows.tolist()
    return labelled_dataset(
        [pairs.queries[language][row] for language, row in zip(asked, numbers)],
        [pairs.passages[language][row] for language, row in zip(shown, numbers)],
        np.asarray(pairs.labels)[rows],
        asked,
        shown,
        keys=[keys[rows] for keys in pairs.keys],
    )
