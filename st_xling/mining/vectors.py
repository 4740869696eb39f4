"""Providers of the vectors of a text: an encoder, a store or an array."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

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
    def way(self) -> dict[str, str]:
        """Encoding settings, as :func:`~st_xling.models.view.model_options` returns them; empty for an array."""
        settings = {} if self.store is None else self.store.manifest.settings
        names = {stored: name for name, stored in STORED_NAMES.items()}
        others = ("batch_size", "shard_rows", "language")
        return {names.get(name, name): value for name, value in settings.items() if value and name not in others}

    def check(self, text: Any) -> None:
        """Raise unless row ``i`` of a store was encoded from sentence ``i``."""
        if self.store is not None:
            self.store.check_text(text)


#: Provider of each side's vectors, by side.
VectorMakers: TypeAlias = "dict[str, Encoder | PrecomputedEmbeddings]"


def vectors_from(
    encoder: Encoder | None,
    embeddings: Mapping[str, str | Path | np.ndarray | EmbeddingStore | None],
    rows: dict[str, int],
    *,
    languages: Mapping[str, str | None],
    embeds: bool = False,
) -> tuple[VectorMakers, dict[str, Encoder]]:
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
    missing = [side for side, own in embeddings.items() if own is None]
    if encoder is None and missing:
        raise ValueError(
            f"expected a model or embeddings for the {' and the '.join(missing)} side: got neither; pass model "
            f"(--model) or {missing[0]}_embeddings (--{missing[0]}-embeddings)."
        )
    makers: VectorMakers = {}
    made: dict[str, tuple[ModelIdentity, dict[str, str] | None]] = {}
    for side, given in embeddings.items():
        if given is None:
            continue
        makers[side] = maker = PrecomputedEmbeddings.open(given, rows=rows[side])
        if maker.store is not None:
            stored = maker.store.manifest
            named, own = languages[side], stored.settings.get("language")
            if named and own and canonical_language(named) != canonical_language(own):
                raise ValueError(
                    f"embeddings of the {side} text must be centered by the mean of its language, {named}: got "
                    f"{maker.path}, centered by that of {own}; encode it again with --language {named}."
                )
            made[str(maker.path)] = stored.model, maker.way if "prompt" in stored.settings else None
    encoders: dict[str, Encoder] = {}
    if encoder is not None:
        embedded = {side: languages[side] for side in languages if embeds or side in missing}
        encoders = encoder.in_languages(embedded)
        made["the model"] = encoder.identity, next(iter(encoders.values())).way if encoders else None
        makers |= {side: encoders[side] for side in missing}
    _check_alike(made)
    if words := ", ".join(f"{side} {one.language}" for side, one in encoders.items() if one.language):
        logger.info("text is centered by the mean of its language: %s", words)
    return {side: makers[side] for side in embeddings}, encoders


def _check_alike(made: dict[str, tuple[ModelIdentity, dict[str, str] | None]]) -> None:
    """Raise unless all vectors were made by the same model in the same way: cosines between others mean nothing.

    Args:
        made: Model of each source of vectors, by name, and its encoding settings if they are known.
    """
    usual = {"dtype": "float32", "backend": "torch"}
    for (first, (one, way)), (second, (other, another)) in combinations(made.items(), 2):
        unlike = [] if one.fingerprint == other.fingerprint else [f"{one} and {other}"]
        if way is not None and another is not None:
            for name in ("prompt", "dtype", "backend", "center"):
                own, theirs = (settings.get(name, usual.get(name, "none")) for settings in (way, another))
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
    both = {name: (source.get(name, "none"), target.get(name, "none")) for name in {**source, **target}}
    return {name: " and ".join(dict.fromkeys(values)) for name, values in both.items()}


def model_names(makers: VectorMakers) -> str:
    """Return the models of the vectors for a signature: with their hashes, or the file if the model is unknown."""
    names = (str(maker.identity or maker.name) for maker in makers.values())
    # Signatures are published, so only the last part of a path is named.
    return ",".join(dict.fromkeys(PurePath(name).name if name.startswith(("/", "~")) else name for name in names))
