"""Sentence vectors of any layers from one pass over the text, kept on disk so that no text is encoded twice.

A cache is a folder:

=======================  ===========================================================================================
``manifest.json``        format, fingerprint and name of the model whose vectors these are
``<hash>.safetensors``   some thousand texts: ``texts`` (their 16-byte hashes), and one tensor a layer, as ``mean-7``
=======================  ===========================================================================================

Files are written beside and renamed; their names follow from what is in them, so two runs may write at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

from st_xling.models.encode import token_batches
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.layers import check_layer, cut_to_layer, layer_states
from st_xling.models.load import Pooling
from st_xling.utils.console import progress_bar
from st_xling.utils.io import TEMPORARY, atomic_path, write_json

FORMAT = "st-xling sentence vectors 1"
TEXTS_A_FILE = 4096
_TEXTS = "texts"


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
    """The vectors of one model.

    Args:
        model: The encoder, as it came: with all of its layers.
        folder: Where they are or will be kept; ``None``: a folder of this model's own, beside the
            downloaded models.
        name: How to call the model.

    Raises:
        ValueError: The folder holds the vectors of another model, or something else.
    """

    def __init__(self, model: SentenceTransformer, folder: str | Path | None = None, *, name: str = "") -> None:
        self.model = model
        self.fingerprint = model_fingerprint(model)
        if folder is None:
            from huggingface_hub.constants import HF_HOME

            folder = Path(HF_HOME) / "st-xling" / "sentence-vectors" / self.fingerprint[:16]
        self.folder = Path(folder)
        self.encoded = 0
        self._open(name)

    def fill(self, texts: Sequence[str], columns: Sequence[Column], *, batch_size: int | None = None) -> int:
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
                self._write(part, layer_vectors(self.model, part, columns, batch_size=batch_size, progress=bar))
        self.encoded += len(missing)
        return len(missing)

    def read(self, texts: Sequence[str], column: Column) -> np.ndarray:
        """Vectors of texts that :meth:`fill` was given with this column. *Shape:* ``(texts, hidden)``, float32"""
        wanted: dict[bytes, list[int]] = {}
        for row, key in enumerate(_hashes(texts)):
            wanted.setdefault(key, []).append(row)
        vectors: np.ndarray | None = None
        for path in self._files():
            with _opened(path) as file:
                if column.name not in file.keys():  # noqa: SIM118  # no mapping
                    continue
                places = [(place, key) for place, key in enumerate(_keys(file)) if key in wanted]
                stored = file.get_tensor(column.name) if places else None
            for place, key in places:
                assert stored is not None
                if vectors is None:
                    vectors = np.empty((len(texts), stored.shape[1]), np.float32)
                vectors[wanted.pop(key)] = stored[place]
        assert vectors is not None and not wanted, f"{len(wanted)} texts were not filled in"
        return vectors

    def _open(self, name: str) -> None:
        path = self.folder / "manifest.json"
        if not path.is_file():
            is_file = self.folder.exists() and not self.folder.is_dir()
            if is_file or any(entry.suffix != TEMPORARY for entry in self.folder.glob("*")):
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

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.safetensors"))

    def _known(self, column: Column) -> set[bytes]:
        known: set[bytes] = set()
        for path in self._files():
            with _opened(path) as file:
                if column.name in file.keys():  # noqa: SIM118
                    known.update(_keys(file))
        return known

    def _write(self, texts: Sequence[str], vectors: dict[Column, np.ndarray]) -> None:
        keys = b"".join(_hashes(texts))
        tensors = {column.name: matrix for column, matrix in vectors.items()}
        name = hashlib.sha256(keys + ",".join(sorted(tensors)).encode()).hexdigest()[:32]
        tensors[_TEXTS] = np.frombuffer(keys, np.uint8).reshape(-1, 16)
        with atomic_path(self.folder / f"{name}.safetensors") as temporary:
            save_file(tensors, str(temporary))


def _hashes(texts: Sequence[str]) -> list[bytes]:
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


def _keys(file: safe_open) -> list[bytes]:
    return [key.tobytes() for key in file.get_tensor(_TEXTS)]


def _opened(path: Path) -> safe_open:
    try:
        return safe_open(str(path), framework="numpy")
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}); remove it, and its texts are encoded again.") from error
