"""Sentence vectors of any layers of an encoder, from one pass over the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.util import batch_to_device
from tqdm.auto import tqdm

from st_xling.models.layers import check_layer, cut_to_layer, layer_states
from st_xling.models.load import Pooling


class Column(NamedTuple):
    """One kind of sentence vector: a layer's token states, pooled."""

    layer: int
    pooling: Pooling = "mean"

    @property
    def name(self) -> str:
        return f"{self.pooling}-{self.layer}"


def layer_vectors(
    model: SentenceTransformer,
    texts: Sequence[str],
    columns: Sequence[Column],
    *,
    batch_size: int = 32,
    progress: tqdm | None = None,
) -> dict[Column, np.ndarray]:
    """Vectors of every text in every column.

    Layers above the highest that is asked for are not computed.

    Args:
        model: Its first module is a transformer; pooling and whatever else follows it are passed over.
        texts: Sentences.
        columns: Layers and how they are pooled.
        batch_size: Texts encoded at a time; they are sorted by length, so that little is padded.
        progress: A bar to be moved on, one a text.

    Returns:
        float32. *Shape of each:* ``(texts, hidden)``

    Raises:
        ValueError: A layer that the encoder lacks.
    """
    for column in columns:
        check_layer(model, column.layer)
    cut = cut_to_layer(model, max(column.layer for column in columns))
    hidden = cut.get_embedding_dimension()
    assert hidden is not None
    poolings = {kind: PoolingModule(hidden, pooling_mode=kind) for kind in {column.pooling for column in columns}}
    found = {column: np.empty((len(texts), hidden), np.float32) for column in columns}
    order = np.argsort([-len(text) for text in texts], kind="stable")
    with torch.inference_mode():
        for start in range(0, len(texts), batch_size):
            rows = order[start : start + batch_size]
            features = batch_to_device(cut.preprocess([texts[row] for row in rows]), cut.device)
            states = layer_states(cut, features)
            pooled = [
                poolings[column.pooling]({**features, "token_embeddings": states[column.layer]})["sentence_embedding"]
                for column in columns
            ]
            # One copy from the device for all layers.
            for column, vectors in zip(columns, torch.stack(pooled).float().cpu().numpy()):
                found[column][rows] = vectors
            if progress is not None:
                progress.update(len(rows))
    return found
