"""Embeddings of several lists of texts, each distinct text encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def encode_once(model: SentenceTransformer, columns: Sequence[Sequence[str]], **options: Any) -> list[np.ndarray]:
    """Embeddings of each column's texts; equal texts have equal vectors, in whatever batch they would have fallen.

    Args:
        model: Anything with the host's ``encode``.
        columns: Lists of texts.
        options: Of ``encode``.
    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    texts = sorted({text for column in columns for text in column})
    embeddings = model.encode(texts, convert_to_numpy=True, **options)
    row = {text: index for index, text in enumerate(texts)}
    return [np.asarray(embeddings[[row[text] for text in column]]) for column in columns]
