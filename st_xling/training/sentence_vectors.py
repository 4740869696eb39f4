"""Sentence vectors of any layers from one pass over the text, kept on disk so that no text is encoded twice.

A cache is a folder of Arrow files, each with the vectors of some thousand texts, a column of each kind: ``mean-7`` is
the mean of the token states of layer 7, ``output`` what a teacher makes of a text. A file's name is a hash of model,
columns and texts, so that several models, data sets and processes may share a folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset, concatenate_datasets
from huggingface_hub.constants import HF_HOME
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from torch import Tensor

from st_xling.data.text_cells import exact_keys, find_sorted
from st_xling.models.encoding import token_batches
from st_xling.models.view import check_layer, cut_to_layer, layer_states
from st_xling.utils.io import is_intact, record_hash
from st_xling.utils.options import Pooling

logger = logging.getLogger(__name__)

BATCH_TEXTS = 4096
FILE_TEXTS = 5 * BATCH_TEXTS


class Column(NamedTuple):
    """One kind of sentence vector: a layer's token states, pooled."""

    layer: int
    pooling: Pooling = "mean"

    @property
    def name(self) -> str:
        return f"{self.pooling}-{self.layer}"


def layer_vectors(model: SentenceTransformer, texts: Sequence[str], columns: Sequence[Column]) -> dict[str, np.ndarray]:
    """Vectors of every text, by the columns' names.

    Layers above the highest of them are not computed.

    Args:
        model: Its first module is a transformer; pooling and whatever else follows it are passed over.
        texts: Sentences.
        columns: Layers and how they are pooled.

    Returns:
        float32. *Shape of each:* ``(texts, hidden)``

    Raises:
        ValueError: A layer that the encoder lacks.
    """
    for column in columns:
        check_layer(model, column.layer)
    cut = cut_to_layer(model, max(column.layer for column in columns))
    hidden = int(cut[1].get_embedding_dimension())  # type: ignore[operator]
    poolings = {kind: PoolingModule(hidden, pooling_mode=kind) for kind in {column.pooling for column in columns}}
    matrices = {column.name: np.empty((len(texts), hidden), np.float32) for column in columns}
    with torch.inference_mode():
        for rows, features in token_batches(cut, texts):
            states = layer_states(cut, features)
            pooled = [
                poolings[column.pooling]({**features, "token_embeddings": states[column.layer]})["sentence_embedding"]
                for column in columns
            ]
            # One copy from the device for all layers.
            for column, vectors in zip(columns, torch.stack(pooled).float().cpu().numpy()):
                matrices[column.name][rows] = vectors
    return matrices


class CachedVectors:
    """Vectors of texts in files that are mapped into memory.

    Args:
        texts: The texts.
        blocks: Their vectors in order. *Shape of each:* ``(rows, dim)``
    """

    def __init__(self, texts: Sequence[str], blocks: Sequence[np.ndarray]) -> None:
        self.blocks, self.starts = blocks, np.cumsum([0, *map(len, blocks)])
        self.dim = int(blocks[0].shape[1])
        keys = exact_keys(texts)
        self.order = keys.argsort()
        self.keys = keys[self.order]

    def of(self, texts: Sequence[str]) -> Tensor:
        """Vectors of some of the texts. *Shape:* ``(texts, dim)``"""
        found, known = find_sorted(self.keys, exact_keys(texts))
        assert known.all(), f"{texts[int(known.argmin())]!r} was not encoded"
        return self[self.order[found]]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: Any) -> Tensor:
        """float32. *Shape:* ``(rows, dim)``"""
        rows = np.arange(len(self))[rows]
        places = np.searchsorted(self.starts, rows, side="right") - 1
        found = [self.blocks[place][row - self.starts[place]] for place, row in zip(places, rows)]
        return torch.from_numpy(np.stack(found))


def cache_folder(folder: str | Path | None) -> Path:
    """Return the folder of a cache; ``None``: one next to the downloaded models."""
    return Path(folder or Path(HF_HOME) / "st-xling" / "sentence-vectors")


def check_cache(folder: str | Path | None) -> None:
    """Raise ``ValueError`` for a cache that is a file or a broken link."""
    if folder is not None and os.path.lexists(folder) and not Path(folder).is_dir():
        raise ValueError(f"--cache must be a folder: {folder} is a file or a broken link; choose another name.")


def cached_vectors(
    texts: Sequence[str],
    columns: Sequence[str],
    encode: Callable[[list[str]], dict[str, np.ndarray]],
    *,
    fingerprint: str,
    folder: str | Path | None = None,
) -> tuple[dict[str, CachedVectors], int]:
    """Encode texts, except for those of files in the cache.

    Args:
        texts: Distinct texts; the same ones in the same order are found again, by thousands.
        columns: Kinds of vectors.
        encode: Returns the vectors of some thousand texts, by column. *Shape of each:* ``(texts, dim)``
        fingerprint: Of the model, see :func:`~st_xling.models.sidecar.model_fingerprint`.
        folder: Folder of the cache; ``None``: one next to the downloaded models.

    Returns:
        Column → vectors; and the number of texts that were encoded.
    """
    folder = cache_folder(folder)
    encoded = 0
    check_cache(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def encode_table(table: pa.Table) -> pa.Table:
        nonlocal encoded
        encoded += len(table)
        vectors = encode(table["text"].to_pylist())
        return pa.table(
            {name: pa.FixedSizeListArray.from_arrays(pa.array(m.ravel()), m.shape[1]) for name, m in vectors.items()}
        )

    parts = []
    for start in range(0, len(texts), FILE_TEXTS):
        part = list(texts[start : start + FILE_TEXTS])
        key = hashlib.sha256("\0".join([fingerprint, *columns, *part]).encode("utf-8", "surrogatepass")).hexdigest()
        path, before = folder / f"{key[:32]}.arrow", encoded
        intact = is_intact(path)
        rows = Dataset.from_dict({"text": part}).with_format("arrow")
        vectors = rows.map(
            encode_table,
            batched=True,
            batch_size=BATCH_TEXTS,
            remove_columns=["text"],
            desc="encoding",
            new_fingerprint=key,
            cache_file_name=str(path),
            load_from_cache_file=intact,
        )
        if not intact:
            record_hash(path)
        if encoded > before:
            logger.info("encoding: %s of %s texts", f"{start + len(part):,}", f"{len(texts):,}")
        parts.append(vectors)
    table = concatenate_datasets(parts).data
    blocks = {name: [c.flatten().to_numpy().reshape(len(c), -1) for c in table.column(name).chunks] for name in columns}
    return {name: CachedVectors(texts, blocks[name]) for name in columns}, encoded
