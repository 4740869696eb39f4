"""Where the vectors of a text come from: made by an encoder, or read from a store or a LASER file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from st_xling.mining.embedding.text_encoder import EncodeOptions, Encoder
from st_xling.mining.stores.laser_files import open_laser
from st_xling.mining.stores.manifest import MANIFEST, ModelIdentity
from st_xling.mining.stores.store import EmbeddingStore
from st_xling.mining.text.distinct_text import DistinctText
from st_xling.utils.cosines import Embeddings


@dataclass(frozen=True, eq=False)
class GivenEmbeddings:
    """Vectors of a whole text, made elsewhere.

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
        if store.rows != rows:
            raise ValueError(
                f"{path}: the text must have a sentence for each of {store.rows} rows: got {rows} sentences; give the "
                "text that was encoded, or encode this one."
            )
        return cls(path, store, store)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on, as far as it can be told without reading them."""
        if self.store is not None:
            return {"embeddings": hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()}
        return {"embeddings": f"{self.path.stat().st_size:,} bytes, dim {self.rows.shape[1]}"}

    @property
    def identity(self) -> ModelIdentity | None:
        return None if self.store is None else self.store.manifest.header.model

    def check(self, text: Any) -> None:
        """Raise unless row ``i`` was encoded from sentence ``i`` and not damaged since; a LASER file cannot know."""
        if self.store is not None:
            self.store.check_text(text)
            self.store.verify()


def check_same_model(sides: dict[str, GivenEmbeddings | Encoder]) -> None:
    """Raise if the sides' models are known and not the same: cosines between models mean nothing.

    Args:
        sides: What gives vectors, by what to call it.
    Raises:
        ValueError: If they differ, or dims do.
    """
    known = {name: side.identity for name, side in sides.items() if side.identity is not None}
    names = list(known)
    for name in names[1:]:
        if known[name].fingerprint != known[names[0]].fingerprint:
            raise ValueError(
                f"both sides must be encoded by the same model: got {known[names[0]]} for {names[0]} and {known[name]} "
                f"for {name}; encode one of them again."
            )


def embeddings_of(
    text: DistinctText, made_by: Encoder | GivenEmbeddings, folder: Path, *, progress: bool = False
) -> Embeddings:
    """Vectors of the distinct sentences of a text. *Shape:* ``(distinct, dim)``

    Args:
        text: The text.
        made_by: What gives the vectors.
        folder: Where an encoder's sentences and store are kept.
        progress: Show a bar on stderr.
    """
    if isinstance(made_by, GivenEmbeddings):
        return text.select(made_by.rows)
    folder.mkdir(parents=True, exist_ok=True)
    text.write(folder / "sentences.jsonl")
    return made_by.encode(folder / "sentences.jsonl", folder / "store", place=text.place, progress=progress)


#: What gives each side's vectors, by side.
VectorMakers = dict[str, Encoder | GivenEmbeddings]


def model_names(makers: VectorMakers) -> str:
    """The models that the vectors are of, for a signature: with their hashes, or the file where none is known."""
    names = (str(maker.identity or maker.name) for maker in makers.values())
    # Of a place on this machine the last part: signatures are published.
    return ",".join(dict.fromkeys(PurePath(name).name if name.startswith(("/", "~")) else name for name in names))


def vectors_from(
    model: Any,
    embeddings: dict[str, str | Path | None],
    rows: dict[str, int],
    *,
    dim: int = 1024,
    laser_dtype: str = "float32",
    options: EncodeOptions | None = None,
) -> tuple[VectorMakers, Encoder | None]:
    """What gives each side's vectors: what is given, else the model.

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
    given = {
        side: GivenEmbeddings.open(path, rows=rows[side], dim=dim, dtype=laser_dtype)
        for side, path in embeddings.items()
        if path is not None
    }
    encoder = None if model is None else Encoder(model, options or EncodeOptions())
    named: VectorMakers = {str(side.path): side for side in given.values()}
    check_same_model(named if encoder is None else {**named, "the model": encoder})
    makers: VectorMakers = {}
    for side in embeddings:
        maker = given.get(side, encoder)
        assert maker is not None
        makers[side] = maker
    return makers, encoder
