"""Embeddings that are there already, as a store."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from st_xling.mining.stores.manifest import Header, ModelIdentity
from st_xling.mining.stores.store import EmbeddingStore
from st_xling.mining.stores.writer import StoreWriter
from st_xling.mining.text.survey import TextSurvey, hash_sentence
from st_xling.utils.cosines import Embeddings


def write_store(
    folder: str | Path,
    embeddings: Embeddings,
    *,
    sentences: Sequence[str] | None = None,
    model: ModelIdentity | None = None,
    normalised: bool = False,
    dtype: str = "float32",
    file_format: str = "safetensors",
    shard_rows: int = 16384,
    append: bool = False,
    overwrite: bool = False,
) -> EmbeddingStore:
    """Write vectors, from another tool or a memory map, as a store.

    Args:
        folder: A new or empty folder.
        embeddings: numpy, a memory map (:func:`~st_xling.mining.open_laser`) or torch. *Shape:* ``(rows, dim)``
        sentences: What they are of, so that a miner can check its text; not kept.
        model: What made them.
        normalised: Whether they have length 1; they are written as they are.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        file_format: ``"safetensors"`` or ``"npy"``.
        shard_rows: Rows of a file.
        append: Add to a finished store of the same model and types.
        overwrite: Replace another store.
    Raises:
        ValueError: For vectors that are NaN, infinite or zero, by row; for other numbers of sentences and rows; as
            :class:`StoreWriter`.
        OSError: For a full disk.
    """
    rows = embeddings.shape[0]
    if sentences is not None and len(sentences) != rows:
        raise ValueError(f"expected a sentence a vector: got {len(sentences)} sentences and {rows} vectors.")
    if rows == 0:
        raise ValueError("expected at least one vector: got none.")
    if shard_rows < 1:
        raise ValueError(f"shard_rows must be at least 1: got {shard_rows}; leave it out for the default.")
    whole, parts = hashlib.sha256(), []
    stream = iter(sentences or ())
    for start in range(0, rows, shard_rows):
        part = hashlib.sha256()
        for sentence in islice(stream, min(shard_rows, rows - start)):
            hash_sentence(whole, sentence)
            hash_sentence(part, sentence)
        parts.append(part.hexdigest() if sentences is not None else "")
    text = TextSurvey((), "", "", rows, whole.hexdigest() if sentences is not None else "")
    header = Header(dtype, file_format, normalised, model or ModelIdentity())
    with StoreWriter(folder, header, asdict(text), append=append, overwrite=overwrite, resume=False) as writer:
        for number, start in enumerate(range(0, rows, shard_rows)):
            writer.write(
                embeddings[start : start + shard_rows],
                text_sha256=parts[number],
                place=lambda row, start=start: f"row {start + row}",  # type: ignore[misc]
            )
        writer.finish()
    return EmbeddingStore.open(folder)
