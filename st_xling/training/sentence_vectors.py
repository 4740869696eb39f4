"""Sentence vectors of any layers from one pass over the text, kept on disk so that no text is encoded twice.

A cache is a folder of Arrow files, each with the vectors of some thousand texts, a column of each kind: ``mean-7`` is
the mean of the token states of layer 7, ``output`` what a teacher makes of a text. A file's name is a hash of model,
columns and texts, so that several models, data sets and processes may share a folder. (A
:class:`~st_xling.utils.resumable.ResumableFolder` belongs to one task, and is locked against other processes.)
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


class LayerPooling(NamedTuple):
    """One kind of sentence vector, a column of the cache: a layer's token states, pooled."""

    layer: int
    pooling: Pooling = "mean"

    @property
    def name(self) -> str:
        return f"{self.pooling}-{self.layer}"


def layer_vectors(
    model: SentenceTransformer, texts: Sequence[str], columns: Sequence[LayerPooling]
) -> dict[str, np.ndarray]:
    """Vectors of every text, by the columns' names.

    Layers above the highest of them are not computed.

    Args:
        model: Encoder whose first module is a transformer; the modules after it are ignored.
        texts: Sentences.
        columns: Layers and how they are pooled.

    Returns:
        float32. *Shape of each:* ``(texts, hidden)``

    Raises:
        ValueError: A layer that the encoder lacks.
    """
    for column in columns:
        check_layer(model, column.layer)
    cut_model = cut_to_layer(model, max(column.layer for column in columns))
    hidden_size = int(cut_model[1].get_embedding_dimension())  # type: ignore[operator]
    modes = {column.pooling for column in columns}
    pooling_modules = {mode: PoolingModule(hidden_size, pooling_mode=mode) for mode in modes}
    matrices = {column.name: np.empty((len(texts), hidden_size), np.float32) for column in columns}
    with torch.inference_mode():
        for rows, features in token_batches(cut_model, texts):
            states = layer_states(cut_model, features)
            pooled: list[Tensor] = []
            for column in columns:
                pool = pooling_modules[column.pooling]
                pooled.append(pool({**features, "token_embeddings": states[column.layer]})["sentence_embedding"])
            # One copy from the device for all layers.
            all_vectors = torch.stack(pooled).float().cpu().numpy()
            for column, vectors in zip(columns, all_vectors):
                matrices[column.name][rows] = vectors
    return matrices


class CachedVectors:
    """Vectors of texts in files that are mapped into memory.

    Args:
        texts: The texts.
        blocks: Their vectors in order. *Shape of each:* ``(rows, dim)``
    """

    def __init__(self, texts: Sequence[str], blocks: Sequence[np.ndarray]) -> None:
        self.blocks = blocks
        self.starts = np.cumsum([0, *map(len, blocks)])  # first row of each block, and the number of rows
        self.dim = int(blocks[0].shape[1])
        keys = exact_keys(texts)
        self.order = keys.argsort()
        self.keys = keys[self.order]

    def of(self, texts: Sequence[str]) -> Tensor:
        """Vectors of some of the texts. *Shape:* ``(texts, dim)``"""
        positions, is_present = find_sorted(self.keys, exact_keys(texts))
        assert is_present.all(), f"{texts[int(is_present.argmin())]!r} was not encoded"
        return self[self.order[positions]]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: Any) -> Tensor:
        """float32. *Shape:* ``(rows, dim)``"""
        rows = np.arange(len(self))[rows]
        block_numbers = np.searchsorted(self.starts, rows, side="right") - 1
        vectors = [self.blocks[number][row - self.starts[number]] for number, row in zip(block_numbers, rows)]
        return torch.from_numpy(np.stack(vectors))


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
        fingerprint: Fingerprint of the model, see :func:`~st_xling.models.sidecar.model_fingerprint`.
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
        arrays: dict[str, pa.Array] = {}
        for name, matrix in encode(table["text"].to_pylist()).items():
            arrays[name] = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
        return pa.table(arrays)

    parts: list[Dataset] = []
    for start in range(0, len(texts), FILE_TEXTS):
        file_texts = list(texts[start : start + FILE_TEXTS])
        encoded_before = encoded
        parts.append(
            _cached_file(file_texts, encode_table, key=_file_key(fingerprint, columns, file_texts), folder=folder)
        )
        if encoded > encoded_before:
            logger.info("encoding: %s of %s texts", f"{start + len(file_texts):,}", f"{len(texts):,}")
    table = concatenate_datasets(parts).data
    vectors: dict[str, CachedVectors] = {}
    for name in columns:
        blocks = [chunk.flatten().to_numpy().reshape(len(chunk), -1) for chunk in table.column(name).chunks]
        vectors[name] = CachedVectors(texts, blocks)
    return vectors, encoded


def _file_key(fingerprint: str, columns: Sequence[str], texts: Sequence[str]) -> str:
    """Return the hash by which the vectors of some texts are found again."""
    content = "\0".join([fingerprint, *columns, *texts])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _cached_file(texts: list[str], encode_table: Callable[[pa.Table], pa.Table], *, key: str, folder: Path) -> Dataset:
    """Map the file of some texts into memory, after writing it if it is missing or damaged."""
    path = folder / f"{key[:32]}.arrow"
    intact = is_intact(path)
    dataset = Dataset.from_dict({"text": texts}).with_format("arrow")
    vectors = dataset.map(
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
    return vectors
