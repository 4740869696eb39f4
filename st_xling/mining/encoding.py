"""Encoders of text files, which write stores shard by shard, here or on a Ray cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining.ray import RETRIES, check_engine, failure_cause, import_ray, ray_cluster, resource_count
from st_xling.mining.store import (
    BY_LANGUAGE,
    STORED_NAMES,
    EmbeddingStore,
    Header,
    ShardVectors,
    model_identity,
    write_shards,
)
from st_xling.mining.text import Files, Row, TextSummary, file_list, read_rows, validate_text
from st_xling.models import load_encoder
from st_xling.models.encode import count_truncated, warn_of_truncated
from st_xling.models.encode import encode as embed
from st_xling.models.normalization import in_language, language_route, language_tasks
from st_xling.models.view import model_options
from st_xling.utils.console import progress_bar
from st_xling.utils.options import BlankLines, Engine, Errors, StoreDtype, TextFormat, check_choice
from st_xling.utils.paths import check_outputs
from st_xling.utils.signature import name_of

#: Lines whose sentences are embedded together; batches depend on them alone.
Window = Sequence[Row]

# Encoder of this worker of a cluster, by the call that it belongs to.
_worker: dict[bytes, Any] = {}


def encode(
    model: Any,
    text_files: Files,
    out: str | Path,
    *,
    format: TextFormat = "lines",
    errors: Errors = "strict",
    blank: BlankLines = "error",
    dtype: StoreDtype = "float32",
    normalize: bool = True,
    prompt: str | None = None,
    language: str | None = None,
    batch_size: int | None = None,
    shard_rows: int = 16384,
    engine: Engine = "local",
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbeddingStore:
    """Embed every sentence of some text files and write the vectors to a store.

    The text is read twice: once to find all its faults before anything is computed, once to embed it, ``shard_rows``
    sentences at a time; within these, sentences of similar length share a batch, see :mod:`st_xling.models.encode`. The
    model computes in the type of its weights. Each shard is on the disk before the next one begins. Repeat the same
    call to resume a killed one at the first shard that is not complete. A warning counts the sentences that are longer
    than the model's maximum length.

    Args:
        model: A :class:`~sentence_transformers.SentenceTransformer`, or the Hub id or folder of one.
        text_files: One file or several, which count as one text; plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.
        out: Folder of the store.
        format: ``"lines"``, ``"bucc"`` (``id TAB sentence``) or ``"jsonl"``; see :mod:`st_xling.mining.text`.
        errors: ``"strict"``, or ``"replace"`` for U+FFFD in place of bytes that are not UTF-8; such lines are counted.
        blank: ``"error"``, or ``"keep"`` to give lines without a sentence a vector and note them in the manifest.
        dtype: Type in which vectors are stored: ``"float32"``, ``"float16"`` or ``"int8"``, with a scale a row.
        normalize: Scale each vector to length 1 before it is rounded to ``dtype``.
        prompt: Text put before every sentence, such as ``"query: "``; by default the model's own prompt, if any.
        language: Language of the text, for a model that is centered by language: its mean is subtracted, not the joint
            one.
        batch_size: Maximum number of sentences in a batch; by default as many as suit the device.
        shard_rows: Number of sentences in a shard.
        engine: ``"local"``, or ``"ray"`` for the workers of a Ray cluster, such as all GPUs of this machine.
        device: Device to embed on; by default that of ``model``, or GPUs if there are any.
        overwrite: Replace another store.
        progress: Show progress bars on stderr.
    Returns:
        The store.
    Raises:
        ValueError: For a text with faults, a model that cannot be loaded or has no mean of ``language``, vectors that
            are NaN, infinite or zero (by file and line), or a store of something else.
        OSError: For a full disk; complete shards are kept.
    """
    for name, value in (("batch_size", batch_size), ("shard_rows", shard_rows)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1: got {value}.")
    check_engine(engine)
    check_choice("dtype", dtype, StoreDtype)
    check_outputs({}, [*file_list(text_files), name_of(model)], folders={"out": out})
    reading: dict[str, Any] = {"format": format, "errors": errors}
    summary = validate_text(text_files, **reading, blank=blank, progress=progress)
    encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
    if language is not None:
        encoder = encoder.in_language(language_route(encoder.model, language))
    return encoder.encode_text(
        text_files,
        out,
        summary,
        **reading,
        normalize=normalize,
        shard_rows=shard_rows,
        overwrite=overwrite,
        progress=progress,
    )


class Encoder:
    """A model with the settings by which it encodes.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`.
        batch_size: As for :func:`encode`, as are the options below.
        dtype: Type in which vectors are stored.
        prompt: Text put before every sentence.
        device: Device to embed on.
        engine: ``"local"`` or ``"ray"``; the vectors are the same.
    Raises:
        ValueError: If nothing can be loaded at that name.

    Attributes:
        identity: Name and fingerprint of the model.
        way: Encoding settings, as :func:`~st_xling.models.view.model_options` returns them.
        language: Language whose mean is subtracted, of a model that is centered by language; ``None``: the joint mean.
    """

    language: str | None = None

    def __init__(
        self,
        model: Any,
        *,
        batch_size: int | None = None,
        dtype: StoreDtype = "float32",
        prompt: str | None = None,
        device: str | None = None,
        engine: Engine = "local",
    ) -> None:
        name = name_of(model)
        self.model = load_encoder(model, device=device) if isinstance(model, str) else model
        self.name = name or type(model).__name__
        self.batch_size, self.dtype, self.prompt, self.device, self.engine = batch_size, dtype, prompt, device, engine
        self.identity = model_identity(self.model, name)
        self.way = model_options(self.model, prompt=prompt)

    @property
    def dim(self) -> int | None:
        """Dimension of the vectors, if the model knows it."""
        return self.model.truncate_dim or self.model.get_embedding_dimension()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the vectors depend on."""
        return {
            "model": self.identity.fingerprint,
            "computed": self.way.get("dtype"),
            "dtype": self.dtype,
            "prompt": self.prompt,
            "batch size": self.batch_size,
            **({} if self.language is None else {"language": self.language}),
        }

    def in_language(self, language: str) -> Encoder:
        """Return a copy that subtracts the mean of a language of the model."""
        encoder = copy(self)
        encoder.language, encoder.way = language, {**self.way, **BY_LANGUAGE}
        return encoder

    def in_languages(self, languages: Mapping[str, str | None]) -> dict[str, Encoder]:
        """Return a copy for each side that subtracts the mean of the side's language, if the model has all of them.

        Own and joint means are not mixed.
        """
        tasks, _ = language_tasks(self.model, list(languages.values()))
        own = [task for task in tasks if task is not None]
        if len(own) < len(languages):
            return dict.fromkeys(languages, self)
        return {side: self.in_language(task) for side, task in zip(languages, own)}

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Embed sentences in memory. *Shape:* ``(sentences, dim)``"""
        return embed(self.model, sentences, batch_size=self.batch_size, prompt=self.prompt, device=self.device)

    def encode_sentences(
        self, sentences: Path, out: Path, *, place: Callable[[int], str], progress: bool = False
    ) -> EmbeddingStore:
        """Embed the sentences in a file of ``{"text": …}`` lines into a store; an unfinished one is resumed.

        Args:
            sentences: The file.
            out: The store.
            place: Returns the place of a sentence, by its row, for errors.
            progress: Show a progress bar on stderr.
        """
        summary = validate_text(sentences, format="jsonl", progress=progress)
        return self.encode_text(sentences, out, summary, format="jsonl", place=place, progress=progress)

    def encode_text(
        self,
        text_files: Files,
        out: str | Path,
        summary: TextSummary,
        *,
        format: TextFormat,
        errors: Errors = "strict",
        normalize: bool = True,
        shard_rows: int = 16384,
        overwrite: bool = False,
        place: Callable[[int], str] | None = None,
        progress: bool = False,
    ) -> EmbeddingStore:
        """Embed a text that :func:`~st_xling.mining.text.validate_text` has summarized into a store.

        Args:
            text_files: As for :func:`encode`, as all that follow unless stated otherwise.
            out: As for :func:`encode`.
            summary: Summary of the text.
            format: As for :func:`encode`.
            errors: As for :func:`encode`.
            normalize: As for :func:`encode`.
            shard_rows: As for :func:`encode`.
            overwrite: As for :func:`encode`.
            place: Returns the place of a sentence, by its row, for errors; by default its file and line.
            progress: Show a progress bar on stderr.
        """
        model = self.model if self.language is None else in_language(self.model, self.language)
        options: dict[str, Any] = {"batch_size": self.batch_size, "normalize_embeddings": normalize}
        options["prompt"] = self.prompt
        settings: dict[str, Any] = {"batch_size": self.batch_size, "shard_rows": shard_rows, "prompt": None}
        settings |= {STORED_NAMES.get(name, name): value for name, value in self.way.items()}
        settings |= {} if self.language is None else {"language": self.language}

        def place_of(window: Window, start: int, row: int) -> str:
            return f"{window[row].path}:{window[row].line}" if place is None else place(start + row)

        def shards(done: Sequence[int]) -> Iterator[ShardVectors]:
            first = start = sum(done)
            rows = islice(read_rows(text_files, format=format, errors=errors), first, None)
            windows = iter(lambda: list(islice(rows, shard_rows)), [])
            bar = progress_bar(total=summary.rows, initial=first, desc="encoding", unit="sentences", show=progress)
            if self.engine == "ray":
                pairs = embed_on_ray(model.to("cpu").to, windows, options)
            else:
                pairs = (
                    (window, embed(model, _sentences(window), device=self.device, bar=bar, **options))
                    for window in windows
                )
            truncated = 0
            with bar, closing(pairs):  # ends the cluster, also when a shard cannot be written
                for window, vectors in pairs:
                    truncated += count_truncated(model, _sentences(window), self.prompt)
                    yield vectors, partial(place_of, window, start)
                    start += len(vectors)
                    bar.update(start - bar.n)
            warn_of_truncated(truncated, start - first, model)

        header = Header(self.dtype, normalize, self.identity, settings)
        return write_shards(out, header, summary, shards, overwrite=overwrite)


def _sentences(window: Window) -> list[str]:
    return [row.sentence for row in window]


def embed_on_ray(
    load: Callable[..., Any], windows: Iterable[Window], options: dict[str, Any]
) -> Generator[tuple[Window, np.ndarray]]:
    """Embed each window on a worker of a Ray cluster, and yield the windows in order with their vectors.

    A task has as many CPUs as this process has threads, or a GPU if the cluster has any. The windows of a worker or
    node that is killed are embedded again elsewhere.

    Args:
        load: Called in each worker with its device.
        windows: Windows, read ahead by at most two per worker.
        options: Options of the encoder.
    Raises:
        ValueError: If ray is not installed, or a worker cannot load or run the encoder for a reason that the user can
            fix.
        ChildProcessError: If workers were killed repeatedly.
    """
    with ray_cluster() as ray:
        gpus = int(resource_count(ray, "GPU"))
        # More threads than a node has processors run slower, and would otherwise wait forever.
        largest = max(node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"])
        threads = min(torch.get_num_threads(), max(1, int(largest)))
        needed: dict[str, float] = {"num_gpus": 1} if gpus else {"num_cpus": threads}
        # Tasks, not actors: after the loss of a node there may be room for fewer. A worker keeps its encoder for the
        # next task (max_calls: also on a GPU).
        task = ray.remote(**needed, max_retries=RETRIES, max_calls=0)(_embed_on_worker)
        encoder = [ray.put(load)], os.urandom(8), "cuda" if gpus else "cpu", torch.get_num_threads(), options
        running: deque[tuple[Window, Any]] = deque()

        def finish_first() -> tuple[Window, np.ndarray]:
            window, reference = running.popleft()
            try:
                return window, ray.get(reference).copy()
            except ray.exceptions.RayError as error:
                raise failure_cause(ray, error, "encoding") from None

        for window in windows:
            running.append((window, task.remote(*encoder, _sentences(window))))
            workers = gpus or max(1, int(resource_count(ray, "CPU")) // threads)  # nodes may join, or be lost
            if len(running) > 2 * workers:
                yield finish_first()
        while running:
            yield finish_first()


def _embed_on_worker(
    load: list[Any], key: bytes, device: str, threads: int, options: dict[str, Any], sentences: list[str]
) -> np.ndarray:
    torch.set_num_threads(threads)
    if key not in _worker:
        _worker.clear()
        _worker[key] = import_ray().get(load[0])(device=device)
    return embed(_worker[key], sentences, device=device, **options)
