"""Text files in, an embedding store out: in constant memory, and killed at any moment it goes on."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.mining.embedding.encode_workers import embed, embed_in_processes, hand_over
from st_xling.mining.embedding.model_identity import model_identity
from st_xling.mining.embedding.windows import Window, unwritten, windows
from st_xling.mining.search.find import check_engine
from st_xling.mining.stores.manifest import Header
from st_xling.mining.stores.shard_files import check_format
from st_xling.mining.stores.store import EmbeddingStore
from st_xling.mining.stores.writer import StoreWriter
from st_xling.mining.text.mining_text import Files, file_list, read_rows
from st_xling.mining.text.survey import survey_text
from st_xling.models import load_encoder
from st_xling.utils.paths import check_outputs


def encode(
    model: Any,
    text_files: Files,
    out: str | Path,
    *,
    format: str = "lines",
    errors: str = "strict",
    blank: str = "error",
    dtype: str = "float32",
    file_format: str = "safetensors",
    normalise: bool = True,
    prompt: str | None = None,
    batch_size: int = 128,
    shard_rows: int = 16384,
    processes: int = 1,
    engine: str = "local",
    device: str | None = None,
    append: bool = False,
    overwrite: bool = False,
    place: Callable[[int], str] | None = None,
    progress: bool = False,
) -> EmbeddingStore:
    """Embed every sentence of some text files and keep the vectors in a store.

    The text is read twice: once to find all its faults before anything is computed, once to embed it, ``shard_rows``
    sentences at a time; within these, sentences of similar length share a batch. Each shard is on the disk before the
    next is begun. Called again after it was killed, it goes on with the first shard that is not whole, and ends with
    the bytes of a run that was never killed, on the same kind of machine with the same number of threads: another
    number of threads, or a GPU in place of a CPU, may change last bits.

    Args:
        model: A :class:`~sentence_transformers.SentenceTransformer`, or the Hub id or folder of one.
        text_files: One file or several, which count as one text; plain, ``.gz``, ``.xz`` or ``.zst``.
        out: Folder of the store.
        format: ``"lines"``, ``"bucc"`` (``id TAB sentence``) or ``"jsonl"``; see
            :mod:`st_xling.mining.text.mining_text`.
        errors: ``"strict"``, or ``"replace"`` for U+FFFD in place of bytes that are not UTF-8; such lines are counted.
        blank: ``"error"``, or ``"keep"`` to give lines without a sentence a vector and note them in the manifest.
        dtype: Type that is kept: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        file_format: ``"safetensors"`` or ``"npy"``.
        normalise: Scale each vector to length 1 before it is rounded to ``dtype``.
        prompt: Put before every sentence, such as ``"query: "``; else the model's default prompt, if it has one.
        batch_size: Sentences of a batch.
        shard_rows: Sentences of a shard.
        processes: Processes that embed, each a shard at a time; on the GPUs in turn, else on the CPU, where they
            share this process's threads.
        engine: ``"local"``, or ``"ray"`` for the workers of a ray cluster in place of processes: the same bytes.
        device: Where to embed; by default where ``model`` is, or GPUs where there are any.
        append: Add the text to a finished store, which the same model and settings have written.
        overwrite: Replace another store.
        place: Says where a sentence comes from, by its row, in errors; by default its file and line.
        progress: Show bars on stderr.
    Returns:
        The store.
    Raises:
        ValueError: For a text with faults, a model that cannot be loaded, vectors that are NaN, infinite or zero (by
            file and line), a store that holds something else, or a text that is edited meanwhile.
        OSError: For a full disk; what is whole stays.
    """
    for name, value in (("batch_size", batch_size), ("shard_rows", shard_rows), ("processes", processes)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1: got {value}.")
    check_engine(engine)
    check_format(dtype, file_format)
    check_outputs({}, [*file_list(text_files), model], folders={"out": out})
    survey = survey_text(text_files, format=format, errors=errors, blank=blank, progress=progress)
    encoder = model
    if isinstance(model, str):  # with several processes, only to see which it is
        encoder = load_encoder(model, device=device if processes == 1 else "cpu")
    identity = model_identity(encoder, model if isinstance(model, str) else None)
    settings = {"batch_size": batch_size, "shard_rows": shard_rows, "prompt": prompt}
    options = {"batch_size": batch_size, "normalize_embeddings": normalise, "prompt": prompt}
    header = Header(dtype, file_format, normalise, identity, settings)
    with StoreWriter(out, header, asdict(survey), append=append, overwrite=overwrite) as writer:
        if writer.finished is None:
            parts = windows(read_rows(text_files, format=format, errors=errors), shard_rows, survey)
            todo = unwritten(parts, writer)
            if engine == "local" and processes == 1:
                pairs = ((part, embed(encoder, part.sentences, options, device)) for part in todo)
            else:
                load = partial(_load, model) if isinstance(model, str) else hand_over(encoder)
                if engine == "ray":
                    from st_xling.mining.ray import embed_on_ray

                    pairs = embed_on_ray(load, todo, options)
                else:
                    pairs = embed_in_processes(load, todo, options, processes=processes, device=device)
            _write(writer, pairs, survey.rows, place, progress)
    return EmbeddingStore.open(out)


def _load(name: str, device: str | None) -> Any:
    return load_encoder(name, device=device)


def _write(
    writer: StoreWriter,
    pairs: Generator[tuple[Window, np.ndarray]],
    rows: int,
    place: Callable[[int], str] | None,
    progress: bool,
) -> None:
    whole = sum(shard.rows for shard in writer.shards)
    with tqdm(total=rows, initial=whole, desc="encoding", unit=" sentences", disable=not progress) as bar:
        with closing(pairs):  # ends the processes, also when a shard cannot be written
            for part, vectors in pairs:
                first = sum(shard.rows for shard in writer.shards)
                named = part.place if place is None else lambda row, first=first: place(first + row)
                writer.write(vectors, text_sha256=part.sha256, place=named)
                bar.update(len(vectors))
    writer.finish()
