"""Read an embedding store: embeddings on disk that read like one array.

==========================  ==========================================================================
``manifest.json``           written last: what the store holds, and every shard with rows and checksum
``shard-000000.safetensors``…  one tensor ``embeddings`` *(rows, dim)*, of int8 also ``scales`` *(rows,)*
``done.json``               while it is being written: what it is to hold, and the shards that are complete
==========================  ==========================================================================

:mod:`st_xling.mining.store_writer` writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, is_dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from st_xling._version import __version__
from st_xling.mining.text import TextSummary, hash_sentence
from st_xling.utils.io import file_sha256, read_json_object
from st_xling.utils.resumable import RECORD

MANIFEST = "manifest.json"
FORMAT, FORMAT_VERSION = "st-xling embedding store", 1

#: Names that ``dtype`` may take. A row of int8 stands for itself times its scale, a 127th of its
#: largest coordinate: cosines do not depend on that, so the rounding of the coordinates is all that is lost.
DTYPES = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}

#: Names of the tensors in a safetensors shard.
TENSOR, SCALES = "embeddings", "scales"

#: Encoding settings of a model that subtracts a mean of each language, if the languages of the text are named.
BY_LANGUAGE = {"center": "language"}

# Shards of a store that are mapped into memory at a time.
_MAPPED = 8192

_WRITE_AGAIN = "write the store again, or copy this file again."


@dataclass(frozen=True)
class ModelIdentity:
    """Name and fingerprint of the encoder of the embeddings.

    Attributes:
        name: As it was requested; says where to look, is not compared.
        revision: Commit on the Hub, where known; not compared.
        fingerprint: Hash of weights, vocabulary and settings; embeddings agree only where this does.
    """

    name: str = ""
    revision: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        return f"{self.name or 'a model without a name'}@{self.fingerprint[:8] or '?'}"


def model_identity(model: Any, name: str | None = None) -> ModelIdentity:
    """Return name, revision and fingerprint of a ``SentenceTransformer`` or a ``CrossEncoder``.

    Args:
        model: The encoder.
        name: Name that the user gave; by default that in the encoder's card or configuration.
    """
    from st_xling.models.fingerprint import model_fingerprint

    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    known = name or model.model_card_data.model_id or getattr(config, "_name_or_path", None) or ""
    return ModelIdentity(str(known), str(getattr(config, "_commit_hash", None) or ""), model_fingerprint(model))


@dataclass(frozen=True)
class Shard:
    """One file of the store.

    Attributes:
        file: Its name in the folder.
        rows: Vectors in it.
        bytes: Its size.
        sha256: Of its bytes.
    """

    file: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Header:
    """Settings that all shards of a store share.

    Attributes:
        dtype: ``"float32"``, ``"float16"`` or ``"int8"``.
        normalized: Whether each vector was scaled to length 1 before it was rounded to ``dtype``.
        model: The encoder.
        settings: What else the numbers depend on, such as the batch size.
    """

    dtype: str = "float32"
    normalized: bool = False
    model: ModelIdentity = ModelIdentity()
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """Content of a complete store.

    Attributes:
        header: What all shards share.
        dim: Width of the vectors.
        shards: In the order of their rows.
        text: What the rows are of.
    """

    header: Header
    dim: int
    shards: tuple[Shard, ...]
    text: TextSummary

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "rows": self.rows,
            "dim": self.dim,
            **asdict(self.header),
            "text": asdict(self.text),
            "shards": [asdict(shard) for shard in self.shards],
        }


def check_dtype(dtype: str) -> None:
    """Raise unless vectors can be stored in this type."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}: got {dtype!r}.")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a store.

    Raises:
        ValueError: If it is no manifest, damaged, or of a later format.
    """
    path = folder / MANIFEST
    content = read_json_object(path, missing_ok=False, remedy="write the store again")
    known, version = content.get("format"), content.get("version")
    if known != FORMAT or version != FORMAT_VERSION:
        raise ValueError(
            f"{path}: expected {FORMAT!r} of version {FORMAT_VERSION}, got {known!r} of version {version!r}; read it "
            "with the st-xling that wrote it."
        )
    try:
        shards = parse(tuple[Shard, ...], content, "shards")
        text = parse(TextSummary, content, "text")
        manifest = Manifest(parse(Header, content), parse(int, content, "dim"), shards, text)
        check_dtype(manifest.header.dtype)
        if not 0 < manifest.rows == text.rows == content["rows"]:
            raise ValueError(f"{content['rows']} rows, its shards have {manifest.rows} and its text {text.rows}")
        for shard in shards:
            # A store may come from elsewhere: nothing outside its folder is opened.
            if Path(shard.file).name != shard.file or not shard.file.startswith("shard-"):
                raise ValueError(f"a shard may not lie at {shard.file!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the manifest is damaged: {error!r}; write the store again.") from error
    return manifest


def parse(kind: Any, content: Any, name: str = "") -> Any:
    """Parse a value of a type from JSON; a dataclass from an object with a value of the right type for each field.

    Args:
        kind: ``str``, ``int``, ``bool``, ``dict``, a dataclass, or ``tuple[kind, ...]`` for a list.
        content: Read from JSON.
        name: Key of ``content`` to parse; all of it by default.
    Raises:
        ValueError, KeyError, TypeError: If it is another.
    """
    value = content[name] if name else content
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{field: parse(hint, value, field) for field, hint in get_type_hints(kind).items()})
    # JSON has lists where the dataclasses have tuples.
    expected = {tuple: list}.get(get_origin(kind), get_origin(kind)) or kind
    if type(value) is not expected:
        raise ValueError(f"{name} must be of type {expected.__name__}: got {value!r}")
    return tuple(parse(get_args(kind)[0], part) for part in value) if expected is list else value


def map_shard(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Map a shard into memory, read-only: only the rows that are used are read.

    Returns:
        The numbers as they are on the disk. *Shape:* ``(rows, dim)``
        And each row's scale, float32, if they are int8. *Shape:* ``(rows,)``
    Raises:
        ValueError: If it is no shard.
    """
    try:
        with safe_open(path, framework="pt") as file:
            array = file.get_tensor(TENSOR).numpy()
            scales = file.get_tensor(SCALES).numpy() if array.dtype == np.int8 else None
            if scales is not None and (scales.dtype, scales.shape) != (np.float32, array.shape[:1]):
                raise ValueError(f"scales of {scales.dtype} and shape {scales.shape} for {len(array)} rows")
    except (SafetensorError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: expected a shard of embeddings, got: {error}; write the store again.") from error
    array.flags.writeable = False
    return array, scales


class EmbeddingStore:
    """A folder of embeddings that reads like one read-only array of shape ``(rows, dim)``; see :meth:`open`.

    ``store[a:b]`` reads no other rows, and copies none where they lie in one file; ``store[i]`` is one vector;
    ``store[indices]`` and ``store[mask]`` gather. All are numpy arrays of ``dtype``; int8 is read
    as float32 times its scale: a search is exact among what is read.
    ``numpy.asarray(store)`` reads everything. It can be pickled and read in several processes.

    Attributes:
        path: The folder.
        manifest: What the folder says of itself.
    Example:
        >>> from st_xling.mining import write_store
        >>> _ = write_store("de.store", np.eye(3))
        >>> EmbeddingStore.open("de.store")[1].tolist()
        [0.0, 1.0, 0.0]
    """

    ndim = 2

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._ends = list(accumulate(shard.rows for shard in manifest.shards))
        self._maps: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> EmbeddingStore:
        """Open a store and check every shard's size and header.

        Args:
            path: The folder.
            verify: Also compare every shard's checksum, which reads all of it.
        Raises:
            FileNotFoundError: If there is no such folder, or a shard is missing.
            ValueError: If it is no store, half-written or damaged; names the file and says what to do.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise FileNotFoundError(f"expected the folder of an embedding store, but there is no folder {folder}.")
        if not (folder / MANIFEST).is_file():
            if (folder / RECORD).is_file():
                raise ValueError(
                    f"{folder}: the store is half-written; run the command that writes it again to resume it."
                )
            raise ValueError(f"{folder}: expected an embedding store, got a folder without {MANIFEST}.")
        store = cls(folder, read_manifest(folder))
        dtype = store.manifest.header.dtype
        for shard in store.manifest.shards:
            file = folder / shard.file
            if not file.is_file():
                raise FileNotFoundError(f"{file}: this shard of {shard.rows} rows is missing; {_WRITE_AGAIN}")
            if (size := file.stat().st_size) != shard.bytes:
                raise ValueError(f"{file}: expected {shard.bytes:,} bytes, got {size:,}; {_WRITE_AGAIN}")
            array, _ = map_shard(file)
            if (array.shape, array.dtype) != ((shard.rows, store.dim), dtype):
                raise ValueError(
                    f"{file}: expected {dtype} of shape {(shard.rows, store.dim)}, got {array.dtype} of shape "
                    f"{array.shape}; {_WRITE_AGAIN}"
                )
        if verify:
            store.verify()
        return store

    @property
    def rows(self) -> int:
        return len(self)

    @property
    def dim(self) -> int:
        return self.manifest.dim

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.dim

    @property
    def dtype(self) -> np.dtype:
        """Type that indexing returns; the type on the disk is ``manifest.header.dtype``."""
        return np.dtype("float16" if self.manifest.header.dtype == "float16" else "float32")

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __repr__(self) -> str:
        header = self.manifest.header
        return f"EmbeddingStore({str(self.path)!r}, shape={self.shape}, dtype={header.dtype}, model={header.model})"

    def __getitem__(self, key: int | slice | np.ndarray | list[int]) -> np.ndarray:
        """Return rows; see the class.

        Raises:
            IndexError: For a row that is not there.
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._contiguous(start, stop)
            key = np.arange(start, stop, step)
        indices = np.asarray(key)
        if indices.dtype == bool and indices.shape == (len(self),):
            indices = np.flatnonzero(indices)
        if indices.ndim > 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(f"a store takes a slice, a row, a list of rows or a mask of {len(self)}: got {key!r}")
        rows = indices.reshape(-1).astype(np.int64)
        if rows.size and not (-len(self) <= rows.min() and rows.max() < len(self)):
            raise IndexError(f"{self.path} has {len(self)} rows: got rows from {rows.min()} to {rows.max()}")
        rows = rows % max(len(self), 1)
        result = np.empty((len(rows), self.dim), dtype=self.dtype)
        # One read a shard, whatever the order of the rows.
        shards = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(shards, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(shards[order])) + 1) if rows.size else ():
            shard = int(shards[places[0]])
            result[places] = self._read(shard, rows[places] - self._start(shard))
        return result.reshape(*indices.shape, self.dim)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a store lies in files: it becomes an array only by copying.")
        return np.array(self[:], dtype=dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": {}, "path": self.path.absolute()}

    def _contiguous(self, start: int, stop: int) -> np.ndarray:
        if start >= stop:
            return np.empty((0, self.dim), dtype=self.dtype)
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right").tolist()
        parts = [
            self._read(shard, slice(max(start - self._start(shard), 0), stop - self._start(shard)))
            for shard in range(first, last + 1)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _start(self, shard: int) -> int:
        return self._ends[shard] - self.manifest.shards[shard].rows

    def _read(self, shard: int, rows: slice | np.ndarray) -> np.ndarray:
        """Read rows of a shard as numbers; a slice is no copy."""
        if shard not in self._maps:
            if len(self._maps) >= _MAPPED:
                del self._maps[next(iter(self._maps))]
            self._maps[shard] = map_shard(self.path / self.manifest.shards[shard].file)
        whole, scales = self._maps[shard]
        return whole[rows] if scales is None else whole[rows] * scales[rows, None]

    @property
    def blank_rows(self) -> np.ndarray:
        """Rows of empty sentences, int64, which are not mined. *Shape:* ``(blank rows,)``"""
        return np.array(self.manifest.text.blank_rows, dtype=np.int64)

    @property
    def signature(self) -> str:
        """Signature of the vectors."""
        header, text = self.manifest.header, self.manifest.text
        data = f"{','.join(text.files) or 'unnamed'}@{text.sha256[:8] or '?'}"
        settings = "".join(f"{key}:{value}|" for key, value in header.settings.items() if value is not None)
        return (
            f"encode|model:{header.model}|rows:{self.rows}|dim:{self.dim}|dtype:{header.dtype}|"
            f"normalized:{'yes' if header.normalized else 'no'}|{settings}data:{data}|st-xling:{__version__}"
        )

    def check_text(self, sentences: Iterable[str]) -> None:
        """Raise unless row ``i`` was encoded from sentence ``i``, for all rows.

        Args:
            sentences: A :class:`~st_xling.mining.MiningText`, or any sentences in the order of the rows.
        Raises:
            ValueError: If there are more or fewer sentences than rows, or others than were encoded.
        """
        digest, count = hashlib.sha256(), 0
        for sentence in sentences:
            hash_sentence(digest, sentence)
            count += 1
        self.check_rows(count)
        if self.manifest.text.sha256 not in ("", digest.hexdigest()):
            raise ValueError(
                f"{self.path}: the text is not the one that was encoded; give the same text, or encode this one."
            )

    def check_rows(self, sentences: int) -> None:
        """Raise ``ValueError`` unless the store has a row for each of so many sentences."""
        if sentences != self.rows:
            raise ValueError(
                f"{self.path}: the text must have a sentence for each of {self.rows} rows: got {sentences} sentences; "
                "give the text that was encoded, or encode this one."
            )

    def verify(self) -> None:
        """Raise unless every shard's bytes have the checksum of the manifest."""
        for shard in self.manifest.shards:
            if file_sha256(self.path / shard.file) != shard.sha256:
                raise ValueError(f"{self.path / shard.file}: the checksum is wrong; {_WRITE_AGAIN}")
