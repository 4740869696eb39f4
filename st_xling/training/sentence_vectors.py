"""Sentence vectors of any layers from one pass over the text, kept on disk so that no text is encoded twice.

A cache is a folder:

=======================  ===========================================================================================
``manifest.json``        format, fingerprint and name of the model whose vectors these are
``<hash>.safetensors``   some thousand texts: ``texts`` (their 16-byte hashes), and one tensor a layer, as ``mean-7``,
                         or of what a teacher makes of them, see :mod:`st_xling.training.teacher`
=======================  ===========================================================================================

Files are written under temporary names and renamed; names follow from the contents, so two runs may write at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from torch import Tensor

from st_xling.data.text_columns import exact_keys, find_sorted
from st_xling.models.encode import token_batches
from st_xling.models.sidecar import model_fingerprint
from st_xling.models.view import check_layer, cut_to_layer, layer_states
from st_xling.utils.console import progress_bar
from st_xling.utils.io import TEMPORARY, atomic_path, write_json
from st_xling.utils.options import Pooling

FORMAT = "st-xling sentence vectors 1"
TEXTS_A_FILE = 4096
_TEXTS = "texts"


class Named(Protocol):
    """A kind of vector."""

    @property
    def name(self) -> str: ...


class Column(NamedTuple):
    """One kind of sentence vector: a layer's token states, pooled."""

    layer: int
    pooling: Pooling = "mean"

    @property
    def name(self) -> str:
        return f"{self.pooling}-{self.layer}"


def layer_vectors(
    model: SentenceTransformer,
    texts: Sequence[str],
    columns: Sequence[Column],
    *,
    batch_size: int | None = None,
    progress: Any = None,
) -> dict[Column, np.ndarray]:
    """Vectors of every text in every column.

    Layers above the highest of them are not computed.

    Args:
        model: Its first module is a transformer; pooling and whatever else follows it are passed over.
        texts: Sentences.
        columns: Layers and how they are pooled.
        batch_size: Most texts of a batch, see :func:`~st_xling.models.encode.token_batches`.
        progress: A bar to be moved on, one a text.

    Returns:
        float32. *Shape of each:* ``(texts, hidden)``

    Raises:
        ValueError: A layer that the encoder lacks.
    """
    for column in columns:
        check_layer(model, column.layer)
    cut = cut_to_layer(model, max(column.layer for column in columns))
    hidden = cut.get_embedding_dimension()
    assert hidden is not None
    poolings = {kind: PoolingModule(hidden, pooling_mode=kind) for kind in {column.pooling for column in columns}}
    matrices = {column: np.empty((len(texts), hidden), np.float32) for column in columns}
    with torch.inference_mode():
        for rows, features in token_batches(cut, texts, batch_size=batch_size):
            states = layer_states(cut, features)
            pooled = [
                poolings[column.pooling]({**features, "token_embeddings": states[column.layer]})["sentence_embedding"]
                for column in columns
            ]
            # One copy from the device for all layers.
            for column, vectors in zip(columns, torch.stack(pooled).float().cpu().numpy()):
                matrices[column][rows] = vectors
            if progress is not None:
                progress.update(len(rows))
    return matrices


class VectorCache:
    """The vectors of one model; subclasses have other kinds of them than layers.

    Args:
        model: The encoder, as it came: with all of its layers.
        folder: Where they are or will be kept; ``None``: a folder of this model's own, next to the
            downloaded models.
        name: How to call the model.

    Raises:
        ValueError: The folder holds the vectors of another model, or something else.
    """

    def __init__(self, model: Any, folder: str | Path | None = None, *, name: str = "") -> None:
        self.model = model
        self.fingerprint = model_fingerprint(model)
        if folder is None:
            from huggingface_hub.constants import HF_HOME

            folder = Path(HF_HOME) / "st-xling" / "sentence-vectors" / self.fingerprint[:16]
        self.folder = Path(folder)
        self.encoded = 0
        self._open(name)

    def fill(self, texts: Sequence[str], columns: Sequence[Any], *, batch_size: int | None = None) -> int:
        """Encode, in one pass, those of the texts that lack any of the columns.

        Returns:
            How many texts that were.

        Raises:
            ValueError: A layer that the encoder lacks.
        """
        distinct = list(dict.fromkeys(texts))
        keys = _hashes(distinct)
        known = set.intersection(*(self._known(column) for column in columns))
        missing = [text for text, key in zip(distinct, keys) if key not in known]
        with progress_bar(total=len(missing), desc="encoding", unit="sentences", show=bool(missing)) as bar:
            for start in range(0, len(missing), TEXTS_A_FILE):
                part = missing[start : start + TEXTS_A_FILE]
                self._write(part, self.vectors(part, columns, batch_size=batch_size, progress=bar))
        self.encoded += len(missing)
        return len(missing)

    def vectors(self, texts: Sequence[str], columns: Sequence[Any], **options: Any) -> dict[Any, np.ndarray]:
        """Vectors of texts that the cache lacks, by column. *Shape of each:* ``(texts, dim)``"""
        return layer_vectors(self.model, texts, columns, **options)

    def read(self, texts: Sequence[str], column: Named) -> np.ndarray:
        """Vectors of texts that :meth:`fill` was given with this column. *Shape:* ``(texts, hidden)``, float32"""
        return cached_rows(self.folder, texts, column)[np.arange(len(texts))].numpy()

    def _open(self, name: str) -> None:
        path = self.folder / "manifest.json"
        if not path.is_file():
            is_file = self.folder.exists() and not self.folder.is_dir()
            if is_file or any(not TEMPORARY.fullmatch(entry.name) for entry in self.folder.glob("*")):
                raise ValueError(f"--cache must be a folder of sentence vectors, or new: {self.folder} is neither.")
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(path, {"format": FORMAT, "fingerprint": self.fingerprint, "model": name})
            return
        written = json.loads(path.read_text(encoding="utf-8"))
        if written.get("format") != FORMAT:
            raise ValueError(f"{path} must say {FORMAT!r}: got {written.get('format')!r}; choose another folder.")
        if written["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"{self.folder} holds vectors of another model: of {written['model'] or 'a model'} "
                f"({written['fingerprint'][:16]}), not of {name or 'this one'} ({self.fingerprint[:16]}); weights, "
                "vocabulary and length must agree. Give each model a --cache of its own, or leave it out."
            )

    def _known(self, column: Named) -> set[bytes]:
        known: set[bytes] = set()
        for path in _files(self.folder):
            with _opened(path) as file:
                if column.name in file.keys():  # noqa: SIM118  # no mapping
                    known.update(_keys(file))
        return known

    def _write(self, texts: Sequence[str], vectors: dict[Any, np.ndarray]) -> None:
        keys = b"".join(_hashes(texts))
        tensors = {column.name: matrix for column, matrix in vectors.items()}
        name = hashlib.sha256(keys + ",".join(sorted(tensors)).encode()).hexdigest()[:32]
        tensors[_TEXTS] = np.frombuffer(keys, np.uint8).reshape(-1, 16)
        with atomic_path(self.folder / f"{name}.safetensors") as temporary:
            save_file(tensors, str(temporary), metadata={key: _digest(matrix) for key, matrix in tensors.items()})


class CachedRows:
    """Vectors of some texts, read from the files when they are asked for.

    Args:
        matrices: Of each file, mapped into memory.
        places: File and row of each text. *Shape:* ``(texts, 2)``
        texts: The texts.
    """

    def __init__(self, matrices: Sequence[Tensor], places: np.ndarray, texts: Sequence[str]) -> None:
        self.matrices, self.places = matrices, places
        self.dim = int(matrices[0].shape[1])
        keys = exact_keys(texts)
        self.order = keys.argsort()
        self.keys = keys[self.order]

    def of(self, texts: Sequence[str]) -> Tensor:
        """Vectors of some of the texts. *Shape:* ``(texts, dim)``"""
        found, known = find_sorted(self.keys, exact_keys(texts))
        assert known.all(), f"{texts[int(known.argmin())]!r} was not filled in"
        return self[self.order[found]]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> Tensor:
        """float32. *Shape:* ``(rows, dim)``"""
        places = self.places[rows]
        vectors = torch.empty(len(places), self.dim)
        for file in np.unique(places[:, 0]):
            mine = np.flatnonzero(places[:, 0] == file)
            vectors[mine] = self.matrices[file][places[mine, 1]]
        return vectors


def cached_rows(folder: Path, texts: Sequence[str], column: Named) -> CachedRows:
    """Rows of texts that a cache in ``folder`` was filled with; the model is not needed."""
    wanted: dict[bytes, list[int]] = {}
    for row, key in enumerate(_hashes(texts)):
        wanted.setdefault(key, []).append(row)
    matrices: list[Tensor] = []
    places = np.empty((len(texts), 2), np.int64)
    for path in _files(folder):
        with _opened(path) as file:
            if column.name not in file.keys():  # noqa: SIM118
                continue
            found = [(place, key) for place, key in enumerate(_keys(file)) if key in wanted]
            if found:
                matrices.append(file.get_tensor(column.name))
                if _digest(matrices[-1].numpy()) != (file.metadata() or {}).get(column.name):
                    raise ValueError(f"{path} is damaged; remove it, and its texts are encoded again.")
        for place, key in found:
            places[wanted.pop(key)] = len(matrices) - 1, place
    assert matrices and not wanted, f"{len(wanted)} texts were not filled in"
    return CachedRows(matrices, places, texts)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _hashes(texts: Sequence[str]) -> list[bytes]:
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


def _digest(matrix: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest()


def _keys(file: safe_open) -> list[bytes]:
    return [key.tobytes() for key in file.get_tensor(_TEXTS).numpy()]


def _opened(path: Path) -> safe_open:
    try:
        return safe_open(str(path), framework="pt")  # which maps tensors into memory, where numpy's are copies
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}); remove it, and its texts are encoded again.") from error
