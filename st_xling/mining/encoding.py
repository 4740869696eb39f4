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

from st_xling.mining.options import EncodingOptions
from st_xling.mining.ray import map_on_ray
from st_xling.mining.store import BY_LANGUAGE, STORED_NAMES, EmbeddingStore, Manifest, model_identity, write_shards
from st_xling.mining.text import MiningText, TextSummary, summarize
from st_xling.models import load_encoder
from st_xling.models.encoding import count_truncated, warn_of_truncated
from st_xling.models.encoding import encode as embed
from st_xling.models.normalization import in_language, language_route, language_tasks
from st_xling.models.view import model_options
from st_xling.utils.cosines import Embeddings
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.options import TextFormat, check_number, helpful_arguments
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
    encoding: EncodingOptions = EncodingOptions(),
    format: TextFormat | None = None,
    language: str | None = None,
    shard_rows: int = 16384,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbeddingStore:
    """Embed every sentence of a text file and write the vectors, scaled to length 1, to a store.

    The text is read twice: once to find all its faults before anything is computed, once to embed it, ``shard_rows``
    sentences at a time; within these, sentences of similar length share a batch, see :mod:`st_xling.models.encoding`.
    The model computes in the type of its weights. Each shard is on the disk before the next one begins. Repeat the same
    call to resume a killed one at the first shard that is not complete. Warnings count the sentences that are longer
    than the model's maximum length, and the blank lines, which have vectors but are not mined.

    Args:
        model: A :class:`~sentence_transformers.SentenceTransformer`, or the Hub id or folder of one.
        text_file: UTF-8 text, plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.
        out: Folder of the store.
        encoding: How the sentences are embedded; the default device is that of a model that is loaded.
        format: ``"lines"``, ``"bucc"`` (``id TAB sentence``) or ``"jsonl"``; see :mod:`st_xling.mining.text`. By
            default lines, and lines that begin with ids are an error.
        language: Language of the text, for a model that is centered by language: its mean is subtracted, not the joint
            one.
        shard_rows: Number of sentences in a shard.
        overwrite: Replace another store.
        progress: Show progress bars on stderr.

    Returns:
        The store.

    Raises:
        ValueError: For a text with faults, a model that cannot be loaded or has no mean of ``language``, vectors that
            are NaN, infinite or zero (by file and line), or a store of something else.
        OSError: For a full disk; complete shards are kept.
    """
    check_number("shard_rows", shard_rows, least=1)
    with closing(MiningText(text_file, format=format, language=language)) as text:
        check_outputs({}, [text_file, name_of(model)], folders={"out": out})
        summary = text.validate(progress=progress)
        encoder = Encoder(model, encoding)
        if language is not None:
            encoder = encoder.in_language(language_route(encoder.model, language))
        store = encoder.encode_sentences(
            text, out, summary, locate=text.place, shard_rows=shard_rows, overwrite=overwrite, progress=progress
        )
    if summary.blank_rows:
        logger.warning("%s lines without a sentence, kept", f"{len(summary.blank_rows):,}")
    return store


class Encoder:
    """A model with the options by which it encodes.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`, perhaps yet to be loaded.
        options: How it encodes.

    Raises:
        ValueError: If nothing can be loaded at that name.

    Attributes:
        name: Hub id or folder of the model, otherwise the name of its class.
        identity: Name and fingerprint of the model.
        model_settings: How the model is used, as :func:`~st_xling.models.view.model_options` returns it.
        language: Language whose mean is subtracted, of a model that is centered by language; ``None``: the joint mean.
    """

    language: str | None = None

    def __init__(self, model: Any, options: EncodingOptions = EncodingOptions()) -> None:
        name = name_of(model)
        self.options = options
        if isinstance(model, str):
            self.model = load_encoder(model, device=options.device)
        elif isinstance(model, LazyModel):
            self.model = model.load()
        else:
            self.model = model
        self.name = name or type(model).__name__
        self.identity = model_identity(self.model, name)
        self.model_settings = model_options(self.model, prompt=options.prompt)

    @property
    def dim(self) -> int | None:
        """Dimension of the vectors, if the model knows it."""
        return self.model.truncate_dim or self.model.get_embedding_dimension()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the vectors depend on."""
        settings = {
            "model": self.identity.fingerprint,
            "computed": self.model_settings.get("dtype"),
            "dtype": self.options.dtype,
            "prompt": self.options.prompt,
            "batch size": self.options.batch_size,
        }
        if self.language is not None:
            settings["language"] = self.language
        return settings

    def in_language(self, language: str) -> Encoder:
        """Return a copy that subtracts the mean of a language of the model."""
        encoder = copy(self)
        encoder.language = language
        encoder.model_settings = {**self.model_settings, **BY_LANGUAGE}
        return encoder

    def in_languages(self, languages: Mapping[str, str | None]) -> dict[str, Encoder]:
        """Return a copy for each side that subtracts the mean of the side's language, if the model has all of them.

        Means of languages and the joint mean are not mixed.
        """
        tasks, _ = language_tasks(self.model, list(languages.values()))
        means = [task for task in tasks if task is not None]
        if len(means) < len(languages):
            return dict.fromkeys(languages, self)
        return {side: self.in_language(task) for side, task in zip(languages, means)}

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Embed sentences in memory. *Shape:* ``(sentences, dim)``"""
        options = self.options
        return embed(self.model, sentences, batch_size=options.batch_size, prompt=options.prompt, device=options.device)

    def encode_sentences(
        self,
        sentences: Iterable[str],
        out: str | Path,
        summary: TextSummary | None = None,
        *,
        locate: Callable[[int], str],
        shard_rows: int = 16384,
        overwrite: bool = False,
        progress: bool = False,
    ) -> EmbeddingStore:
        """Embed sentences into a store; an unfinished one is resumed.

        Args:
            sentences: The sentences, which are read front to back, more than once.
            out: Folder of the store.
            summary: Summary of the sentences, if it is known.
            locate: Returns the place of a sentence by its row, such as ``file:line``, for errors.
            shard_rows: Number of sentences in a shard.
            overwrite: Replace another store.
            progress: Show a progress bar on stderr.
        """
        if summary is None:
            summary = summarize(sentences)
        rows = summary.rows
        model = self.model if self.language is None else in_language(self.model, self.language)

        def shards(start: int) -> Iterator[Embeddings]:
            """Embed the sentences from row ``start`` on, and yield the vectors of each shard."""
            # Sentences of a window are embedded together: batches depend on nothing else.
            unread = islice(iter(sentences), start, None)
            windows = iter(lambda: list(islice(unread, shard_rows)), [])
            bar = progress_bar(total=rows, initial=start, desc="encoding", unit="sentences", show=progress)
            encoded = self._encode_windows(model, windows, bar)
            done = truncated = 0
            with bar, closing(encoded):  # ends the cluster, also when a shard cannot be written
                for window, vectors in encoded:
                    truncated += count_truncated(model, window, self.options.prompt)
                    yield vectors
                    done += len(vectors)
                    bar.update(start + done - bar.n)
            warn_of_truncated(truncated, done, model)

        manifest = Manifest(
            dtype=self.options.dtype,
            normalized=True,
            model=self.identity,
            settings=self._stored_settings(shard_rows),
            text=summary,
        )
        return write_shards(out, manifest, shards, locate=locate, overwrite=overwrite)

    def _encode_windows(
        self, model: Any, windows: Iterable[list[str]], bar: Any
    ) -> Generator[tuple[list[str], np.ndarray]]:
        """Embed windows of sentences here or on a cluster, and yield them in order with their vectors."""
        options = self.options
        if options.engine == "ray":
            yield from embed_on_ray(
                model.to("cpu").to,
                windows,
                batch_size=options.batch_size,
                prompt=options.prompt,
                normalize_embeddings=True,
            )
            return
        for window in windows:
            vectors = embed(
                model,
                window,
                batch_size=options.batch_size,
                prompt=options.prompt,
                normalize_embeddings=True,
                device=options.device,
                bar=bar,
            )
            yield window, vectors

    def _stored_settings(self, shard_rows: int) -> dict[str, Any]:
        """Return the settings that the manifest of a store has."""
        settings: dict[str, Any] = {"batch_size": self.options.batch_size, "shard_rows": shard_rows, "prompt": None}
        settings |= {STORED_NAMES.get(name, name): value for name, value in self.model_settings.items()}
        if self.language is not None:
            settings["language"] = self.language
        return settings


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
