"""Where the vectors of a text come from: made by an encoder, or read from a store or a LASER file."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from st_xling.mining.deduplication import DistinctText
from st_xling.mining.store import MANIFEST, EmbeddingStore, ModelIdentity, open_laser
from st_xling.models.fingerprint import model_fingerprint
from st_xling.utils.cosines import Embeddings

logger = logging.getLogger(__name__)


def model_identity(model: Any, name: str | None = None) -> ModelIdentity:
    """Name, revision and fingerprint of a ``SentenceTransformer`` or a ``CrossEncoder``.

    Args:
        model: The encoder.
        name: As the user named it; else what the encoder knows of itself.
    """
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    known = name or model.model_card_data.model_id or getattr(config, "_name_or_path", None) or ""
    return ModelIdentity(str(known), str(getattr(config, "_commit_hash", None) or ""), model_fingerprint(model))


@dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """How sentences are embedded.

    Attributes:
        batch_size: Sentences of a batch.
        dtype: Type that is stored: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        prompt: Put before every sentence.
        device: Where to embed; by default a GPU where there is one.
        engine: What embeds, ``"local"`` or ``"ray"``: the same vectors.
    """

    batch_size: int = 128
    dtype: str = "float32"
    prompt: str | None = None
    device: str | None = None
    engine: str = "local"


class Encoder:
    """An encoder that makes stores in a work folder, both sides' with the same settings.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`.
        options: How it embeds.
    Raises:
        ValueError: If nothing can be loaded at that name.

    Attributes:
        identity: Which encoder it is.
        way: How it embeds, as :func:`~st_xling.models.view.model_options` says.
    """

    def __init__(self, model: Any, options: EncodeOptions) -> None:
        from st_xling.models import load_encoder
        from st_xling.models.load import name_of
        from st_xling.models.view import model_options

        name = name_of(model)
        self.model = load_encoder(model, device=options.device) if isinstance(model, str) else model
        self.name = name or type(model).__name__
        self.options = options
        self.identity: ModelIdentity = model_identity(self.model, name)
        self.way = model_options(self.model, prompt=options.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on."""
        options = self.options
        return {
            "model": self.identity.fingerprint,
            "dtype": options.dtype,
            "prompt": options.prompt,
            "batch size": options.batch_size,
        }

    def encode(
        self, sentences: Path, out: Path, *, place: Callable[[int], str], progress: bool = False
    ) -> EmbeddingStore:
        """A store of the sentences in a file of ``{"text": …}`` lines; one that was left half-written is resumed.

        Args:
            sentences: The file.
            out: The store. Where it is whole but damaged, it is written again.
            place: Says where a sentence comes from, for errors.
            progress: Show a bar on stderr.
        """
        from st_xling.mining.encoding import encode

        options: dict[str, Any] = {"format": "jsonl", "place": place, "progress": progress, **vars(self.options)}
        write = partial(encode, self.model, sentences, out, **options)
        store = write()
        try:
            store.verify()
        except ValueError as error:
            logger.warning("%s It is written again.", error)
            store = write(overwrite=True)
        return store


@dataclass(frozen=True, eq=False)
class GivenEmbeddings:
    """Vectors of a whole text, from elsewhere.

    Attributes:
        path: A store's folder, or a LASER file.
        rows: *Shape:* ``(rows, dim)``
        store: The same, if it is a store: it knows its model and its text.
    """

    path: Path
    rows: Embeddings
    store: EmbeddingStore | None = None

    @classmethod
    def open(cls, path: str | Path, *, rows: int, dim: int = 1024, dtype: str = "float32") -> GivenEmbeddings:
        """Open a store, or a LASER file.

        Args:
            path: A folder is a store, a file is LASER's.
            rows: Sentences of the text.
            dim: Of a LASER file.
            dtype: Of a LASER file.
        Raises:
            FileNotFoundError: If there is neither.
            ValueError: If it cannot be read, or its rows are not those of the text.
        """
        path = Path(path)
        if path.is_file():
            return cls(path, open_laser(path, dim=dim, dtype=dtype, rows=rows))
        store = EmbeddingStore.open(path)
        store.check_rows(rows)
        return cls(path, store, store)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on, as far as that is known without reading them."""
        if self.store is not None:
            return {"embeddings": hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()}
        return {"embeddings": f"{self.path.stat().st_size:,} bytes, dim {self.rows.shape[1]}"}

    @property
    def identity(self) -> ModelIdentity | None:
        return None if self.store is None else self.store.manifest.header.model

    @property
    def way(self) -> dict[str, str]:
        """How they were made, as :func:`~st_xling.models.view.model_options` says; of a LASER file nobody knows."""
        settings = {} if self.store is None else self.store.manifest.header.settings
        return stored_options(settings)

    def check(self, text: Any) -> None:
        """Raise unless row ``i`` was encoded from sentence ``i`` and not damaged since; a LASER file cannot know."""
        if self.store is not None:
            self.store.check_text(text)
            self.store.verify()


def stored_options(settings: dict[str, Any]) -> dict[str, str]:
    """What a store's settings say of how its vectors were made."""
    names = {"computed": "dtype", "truncated": "dim"}
    others = ("batch_size", "shard_rows")
    return {names.get(name, name): value for name, value in settings.items() if value and name not in others}


#: What provides each side's vectors, by side.
VectorMakers = dict[str, Encoder | GivenEmbeddings]


def vectors_from(
    model: Any,
    embeddings: dict[str, str | Path | None],
    rows: dict[str, int],
    *,
    dim: int = 1024,
    laser_dtype: str = "float32",
    options: EncodeOptions | None = None,
) -> tuple[VectorMakers, Encoder | None]:
    """What provides each side's vectors: embeddings from elsewhere, else the model.

    Args:
        model: As for :class:`Encoder`, or ``None``.
        embeddings: Store or LASER file of each side, or ``None``, by side.
        rows: Sentences of each side's text, by side.
        dim: Of LASER files.
        laser_dtype: Of LASER files.
        options: For the model.
    Returns:
        By side; and the encoder, if there is a model.
    Raises:
        ValueError: If a side has neither, both have another model, or as :meth:`GivenEmbeddings.open`.
    """
    missing = [side for side, path in embeddings.items() if path is None]
    if model is None and missing:
        raise ValueError(
            f"expected a model or embeddings for the {' and the '.join(missing)} side: got neither; pass model "
            f"(--model) or {missing[0]}_embeddings (--{missing[0]}-embeddings)."
        )
    makers: VectorMakers = {
        side: GivenEmbeddings.open(path, rows=rows[side], dim=dim, dtype=laser_dtype)
        for side, path in embeddings.items()
        if path is not None
    }
    known = {str(embeddings[side]): maker.identity for side, maker in makers.items()}
    encoder = None
    if model is not None:
        encoder = Encoder(model, options or EncodeOptions())
        known["the model"] = encoder.identity
        makers |= dict.fromkeys(missing, encoder)
    # Cosines between the vectors of two models mean nothing.
    models = [(identity, name) for name, identity in known.items() if identity is not None]
    for identity, name in models[1:]:
        if identity.fingerprint != models[0][0].fingerprint:
            raise ValueError(
                f"both sides must be encoded by the same model: got {models[0][0]} for {models[0][1]} and {identity} "
                f"for {name}; encode one of them again."
            )
    return {side: makers[side] for side in embeddings}, encoder


def ways(makers: VectorMakers) -> dict[str, str]:
    """How both sides' vectors were made; where they differ, both ways."""
    source, target = (maker.way for maker in makers.values())
    names = dict.fromkeys([*source, *target])
    both = {name: dict.fromkeys(side.get(name, "none") for side in (source, target)) for name in names}
    return {name: " and ".join(values) for name, values in both.items()}


def model_names(makers: VectorMakers) -> str:
    """The models that the vectors are of, for a signature: with their hashes, or the file where none is known."""
    names = (str(maker.identity or maker.name) for maker in makers.values())
    # Of a place on this machine the last part: signatures are published.
    return ",".join(dict.fromkeys(PurePath(name).name if name.startswith(("/", "~")) else name for name in names))


def embeddings_of(
    text: DistinctText, made_by: Encoder | GivenEmbeddings, folder: Path, *, progress: bool = False
) -> Embeddings:
    """Vectors of the distinct sentences of a text. *Shape:* ``(distinct, dim)``

    Args:
        text: The text.
        made_by: What provides the vectors.
        folder: Where an encoder's sentences and store are kept.
        progress: Show a bar on stderr.
    """
    if isinstance(made_by, GivenEmbeddings):
        return text.select(made_by.rows)
    folder.mkdir(parents=True, exist_ok=True)
    text.write(folder / "sentences.jsonl")
    return made_by.encode(folder / "sentences.jsonl", folder / "store", place=text.place, progress=progress)
