"""Embed text files into a store, in constant memory; a killed run resumes at its first missing shard."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining.ray import RETRIES, check_engine, failure_cause, import_ray, ray_cluster, resource_count
from st_xling.mining.store import BY_LANGUAGE, EmbeddingStore, Header, check_dtype, model_identity
from st_xling.mining.store_writer import StoreWriter
from st_xling.mining.text import (
    Files,
    Row,
    TextSummary,
    file_list,
    hash_sentence,
    read_rows,
    validate_text,
)
from st_xling.models import load_encoder
from st_xling.models.encode import encode as embed
from st_xling.models.encode import own_prompt
from st_xling.models.load import name_of
from st_xling.models.normalization import in_language, language_route
from st_xling.models.view import model_options
from st_xling.utils.console import progress_bar
from st_xling.utils.paths import check_outputs

logger = logging.getLogger(__name__)

#: Function that loads an encoder on the device passed as ``device``.
Load = Callable[..., Any]

_PATIENCE_S = 5


def encode(
    model: Any,
    text_files: Files,
    out: str | Path,
    *,
    format: str = "lines",
    errors: str = "strict",
    blank: str = "error",
    dtype: str = "float32",
    normalize: bool = True,
    prompt: str | None = None,
    language: str | None = None,
    batch_size: int | None = None,
    shard_rows: int = 16384,
    processes: int = 1,
    engine: str = "local",
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
    identity = model_identity(encoder, name_of(model))
    # The manifest has dim and dtype already: of the vectors as they are stored.
    names = {"dtype": "computed", "dim": "truncated"}
    way = {names.get(name, name): value for name, value in model_options(encoder, prompt=prompt).items()}
    settings = {"batch_size": batch_size, "shard_rows": shard_rows, "prompt": None, **way}
    if language is not None:
        route = language_route(encoder, language)
        encoder, settings = in_language(encoder, route), {**settings, **BY_LANGUAGE, "language": route}
    options: dict[str, Any] = {"batch_size": batch_size, "normalize_embeddings": normalize, "prompt": prompt}
    header = Header(dtype, normalize, identity, settings)
    with StoreWriter(out, header, summary, overwrite=overwrite) as writer:
        if writer.finished is not None:
            return EmbeddingStore.open(out)
        todo = _unwritten(read_rows(text_files, format=format, errors=errors), shard_rows, summary, writer)
        first = sum(shard.rows for shard in writer.shards)
        bar = progress_bar(total=summary.rows, initial=first, desc="encoding", unit="sentences", show=progress)
        if engine == "local" and processes == 1:
            pairs = ((window, embed(encoder, window.sentences, device=device, bar=bar, **options)) for window in todo)
        else:
            if isinstance(model, str) and language is None:
                load: Load = partial(load_encoder, model)
            else:
                encoder.to("cpu").share_memory()  # one copy of the weights for all processes
                load = partial(_move, encoder)
            if engine == "ray":
                pairs = embed_on_ray(load, todo, options)
            else:
                pairs = embed_in_processes(load, todo, options, processes=processes, device=device)
        with bar, closing(pairs):  # ends the processes, also when a shard cannot be written
            truncated = encoded = 0
            for window, vectors in pairs:
                truncated += count_truncated(encoder, window.sentences, prompt)
                encoded += len(vectors)
                start = sum(shard.rows for shard in writer.shards)
                where = window.place if place is None else lambda row, start=start: place(start + row)
                writer.write(vectors, place=where)
                bar.update(start + len(vectors) - bar.n)
        if truncated:
            logger.warning(
                "%s of %s sentences are longer than the model's maximum of %s tokens: their ends are not encoded.",
                *(f"{truncated:,}", f"{encoded:,}", encoder.max_seq_length),
            )
        writer.finish()
    return EmbeddingStore.open(out)


def count_truncated(encoder: Any, sentences: Sequence[str], prompt: str | None) -> int:
    """Count the sentences that are longer than the model's maximum length, with the prompt."""
    limit, tokenizer = encoder.max_seq_length, getattr(encoder, "tokenizer", None)
    if not limit or not callable(tokenizer):
        return 0
    prompt = own_prompt(encoder) if prompt is None else prompt
    # A token has at least one byte, so most sentences need not be tokenized again.
    long = [prompt + sentence for sentence in sentences if len((prompt + sentence).encode("utf-8")) > limit - 2]
    ids = tokenizer(long, truncation=False, verbose=False, return_attention_mask=False)["input_ids"] if long else []
    return sum(len(row) > limit for row in ids)


@dataclass(frozen=True)
class Window:
    """Lines whose sentences are embedded together; batches depend on them alone."""

    rows: Sequence[Row]

    @cached_property
    def sentences(self) -> list[str]:
        return [row.sentence for row in self.rows]

    def place(self, row: int) -> str:
        """Return file and line of a row of this window."""
        return f"{self.rows[row].path}:{self.rows[row].line}"


def _unwritten(rows: Iterator[Row], size: int, summary: TextSummary, writer: StoreWriter) -> Iterator[Window]:
    """Yield windows of ``size`` rows, from the first that is not complete in the store.

    Raises:
        ValueError: After the last one, if the text is not the one that was validated.
    """
    digest, done = hashlib.sha256(), len(writer.shards)
    for number in count():
        window = Window(list(islice(rows, size)))
        if not window.rows:
            break
        for sentence in window.sentences:
            hash_sentence(digest, sentence)
        if number >= done:
            yield window
    if digest.hexdigest() != summary.sha256:
        writer.resume = False  # some shards are of another text
        raise ValueError(
            f"{', '.join(summary.files)}: the text was edited while it was embedded. Run the same command again."
        )


def embed_in_processes(
    load: Load, windows: Iterable[Window], options: dict[str, Any], *, processes: int, device: str | None = None
) -> Generator[tuple[Window, np.ndarray]]:
    """Embed each window in one of several processes, and yield the windows in order with their vectors.

    The pool of sentence-transformers waits forever if one of its processes is killed. These processes only receive
    sentences and send vectors, so that a killed one leaves nothing behind, and all end when this process does.

    Args:
        load: Called in each process with its device.
        windows: Windows, read ahead by one per process.
        options: Options of the encoder.
        processes: Number of processes.
        device: Device of all of them; by default the GPUs in turn, otherwise the CPU, whose threads they share.
    Raises:
        ValueError: If a process cannot load or run the encoder for a reason that the user can correct.
        ChildProcessError: If a process was killed.
        RuntimeError: For any other error of a process.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    context.set_forkserver_preload([__name__])  # imported once, not by each process
    threads = max(1, torch.get_num_threads() // processes)
    workers: list[tuple[Connection, Any]] = []
    busy = deque[tuple[Window, Connection, Any]]()
    try:
        for number in range(processes):
            ours, theirs = context.Pipe()
            place = device or (f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu")
            process = context.Process(target=_work, args=(theirs, load, place, threads, options), daemon=True)
            process.start()
            theirs.close()
            workers.append((ours, process))
        # Each process has one window at a time, and they answer in turn: a send never waits for one that is at work.
        idle = list(workers)
        for window in windows:
            done = []
            if not idle:
                previous, *worker = busy.popleft()
                done, idle = [(previous, _receive(*worker))], [(worker[0], worker[1])]
            connection, process = idle.pop()
            try:
                connection.send(window.sentences)
            except OSError:
                raise _killed(process) from None
            busy.append((window, connection, process))
            yield from done
        while busy:
            window, connection, process = busy.popleft()
            yield window, _receive(connection, process)
    finally:
        for connection, _ in workers:
            connection.close()  # an idle process then ends by itself, and tidily
        for _, process in workers:
            process.join(_PATIENCE_S)
            process.terminate()
            process.join()


def _receive(connection: Connection, process: Any) -> np.ndarray:
    try:
        answer = connection.recv()
    except (EOFError, OSError):
        raise _killed(process) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _killed(process: Any) -> ChildProcessError:
    process.join(_PATIENCE_S)
    return ChildProcessError(
        f"a process that embeds was killed (exit status {process.exitcode}), for want of memory perhaps; run the same "
        "command again, with fewer processes or a smaller batch."
    )


def _work(connection: Connection, load: Load, device: str, threads: int, options: dict[str, Any]) -> None:
    """Embed until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends this process
    torch.set_num_threads(threads)
    encoder = None
    try:
        while True:
            sentences = connection.recv()
            try:
                encoder = encoder or load(device=device)
                answer: Any = embed(encoder, sentences, device=device, **options)
            except Exception as error:
                kind = ValueError if isinstance(error, (ValueError, OSError)) else RuntimeError
                answer = kind(f"{type(error).__name__} in a process that embeds: {error}")
            connection.send(answer)
    except (EOFError, ConnectionError):
        return


def _move(encoder: Any, device: str) -> Any:
    return encoder.to(device)


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
        running: deque[tuple[Window, Any]] = deque()
        for window in windows:
            running.append((window, task.remote(*encoder, window.sentences)))
            if len(running) >= 2 * (gpus or max(1, int(resource_count(ray, "CPU")) // threads)):
                yield _receive_from_ray(ray, *running.popleft())
        while running:
            yield _receive_from_ray(ray, *running.popleft())


def _embed_on_worker(
    load: list[Any], key: bytes, device: str, threads: int, options: dict[str, Any], sentences: list[str]
) -> np.ndarray:
    torch.set_num_threads(threads)
    if key not in _encoders:
        _encoders.clear()
        _encoders[key] = import_ray().get(load[0])(device=device)
    return embed(_encoders[key], sentences, device=device, **options)


# Encoder that this worker has loaded, by the call that it belongs to.
_encoders: dict[bytes, Any] = {}


def _receive_from_ray(ray: Any, window: Window, reference: Any) -> tuple[Window, np.ndarray]:
    try:
        return window, ray.get(reference).copy()
    except ray.exceptions.RayError as error:
        cause = failure_cause(ray, error, "encoding")
        if isinstance(cause, (ValueError, OSError)) and not isinstance(cause, ChildProcessError):
            raise ValueError(f"{type(cause).__name__} in a worker that embeds: {cause}") from None
        raise cause from None
