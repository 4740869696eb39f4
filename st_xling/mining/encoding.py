"""Encoders of text files, which write stores shard by shard, here or on a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining.ray import check_engine, map_on_ray
from st_xling.mining.store import BY_LANGUAGE, STORED_NAMES, EmbeddingStore, Manifest, model_identity, write_shards
from st_xling.mining.text import MiningText, TextSummary, summarize
from st_xling.models import load_encoder
from st_xling.models.encoding import count_truncated, warn_of_truncated
from st_xling.models.encoding import encode as embed
from st_xling.models.normalization import in_language, language_route, language_tasks
from st_xling.models.view import model_options
from st_xling.utils.cosines import Embeddings
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.options import Engine, StoreDtype, TextFormat, check_choice, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar

logger = logging.getLogger(__name__)


@helpful_arguments
def encode(
    model: Any,
    text_file: str | Path,
    out: str | Path,
    *,
    format: TextFormat | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    language: str | None = None,
    batch_size: int | None = None,
    shard_rows: int = 16384,
    engine: Engine = "local",
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbeddingStore:
    """Embed every sentence of a text file and write the vectors, scaled to length 1, to a store.

    The text is read twice: once to find all its faults before anything is computed, once to embed it, ``shard_rows``
    sentences at a time; within these, sentences of similar length share a batch, see :mod:`st_xling.models.encode`. The
    model computes in the type of its weights. Each shard is on the disk before the next one begins. Repeat the same
    call to resume a killed one at the first shard that is not complete. Warnings count the sentences that are longer
    than the model's maximum length, and the blank lines, which have vectors but are not mined.

    Args:
        model: A :class:`~sentence_transformers.SentenceTransformer`, or the Hub id or folder of one.
        text_file: UTF-8 text, plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.
        out: Folder of the store.
        format: ``"lines"``, ``"bucc"`` (``id TAB sentence``) or ``"jsonl"``; see :mod:`st_xling.mining.text`. By
            default lines, and lines that begin with ids are an error.
        dtype: Type in which vectors are stored: ``"float32"``, ``"float16"`` or ``"int8"``, with a scale a row.
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
    with closing(MiningText(text_file, format=format)) as text:
        check_outputs({}, [text_file, name_of(model)], folders={"out": out})
        summary = text.validate(progress=progress)
        encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
        if language is not None:
            encoder = encoder.in_language(language_route(encoder.model, language))
        store = encoder.encode_sentences(
            text, out, summary, place=text.place, shard_rows=shard_rows, overwrite=overwrite, progress=progress
        )
    if summary.blank_rows:
        logger.warning("%s lines without a sentence, kept", f"{len(summary.blank_rows):,}")
    return store


class Encoder:
    """A model with the settings by which it encodes.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`, perhaps yet to be loaded.
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
        if isinstance(model, LazyModel):
            self.model = model.load()
        self.name = name or type(model).__name__
        self.batch_size = batch_size
        self.dtype: StoreDtype = dtype
        self.prompt = prompt
        self.device = device
        self.engine: Engine = engine
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
        encoder.language = language
        encoder.way = {**self.way, **BY_LANGUAGE}
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
        self,
        sentences: Iterable[str],
        out: str | Path,
        text: TextSummary | None = None,
        *,
        place: Callable[[int], str],
        shard_rows: int = 16384,
        overwrite: bool = False,
        progress: bool = False,
    ) -> EmbeddingStore:
        """Embed sentences into a store; an unfinished one is resumed.

        Args:
            sentences: The sentences, which are read front to back, more than once.
            out: As for :func:`encode`, as all that follow unless stated otherwise.
            text: Summary of the sentences, if it is known.
            place: Returns the place of a sentence, by its row, for errors.
            shard_rows: As for :func:`encode`.
            overwrite: As for :func:`encode`.
            progress: Show a progress bar on stderr.
        """
        text = text or summarize(sentences)
        model = self.model if self.language is None else in_language(self.model, self.language)
        settings: dict[str, Any] = {"batch_size": self.batch_size, "shard_rows": shard_rows, "prompt": None}
        settings |= {STORED_NAMES.get(name, name): value for name, value in self.way.items()}
        settings |= {} if self.language is None else {"language": self.language}

        def embed_here(window: list[str], bar: Any) -> np.ndarray:
            return embed(
                model,
                window,
                batch_size=self.batch_size,
                prompt=self.prompt,
                normalize_embeddings=True,
                device=self.device,
                bar=bar,
            )

        def shards(start: int) -> Iterator[Embeddings]:
            # Sentences that are embedded together; batches depend on them alone.
            rest = islice(iter(sentences), start, None)
            windows = iter(lambda: list(islice(rest, shard_rows)), [])
            bar = progress_bar(total=text.rows, initial=start, desc="encoding", unit="sentences", show=progress)
            if self.engine == "ray":
                pairs = embed_on_ray(
                    model.to("cpu").to,
                    windows,
                    batch_size=self.batch_size,
                    prompt=self.prompt,
                    normalize_embeddings=True,
                )
            else:
                pairs = ((window, embed_here(window, bar)) for window in windows)
            done = truncated = 0
            with bar, closing(pairs):  # ends the cluster, also when a shard cannot be written
                for window, vectors in pairs:
                    truncated += count_truncated(model, window, self.prompt)
                    yield vectors
                    done += len(vectors)
                    bar.update(start + done - bar.n)
            warn_of_truncated(truncated, done, model)

        manifest = Manifest(dtype=self.dtype, normalized=True, model=self.identity, settings=settings, text=text)
        return write_shards(out, manifest, shards, place=place, overwrite=overwrite)


def embed_on_ray(
    load: Callable[..., Any],
    windows: Iterable[list[str]],
    *,
    batch_size: int | None = None,
    prompt: str | None = None,
    normalize_embeddings: bool = False,
) -> Generator[tuple[list[str], np.ndarray]]:
    """Embed windows of sentences on the workers of a cluster, and yield them in order with their vectors.

    Args:
        load: Called in each worker with its device; returns the encoder.
        windows: Sentences that are embedded together.
        batch_size: Maximum number of sentences in a batch.
        prompt: Text put before every sentence.
        normalize_embeddings: Scale each vector to length 1.
    """

    def start(device: str) -> Callable[[list[str]], np.ndarray]:
        return partial(
            embed,
            load(device=device),
            batch_size=batch_size,
            prompt=prompt,
            normalize_embeddings=normalize_embeddings,
            device=device,
        )

    return map_on_ray(start, windows, name="encoding", threads=torch.get_num_threads(), on_gpus=True)
