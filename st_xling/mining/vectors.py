"""Providers of the vectors of a text: an encoder, a store or an array."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from st_xling.mining.store import MANIFEST, STORED_NAMES, EmbeddingStore, ModelIdentity
from st_xling.utils.cosines import Embeddings
from st_xling.utils.languages import canonical_language

if TYPE_CHECKING:  # it loads sentence-transformers, which is slow to import; vectors that are ready do not
    from st_xling.mining.encoding import Encoder

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 1 << 14


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
        if array.ndim != 2 or array.dtype.kind not in "fiu" or len(array) != rows:
            raise ValueError(
                f"{name}: expected numbers of shape (rows, dim) with a row for each of {rows:,} sentences, got "
                f"{array.dtype} of shape {array.shape}; give the embeddings of this text."
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
        return None if self.store is None else self.store.manifest.model

    @property
    def model_settings(self) -> dict[str, str]:
        """How the model was used, as :func:`~st_xling.models.view.model_options` returns it; empty for an array."""
        if self.store is None:
            return {}
        names = {stored: name for name, stored in STORED_NAMES.items()}
        others = ("batch_size", "shard_rows", "language")
        stored_settings = self.store.manifest.settings.items()
        return {names.get(name, name): value for name, value in stored_settings if value and name not in others}

    def check(self, text: Any) -> None:
        """Raise unless row ``i`` of a store was encoded from sentence ``i``."""
        if self.store is not None:
            self.store.check_text(text)


#: Provider of each side's vectors, by side.
VectorProviders: TypeAlias = "dict[str, Encoder | PrecomputedEmbeddings]"


class _Origin(NamedTuple):
    """What made some vectors.

    Attributes:
        model: The model.
        settings: How it was used; ``None`` if that is not known.
    """

    model: ModelIdentity
    settings: dict[str, str] | None


def vectors_from(
    encoder: Encoder | None,
    embeddings: Mapping[str, str | Path | np.ndarray | EmbeddingStore | None],
    rows: dict[str, int],
    *,
    languages: Mapping[str, str | None],
    embeds: bool = False,
) -> tuple[VectorProviders, dict[str, Encoder]]:
    """Open the embeddings of each side; sides without embeddings are encoded.

    Args:
        encoder: The encoder, if there is one.
        embeddings: Store, ``.npy`` file or array of each side, or ``None``, by side.
        rows: Number of sentences of each side's text, by side.
        languages: Language of each side's text, by side, for a model that is centered by language.
        embeds: The encoder embeds more than the sides without embeddings, such as known translations.

    Returns:
        The provider of each side's vectors; and the encoder by side, in the side's language, if there is one.

    Raises:
        ValueError: If a side has neither; for vectors of several models, prompts, ways to center or types of
            computation, or centered by another language; as :meth:`PrecomputedEmbeddings.open`.
    """
    missing = [side for side, precomputed in embeddings.items() if precomputed is None]
    if encoder is None and missing:
        raise ValueError(
            f"expected a model or embeddings for the {' and the '.join(missing)} side: got neither; pass model "
            f"(--model) or {missing[0]}_embeddings (--{missing[0]}-embeddings)."
        )
    providers: VectorProviders = {}
    origins: dict[str, _Origin] = {}
    for side, precomputed in embeddings.items():
        if precomputed is None:
            continue
        opened = PrecomputedEmbeddings.open(precomputed, rows=rows[side])
        providers[side] = opened
        if opened.store is not None:
            _check_language(opened, opened.store, side, languages[side])
            settings = opened.store.manifest.settings
            known_settings = opened.model_settings if "prompt" in settings else None
            origins[str(opened.path)] = _Origin(opened.store.manifest.model, known_settings)
    encoders: dict[str, Encoder] = {}
    if encoder is not None:
        encoders = encoder.in_languages({side: languages[side] for side in languages if embeds or side in missing})
        model_settings = next((side_encoder.model_settings for side_encoder in encoders.values()), None)
        origins["the model"] = _Origin(encoder.identity, model_settings)
        providers |= {side: encoders[side] for side in missing}
    _check_alike(origins)
    centered = [f"{side} {encoder.language}" for side, encoder in encoders.items() if encoder.language]
    if centered:
        logger.info("text is centered by the mean of its language: %s", ", ".join(centered))
    return {side: providers[side] for side in embeddings}, encoders


def _check_language(embeddings: PrecomputedEmbeddings, store: EmbeddingStore, side: str, named: str | None) -> None:
    """Raise ``ValueError`` if a store is centered by the mean of another language than the one named for its text."""
    centered_by = store.manifest.settings.get("language")
    if named and centered_by and canonical_language(named) != canonical_language(centered_by):
        raise ValueError(
            f"embeddings of the {side} text must be centered by the mean of its language, {named}: got "
            f"{embeddings.path}, centered by that of {centered_by}; encode it again with --language {named}."
        )


def _check_alike(origins: Mapping[str, _Origin]) -> None:
    """Raise unless all vectors were made by the same model in the same way: cosines between others mean nothing.

    Args:
        origins: What made the vectors, by their name in errors.
    """
    for (name, origin), (other_name, other) in combinations(origins.items(), 2):
        unlike = _differences(origin, other)
        if unlike:
            by_names = any(text.startswith("center") for text in unlike)
            instead = ", or name both languages (--source-language, --target-language)" if by_names else ""
            raise ValueError(
                f"both sides must be encoded by the same model in the same way: got {', '.join(unlike)} for {name} "
                f"and {other_name}; encode one of them again{instead}."
            )


def _differences(origin: _Origin, other: _Origin) -> list[str]:
    """Name what differs in the models of vectors and in how they were used, with both values."""
    differences = []
    if origin.model.fingerprint != other.model.fingerprint:
        differences.append(f"{origin.model} and {other.model}")
    if origin.settings is None or other.settings is None:
        return differences
    defaults = {"prompt": "none", "dtype": "float32", "backend": "torch", "center": "none"}
    for name, default in defaults.items():
        value = origin.settings.get(name, default)
        other_value = other.settings.get(name, default)
        if value != other_value:
            differences.append(f"{name} {value!r} and {other_value!r}")
    return differences


def encoding_settings(providers: VectorProviders) -> dict[str, str]:
    """Return how the models of both sides are used; where they differ, both values."""
    source, target = (provider.model_settings for provider in providers.values())
    settings = {}
    for name in {**source, **target}:
        values = (source.get(name, "none"), target.get(name, "none"))
        settings[name] = " and ".join(dict.fromkeys(values))
    return settings


def model_names(providers: VectorProviders) -> str:
    """Return the models of the vectors for a signature: with their hashes, or the file if the model is unknown."""
    names = [published_name(provider.identity or provider.name) for provider in providers.values()]
    return ",".join(dict.fromkeys(names))


def published_name(model: ModelIdentity | str) -> str:
    """Return a model as signatures name it: these are published, so only the last part of a path is named."""
    name = str(model)
    return PurePath(name).name if name.startswith(("/", "~")) else name
