"""Get the vectors of a text: from an encoder, a store or an array."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.store import BY_LANGUAGE, MANIFEST, STORED_NAMES, EmbeddingStore, ModelIdentity, model_identity
from st_xling.utils.cosines import Embeddings
from st_xling.utils.languages import canonical_language
from st_xling.utils.options import Engine, StoreDtype
from st_xling.utils.signature import name_of

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 1 << 14


class Encoder:
    """An encoder that writes stores to a work folder, with the same settings for both sides.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`.
        batch_size: As for :func:`~st_xling.mining.encode`, as are the options below.
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
        from st_xling.models import load_encoder
        from st_xling.models.view import model_options

        name = name_of(model)
        self.model = load_encoder(model, device=device) if isinstance(model, str) else model
        self.name = name or type(model).__name__
        self.batch_size, self.dtype, self.prompt, self.device, self.engine = batch_size, dtype, prompt, device, engine
        self.identity: ModelIdentity = model_identity(self.model, name)
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

    def in_languages(self, languages: Mapping[str, str | None]) -> dict[str, Encoder]:
        """Return a copy for each side that subtracts the mean of the side's language, if the model has all of them.

        Own and joint means are not mixed.
        """
        from st_xling.models.normalization import language_tasks

        tasks, _ = language_tasks(self.model, list(languages.values()))
        encoders = {side: copy(self) for side in languages}
        for encoder, task in zip(encoders.values(), tasks if all(tasks) else ()):
            encoder.language, encoder.way = task, {**self.way, **BY_LANGUAGE}
        return encoders

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Embed sentences in memory. *Shape:* ``(sentences, dim)``"""
        from st_xling.models.encode import encode

        return encode(self.model, sentences, batch_size=self.batch_size, prompt=self.prompt, device=self.device)

    def encode(
        self, sentences: Path, out: Path, *, place: Callable[[int], str], progress: bool = False
    ) -> EmbeddingStore:
        """Embed the sentences in a file of ``{"text": …}`` lines into a store; an unfinished one is resumed.

        Args:
            sentences: The file.
            out: The store.
            place: Returns the place of a sentence, by its row, for errors.
            progress: Show a progress bar on stderr.
        """
        from st_xling.mining.encoding import encode

        return encode(
            self.model,
            sentences,
            out,
            format="jsonl",
            dtype=self.dtype,
            prompt=self.prompt,
            language=self.language,
            batch_size=self.batch_size,
            engine=self.engine,
            device=self.device,
            place=place,
            progress=progress,
        )


@dataclass(frozen=True, eq=False)
class PrecomputedEmbeddings:
    """Vectors of a whole text, encoded before.

    Attributes:
        rows: *Shape:* ``(rows, dim)``
        path: Folder of a store, or a ``.npy`` file; ``None`` for an array in memory.
        store: The rows, if they are a store, which knows its model and its text.
    """

    rows: Embeddings
    path: Path | None = None
    store: EmbeddingStore | None = None

    @classmethod
    def open(cls, embeddings: str | Path | np.ndarray | EmbeddingStore, *, rows: int) -> PrecomputedEmbeddings:
        """Open a store or a ``.npy`` file, or take an array.

        Args:
            embeddings: Folder of a store, a file of ``numpy.save``, or an array.
            rows: Sentences of the text.
        Raises:
            FileNotFoundError: If there is neither a folder nor a file.
            ValueError: If it cannot be read, or its rows are not those of the text.
        """
        path = Path(embeddings) if isinstance(embeddings, (str, Path)) else None
        if path is not None and not path.is_file():
            embeddings = EmbeddingStore.open(path)
        if isinstance(embeddings, EmbeddingStore):
            embeddings.check_rows(rows)
            return cls(embeddings, embeddings.path, embeddings)
        name = "the array" if path is None else str(path)
        try:
            # Mapped into memory: only the rows that are used are read.
            array = np.asarray(embeddings) if path is None else np.lib.format.open_memmap(path, mode="r")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{name}: expected a .npy file, got: {error}; write it with numpy.save.") from error
        if array.ndim != 2 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"{name}: expected numbers of shape (rows, dim), got {array.dtype} of shape {array.shape}."
            )
        if len(array) != rows:
            raise ValueError(
                f"{name}: expected a row for each of {rows:,} sentences, got {len(array):,} rows; give the embeddings "
                "of this text."
            )
        return cls(array, path)

    @property
    def name(self) -> str:
        return "array" if self.path is None else self.path.name

    @property
    def dim(self) -> int:
        return int(self.rows.shape[1])

    @property
    def settings(self) -> dict[str, Any]:
        """Hash of the store's manifest, or of the array."""
        if self.store is not None:
            return {"embeddings": hashlib.sha256((self.store.path / MANIFEST).read_bytes()).hexdigest()}
        digest = hashlib.sha256(f"{self.rows.shape}".encode())
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            digest.update(np.ascontiguousarray(self.rows[start : start + _ROWS_AT_ONCE]).tobytes())
        return {"embeddings": digest.hexdigest()}

    @property
    def identity(self) -> ModelIdentity | None:
        return None if self.store is None else self.store.manifest.header.model

    @property
    def way(self) -> dict[str, str]:
        """Encoding settings, as :func:`~st_xling.models.view.model_options` returns them; empty for an array."""
        settings = {} if self.store is None else self.store.manifest.header.settings
        return stored_options(settings)

    def check(self, text: Any) -> None:
        """Raise unless row ``i`` of a store was encoded from sentence ``i``."""
        if self.store is not None:
            self.store.check_text(text)


def stored_options(settings: dict[str, Any]) -> dict[str, str]:
    """Return the encoding settings among the settings of a store."""
    names = {stored: name for name, stored in STORED_NAMES.items()}
    others = ("batch_size", "shard_rows", "language")
    return {names.get(name, name): value for name, value in settings.items() if value and name not in others}


#: Provider of each side's vectors, by side.
VectorMakers = dict[str, Encoder | PrecomputedEmbeddings]


def vectors_from(
    model: Any,
    embeddings: Mapping[str, str | Path | np.ndarray | EmbeddingStore | None],
    rows: dict[str, int],
    *,
    languages: Mapping[str, str | None] | None = None,
    embeds: bool = False,
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    device: str | None = None,
    engine: Engine = "local",
) -> tuple[VectorMakers, dict[str, Encoder]]:
    """Open the embeddings of each side, or load the model for the sides without embeddings.

    Args:
        model: As for :class:`Encoder`, or ``None``.
        embeddings: Store, ``.npy`` file or array of each side, or ``None``, by side.
        rows: Number of sentences of each side's text, by side.
        languages: Language of each side's text, by side, for a model that is centered by language.
        embeds: The model embeds more than the sides without embeddings, such as known translations.
        batch_size: As for :class:`Encoder`.
        dtype: As for :class:`Encoder`.
        prompt: As for :class:`Encoder`.
        device: As for :class:`Encoder`.
        engine: As for :class:`Encoder`.
    Returns:
        The provider of each side's vectors; and the model by side, if there is one that embeds.
    Raises:
        ValueError: If a side has neither; for vectors of several models, prompts, ways to center or types of
            computation, or centered by another language; as :meth:`PrecomputedEmbeddings.open`.
    """
    languages = dict.fromkeys(embeddings) if languages is None else languages
    missing = [side for side, own in embeddings.items() if own is None]
    if model is None and missing:
        raise ValueError(
            f"expected a model or embeddings for the {' and the '.join(missing)} side: got neither; pass model "
            f"(--model) or {missing[0]}_embeddings (--{missing[0]}-embeddings)."
        )
    makers: VectorMakers = {
        side: PrecomputedEmbeddings.open(own, rows=rows[side]) for side, own in embeddings.items() if own is not None
    }
    made: dict[str, tuple[ModelIdentity, dict[str, str] | None]] = {}
    for side, maker in makers.items():
        if isinstance(maker, PrecomputedEmbeddings) and maker.store is not None:
            header = maker.store.manifest.header
            named, own = languages[side], header.settings.get("language")
            if named and own and canonical_language(named) != canonical_language(own):
                raise ValueError(
                    f"embeddings of the {side} text must be centered by the mean of its language, {named}: got "
                    f"{maker.path}, centered by that of {own}; encode it again with --language {named}."
                )
            made[str(maker.path)] = header.model, maker.way if "prompt" in header.settings else None
    encoders: dict[str, Encoder] = {}
    if model is not None:
        encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
        embedded = {side: languages[side] for side in languages if embeds or side in missing}
        encoders = encoder.in_languages(embedded)
        made["the model"] = encoder.identity, next(iter(encoders.values())).way if encoders else None
        makers |= {side: encoders[side] for side in missing}
    _check_alike(made)
    if named := {side: one.language for side, one in encoders.items() if one.language}:
        words = ", ".join(f"{side} {language}" for side, language in named.items())
        logger.info("text is centered by the mean of its language: %s", words)
    return {side: makers[side] for side in embeddings}, encoders


def _check_alike(made: dict[str, tuple[ModelIdentity, dict[str, str] | None]]) -> None:
    """Raise unless all vectors were made by the same model in the same way: cosines between others mean nothing.

    Args:
        made: Model of each source of vectors, by name, and its encoding settings if they are known.
    """
    for (first, (one, way)), (second, (other, another)) in combinations(made.items(), 2):
        unlike = [] if one.fingerprint == other.fingerprint else [f"{one} and {other}"]
        if way is not None and another is not None:
            # Where the model is the same, its revision and the like do not matter.
            names = [name for name in {**way, **another} if unlike or name in ("prompt", "dtype", "backend", "center")]
            usual = {"dtype": "float32", "backend": "torch"}
            for name in names:
                own, theirs = (of.get(name, usual.get(name, "none")) for of in (way, another))
                unlike += [f"{name} {own!r} and {theirs!r}"] if own != theirs else []
        if unlike:
            by_names = any(text.startswith("center") for text in unlike)
            instead = ", or name both languages (--source-language, --target-language)" if by_names else ""
            raise ValueError(
                f"both sides must be encoded by the same model in the same way: got {', '.join(unlike)} for {first} "
                f"and {second}; encode one of them again{instead}."
            )


def encoding_settings(makers: VectorMakers) -> dict[str, str]:
    """Return the encoding settings of both sides; where they differ, both values."""
    source, target = (maker.way for maker in makers.values())
    names = dict.fromkeys([*source, *target])
    both = {name: dict.fromkeys(side.get(name, "none") for side in (source, target)) for name in names}
    return {name: " and ".join(values) for name, values in both.items()}


def model_names(makers: VectorMakers) -> str:
    """Return the models of the vectors for a signature: with their hashes, or the file if the model is unknown."""
    names = (str(maker.identity or maker.name) for maker in makers.values())
    # Signatures are published, so only the last part of a path is named.
    return ",".join(dict.fromkeys(PurePath(name).name if name.startswith(("/", "~")) else name for name in names))


def embeddings_of(
    text: UniqueSentences, made_by: Encoder | PrecomputedEmbeddings, folder: Path, *, progress: bool = False
) -> Embeddings:
    """Get the vectors of the distinct sentences of a text. *Shape:* ``(distinct, dim)``

    Args:
        text: The text.
        made_by: Provider of the vectors.
        folder: Folder of an encoder's sentences and store.
        progress: Show a progress bar on stderr.
    """
    if isinstance(made_by, PrecomputedEmbeddings):
        return text.select(made_by.rows)
    folder.mkdir(parents=True, exist_ok=True)
    text.write(folder / "sentences.jsonl")
    return made_by.encode(folder / "sentences.jsonl", folder / "store", place=text.place, progress=progress)
