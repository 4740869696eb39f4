"""Embed text files into a store, in constant memory; a killed run resumes at its first missing shard."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from st_xling.mining.ray import RETRIES, check_engine, failure_cause, import_ray, ray_cluster, resource_count
from st_xling.mining.store import (
    BY_LANGUAGE,
    STORED_NAMES,
    EmbeddingStore,
    Header,
    ShardVectors,
    check_dtype,
    model_identity,
    write_shards,
)
from st_xling.mining.text import Files, Row, TextSummary, file_list, hash_sentence, read_rows, validate_text
from st_xling.models import load_encoder
from st_xling.models.encode import count_truncated, warn_of_truncated
from st_xling.models.encode import encode as embed
from st_xling.models.normalization import in_language, language_route
from st_xling.models.view import model_options
from st_xling.utils.console import progress_bar
from st_xling.utils.options import BlankLines, Engine, Errors, StoreDtype, TextFormat
from st_xling.utils.paths import check_outputs
from st_xling.utils.signature import name_of

#: Function that loads an encoder on the device passed as ``device``.
Load = Callable[..., Any]

# Encoder of this worker process, or what loads it, by the call that it belongs to.
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
    processes: int = 1,
    engine: Engine = "local",
    device: str | None = None,
    overwrite: bool = False,
    place: Callable[[int], str] | None = None,
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
        processes: Number of processes that embed, each a shard at a time; on the GPUs in turn, otherwise on the CPU,
            where they share this process's threads.
        engine: ``"local"``, or ``"ray"`` for the workers of a Ray cluster in place of processes.
        device: Device to embed on; by default that of ``model``, or GPUs if there are any.
        overwrite: Replace another store.
        place: Returns the place of a sentence, by its row, for errors; by default its file and line.
        progress: Show progress bars on stderr.
    Returns:
        The store.
    Raises:
        ValueError: For a text with faults, a model that cannot be loaded or has no mean of ``language``, vectors that
            are NaN, infinite or zero (by file and line), a store of something else, or a text that is edited meanwhile.
        OSError: For a full disk; complete shards are kept.
    """
    for name, value in (("batch_size", batch_size), ("shard_rows", shard_rows), ("processes", processes)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1: got {value}.")
    check_engine(engine)
    check_dtype(dtype)
    check_outputs({}, [*file_list(text_files), name_of(model)], folders={"out": out})
    summary = validate_text(text_files, format=format, errors=errors, blank=blank, progress=progress)
    encoder = model
    if isinstance(model, str):  # with several processes, only to see which it is
        encoder = load_encoder(model, device=device if processes == 1 else "cpu")
    way = {STORED_NAMES.get(name, name): value for name, value in model_options(encoder, prompt=prompt).items()}
    settings = {"batch_size": batch_size, "shard_rows": shard_rows, "prompt": None, **way}
    header = Header(dtype, normalize, model_identity(encoder, name_of(model)), settings)
    if language is not None:
        route = language_route(encoder, language)
        encoder = in_language(encoder, route)
        settings |= {**BY_LANGUAGE, "language": route}
    options: dict[str, Any] = {"batch_size": batch_size, "normalize_embeddings": normalize, "prompt": prompt}

    def shards(done: Sequence[int]) -> Iterator[ShardVectors]:
        first = start = sum(done)
        windows = _windows(read_rows(text_files, format=format, errors=errors), shard_rows, summary, skip=len(done))
        bar = progress_bar(total=summary.rows, initial=first, desc="encoding", unit="sentences", show=progress)
        if engine == "local" and processes == 1:
            pairs = (
                (window, embed(encoder, window.sentences, device=device, bar=bar, **options)) for window in windows
            )
        else:
            if isinstance(model, str) and language is None:
                load: Load = partial(load_encoder, model)
            else:
                encoder.to("cpu").share_memory()  # one copy of the weights for all processes
                load = encoder.to
            if engine == "ray":
                pairs = embed_on_ray(load, windows, options)
            else:
                pairs = embed_in_processes(load, windows, options, processes=processes, device=device)
        truncated = 0
        with bar, closing(pairs):  # ends the processes, also when a shard cannot be written
            for window, vectors in pairs:
                truncated += count_truncated(encoder, window.sentences, prompt)
                yield vectors, window.place if place is None else partial(_shifted, place, start)
                start += len(vectors)
                bar.update(start - bar.n)
        warn_of_truncated(truncated, start - first, encoder)

    return write_shards(out, header, summary, shards, overwrite=overwrite)


def _shifted(place: Callable[[int], str], start: int, row: int) -> str:
    return place(start + row)


class Window(NamedTuple):
    """Lines whose sentences are embedded together; batches depend on them alone."""

    rows: Sequence[Row]

    @property
    def sentences(self) -> list[str]:
        return [row.sentence for row in self.rows]

    def place(self, row: int) -> str:
        """Return file and line of a row of this window."""
        return f"{self.rows[row].path}:{self.rows[row].line}"


def _windows(rows: Iterator[Row], size: int, summary: TextSummary, *, skip: int) -> Iterator[Window]:
    """Yield windows of ``size`` rows after the first ``skip``.

    Raises:
        ValueError: After the last one, if the text is not the one that was validated.
    """
    digest, number = hashlib.sha256(), 0
    while window := list(islice(rows, size)):
        for row in window:
            hash_sentence(digest, row.sentence)
        if number >= skip:
            yield Window(window)
        number += 1
    if digest.hexdigest() != summary.sha256:
        raise ValueError(
            f"{', '.join(summary.files)}: the text was edited while it was embedded. Run the same command again."
        )


def embed_in_processes(
    load: Load, windows: Iterable[Window], options: dict[str, Any], *, processes: int, device: str | None = None
) -> Generator[tuple[Window, np.ndarray]]:
    """Embed each window in one of several processes, and yield the windows in order with their vectors.

    The pool of sentence-transformers waits forever if one of its processes is killed.

    Args:
        load: Called in each process with its device.
        windows: Windows, read ahead by one per process.
        options: Options of the encoder.
        processes: Number of processes.
        device: Device of all of them; by default the GPUs in turn, otherwise the CPU, whose threads they share.
    Raises:
        ChildProcessError: If a process was killed.
        Exception: That a process raised.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    context.set_forkserver_preload([__name__])  # imported once, not by each process
    devices = context.SimpleQueue()
    for number in range(processes):
        devices.put(device or (f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"))
    threads = max(1, torch.get_num_threads() // processes)
    pool = ProcessPoolExecutor(processes, context, initializer=_start, initargs=(load, devices, threads))
    try:
        embed_one = partial(_embed_in_worker, options)
        for window, future in _read_ahead(windows, partial(pool.submit, embed_one), lambda: processes):
            yield window, future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a process that embeds was killed, for want of memory perhaps; run the same command again, with fewer "
            "processes or a smaller batch."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _read_ahead(
    windows: Iterable[Window], submit: Callable[[list[str]], Any], most: Callable[[], int]
) -> Iterator[tuple[Window, Any]]:
    """Submit the sentences of each window, and yield the windows in order with what :func:`submit` returned."""
    running: deque[tuple[Window, Any]] = deque()
    for window in windows:
        running.append((window, submit(window.sentences)))
        if len(running) > most():
            yield running.popleft()
    yield from running


def _start(load: Load, devices: Any, threads: int) -> None:
    """Prepare a worker process, which ends when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all; the parent reports it
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker[b"load"] = partial(load, device=devices.get())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _embed_in_worker(options: dict[str, Any], sentences: list[str]) -> np.ndarray:
    if b"encoder" not in _worker:
        _worker[b"encoder"] = _worker[b"load"]()
    return embed(_worker[b"encoder"], sentences, **options)


def embed_on_ray(
    load: Load, windows: Iterable[Window], options: dict[str, Any]
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
        submit = partial(task.remote, *encoder)
        workers = lambda: gpus or max(1, int(resource_count(ray, "CPU")) // threads)  # noqa: E731
        for window, reference in _read_ahead(windows, submit, lambda: 2 * workers()):
            try:
                yield window, ray.get(reference).copy()
            except ray.exceptions.RayError as error:
                raise failure_cause(ray, error, "encoding") from None


def _embed_on_worker(
    load: list[Any], key: bytes, device: str, threads: int, options: dict[str, Any], sentences: list[str]
) -> np.ndarray:
    torch.set_num_threads(threads)
    if key not in _worker:
        _worker.clear()
        _worker[key] = import_ray().get(load[0])(device=device)
    return embed(_worker[key], sentences, device=device, **options)
