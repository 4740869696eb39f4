"""Embedding stores: embeddings on disk, written shard by shard, that read like one array.

==========================  =============================================================================
``manifest.json``           written last: model, text and settings of the vectors, rows and checksum of each shard
``shard-000000.safetensors``…  one tensor ``embeddings`` *(rows, dim)*, for int8 also ``scales`` *(rows,)*
``done.json``               only in a half-written store: what it is of, and the shards that are complete
==========================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from st_xling.mining.text import TextSummary, summarize
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import file_crc32, read_json_object, write_json
from st_xling.utils.options import StoreDtype, check_choice
from st_xling.utils.resumable import ResumableFolder, differences
from st_xling.utils.signature import sign

MANIFEST = "manifest.json"
FORMAT = "st-xling embedding store"
FORMAT_VERSION = 1

#: Names that ``dtype`` may take. A row of int8 means itself times its scale, a 127th of its
#: largest coordinate: cosines do not depend on that, so the rounding of the coordinates is all that is lost.
DTYPES = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}

#: Names of the tensors in a safetensors shard.
TENSOR = "embeddings"
SCALES = "scales"

#: Encoding settings of a model that subtracts a mean of each language, if the languages of the text are named.
BY_LANGUAGE = {"center": "language"}

#: Names of encoding settings in a manifest, which has dim and dtype of the vectors as they are stored.
STORED_NAMES = {"dtype": "computed", "dim": "truncated"}

# Rows that an error names.
_SHOWN_ROWS = 5


@dataclass(frozen=True)
class ModelIdentity:
    """Name and fingerprint of the encoder of the embeddings.

    Attributes:
        name: As it was requested; not compared.
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
    from st_xling.models.sidecar import model_fingerprint

    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    known_name = name or model.model_card_data.model_id or getattr(config, "name_or_path", None) or ""
    revision = model.model_card_data.base_model_revision or ""
    return ModelIdentity(str(known_name), revision, model_fingerprint(model))


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Content of a store.

    Attributes:
        dim: Dimension of the vectors; 0 before they are known.
        dtype: ``"float32"``, ``"float16"`` or ``"int8"``.
        normalized: Whether each vector was scaled to length 1 before it was rounded to ``dtype``.
        model: The encoder.
        settings: What else the numbers depend on, such as the batch size.
        text: Rows and hash of the text.
        shards: Number of rows of each shard.
        checksums: CRC-32 of the file of each shard.
    """

    dim: int = 0
    dtype: StoreDtype = "float32"
    normalized: bool = False
    model: ModelIdentity = ModelIdentity()
    settings: dict[str, Any] = field(default_factory=dict)
    text: TextSummary
    shards: tuple[int, ...] = ()
    checksums: tuple[int, ...] = ()

    @property
    def task(self) -> dict[str, Any]:
        """Facts that two writers of a store must agree on: contents, not the names of files and models."""
        return {
            **self.settings,
            "command": "encode",
            "dtype": self.dtype,
            "normalized": self.normalized,
            "model": self.model.fingerprint,
            "rows": self.text.rows,
            "text": self.text.sha256,
        }


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a store.

    Raises:
        ValueError: If it is no manifest, damaged, or of another version.
    """
    path = folder / MANIFEST
    content = read_json_object(path, missing_ok=False, remedy="write the store again")
    try:
        if (content.pop("format"), content.pop("version")) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"expected {FORMAT} of version {FORMAT_VERSION}")
        check_choice("dtype", content["dtype"], StoreDtype)
        shards = tuple(content.pop("shards"))
        text = TextSummary(**content.pop("text"))
        if not 0 < sum(shards) == text.rows:
            raise ValueError(f"{text.rows} rows, its shards have {sum(shards)}")
        checksums = tuple(content.pop("checksums"))
        if len(checksums) != len(shards):
            raise ValueError(f"{len(shards)} shards, and {len(checksums)} checksums")
        model = ModelIdentity(**content.pop("model"))
        return Manifest(**content, model=model, text=text, shards=shards, checksums=checksums)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the manifest is damaged: {error!r}; write the store again.") from error


def _shard_name(number: int) -> str:
    return f"shard-{number:06d}.safetensors"


def _map_shard(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Map a shard into memory, read-only: only the rows that are used are read.

    Returns:
        The numbers as they are on the disk, *shape* ``(rows, dim)``, and each row's scale, float32, if they are int8,
        *shape* ``(rows,)``.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no shard.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: this shard is missing; write the store again, or copy this file again.")
    try:
        with safe_open(path, framework="pt") as file:
            array = file.get_tensor(TENSOR).numpy()
            scales = file.get_tensor(SCALES).numpy() if array.dtype == np.int8 else None
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path}: expected a shard of embeddings, got: {error}; write the store again.") from error
    array.flags.writeable = False
    return array, scales


class EmbeddingStore:
    """A folder of embeddings that reads like one read-only array of shape ``(rows, dim)``; see :meth:`open`.

    ``store[a:b]`` reads no other rows, and copies none if they lie in one file; ``store[i]`` is one vector,
    ``store[indices]`` several. All are numpy arrays of float32 or float16; int8 is read as float32 times its scale: a
    search is exact among what is read. ``numpy.asarray(store)`` reads everything. A store can be pickled and read in
    several processes.

    Attributes:
        path: The folder.
        manifest: Model, text and settings of the vectors.

    Example:
        >>> from st_xling.mining import write_store
        >>> _ = write_store("de.store", np.eye(3))
        >>> EmbeddingStore.open("de.store")[1].tolist()
        [0.0, 1.0, 0.0]
    """

    ndim = 2

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.rows = manifest.text.rows
        self.dim = manifest.dim
        self.shape = (self.rows, self.dim)
        # int8 is read as float32.
        self.dtype = np.dtype(np.float16) if manifest.dtype == "float16" else np.dtype(np.float32)
        self._starts = [0, *accumulate(manifest.shards)]
        self._maps: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}

    @classmethod
    def open(cls, path: str | Path) -> EmbeddingStore:
        """Open a store, and check that every shard is there and whole.

        Args:
            path: The folder.

        Raises:
            FileNotFoundError: If there is no such folder, or a shard is missing.
            ValueError: If it is no store, half-written or damaged.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise FileNotFoundError(f"expected the folder of an embedding store, but there is no folder {folder}.")
        if not (folder / MANIFEST).is_file():
            raise ValueError(
                f"{folder}: expected an embedding store, got a folder without {MANIFEST}; if the store is "
                "half-written, run the command that writes it again to resume it."
            )
        store = cls(folder, read_manifest(folder))
        for number, rows in enumerate(store.manifest.shards):
            shard = folder / _shard_name(number)
            numbers, _ = _map_shard(shard)
            if numbers.shape != (rows, store.dim):
                raise ValueError(
                    f"{shard}: expected {rows} rows of dim {store.dim}, as {MANIFEST} has them, got {numbers.shape}; "
                    "write the store again."
                )
        return store

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return rows: a slice, one row, or an array of rows; see the class.

        Raises:
            IndexError: For a row that is not there.
        """
        if isinstance(key, slice):
            key = np.arange(*key.indices(self.rows))
            first_shard, last_shard = self._shard_of(key[[0, -1]]).tolist() if len(key) else (0, -1)
            if first_shard == last_shard and len(key) == key[-1] - key[0] + 1:
                start = self._starts[first_shard]
                return self._read(first_shard, slice(key[0] - start, key[-1] + 1 - start))
        indices = np.asarray(key, dtype=np.int64)
        rows = indices.reshape(-1)
        if len(rows) and not (-self.rows <= rows.min() and rows.max() < self.rows):
            raise IndexError(f"{self.path} has {self.rows} rows: got rows from {rows.min()} to {rows.max()}")
        rows = rows % self.rows
        result = np.empty((len(rows), self.dim), dtype=self.dtype)
        # One read a shard, whatever the order of the rows.
        shards = self._shard_of(rows)
        for shard in np.unique(shards).tolist():
            positions = np.flatnonzero(shards == shard)
            result[positions] = self._read(shard, rows[positions] - self._starts[shard])
        return result.reshape(*indices.shape, self.dim)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self[:], dtype=dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": {}, "path": self.path.absolute()}

    def _shard_of(self, rows: Any) -> np.ndarray:
        return np.searchsorted(self._starts, rows, side="right") - 1

    def _read(self, shard: int, rows: slice | np.ndarray) -> np.ndarray:
        """Read rows of a shard as numbers; a slice is no copy.

        Raises:
            ValueError: If the bytes of the shard are not those that were written.
        """
        if shard not in self._maps:
            path = self.path / _shard_name(shard)
            # Once, with the first rows of a shard: a wrong bit would change which sentences are paired, unnoticed.
            if file_crc32(path) != self.manifest.checksums[shard]:
                raise ValueError(
                    f"{path} is damaged: its checksum is another than in {MANIFEST}; copy the file again, or delete "
                    f"{self.path} and write the store again."
                )
            self._maps[shard] = _map_shard(path)
        numbers, scales = self._maps[shard]
        return numbers[rows] if scales is None else numbers[rows] * scales[rows, None]

    @property
    def signature(self) -> str:
        """Signature of the vectors."""
        manifest = self.manifest
        text = manifest.text
        parts: dict[str, Any] = {
            "rows": self.rows,
            "dim": self.dim,
            "dtype": manifest.dtype,
            "normalized": "yes" if manifest.normalized else "no",
            **manifest.settings,
        }
        data = f"{','.join(text.files) or 'unnamed'}@{text.sha256[:8] or '?'}"
        return sign("encode", f"model:{manifest.model}", data=data, **parts)

    def check_text(self, sentences: Iterable[str]) -> None:
        """Raise unless row ``i`` was encoded from sentence ``i``, for all rows.

        Args:
            sentences: A :class:`~st_xling.mining.MiningText`, or any sentences in the order of the rows.

        Raises:
            ValueError: If there are more or fewer sentences than rows, or others than were encoded.
        """
        text = summarize(sentences)
        self.check_rows(text.rows)
        if self.manifest.text.sha256 not in ("", text.sha256):
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


def write_shards(
    folder: str | Path,
    manifest: Manifest,
    shards: Callable[[int], Iterable[Embeddings]],
    *,
    locate: Callable[[int], str] = "row {}".format,
    resume: bool = True,
    overwrite: bool = False,
) -> EmbeddingStore:
    """Write a store, or the shards that an earlier, killed writer of the same store left to do.

    Args:
        folder: A new or empty folder, or a store.
        manifest: Settings and text, on which a resumed writer must agree; dim and shards are set here.
        shards: Returns the vectors of the next shards, one by one; its argument is the first row of the next one.
        locate: Returns the place of a row, such as ``file:line``, for errors.
        resume: Resume a half-written store, and return a finished one; ``False`` if equal ones cannot be distinguished.
        overwrite: Remove a finished store, or a half-written one of something else, first.

    Raises:
        ValueError: If the folder contains something else, or another store (names the differences). For vectors that
            are NaN, infinite or zero; what was written is then removed.
        OSError: For a full disk. Complete shards remain, and the same call resumes.
    """
    check_choice("dtype", manifest.dtype, StoreDtype)
    path = Path(folder)
    task = manifest.task
    instead = "replace it with overwrite (--overwrite), or choose another folder"
    with ResumableFolder(path, name="the store", instead=instead) as work:
        is_finished = (path / MANIFEST).is_file()
        if is_finished and not overwrite:
            unlike = differences(read_manifest(path).task, task)
            if unlike or not resume:
                why = f" of something else ({'; '.join(unlike)})" if unlike else ""
                raise ValueError(f"{path} contains a finished store{why}; {instead}.")
            work.record.unlink(missing_ok=True)
            return EmbeddingStore.open(path)
        if is_finished:
            work.start(task)
            for shard in path.glob("shard-*.safetensors"):
                shard.unlink()
            (path / MANIFEST).unlink()
        if work.begin(task, overwrite=overwrite) and not resume:
            work.clear()
            work.start(task)
        try:
            shard_rows, dim = _write_missing_shards(work, shards, manifest.dtype, locate)
        except ValueError:
            work.remove()  # vectors of another text or model are needed
            raise
        checksums = [work.steps[_shard_name(number)]["crc32"] for number in range(len(shard_rows))]
        content = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(replace(manifest, dim=dim))}
        content["shards"] = shard_rows
        content["checksums"] = checksums
        # Last of all: a folder without a manifest is no store.
        write_json(path / MANIFEST, content, indent=1)
        work.record.unlink()
    return EmbeddingStore.open(path)


def _write_missing_shards(
    work: ResumableFolder,
    shards: Callable[[int], Iterable[Embeddings]],
    dtype: StoreDtype,
    locate: Callable[[int], str],
) -> tuple[list[int], int]:
    """Write the shards that are not finished; returns the number of rows of each shard, and the dimension."""
    steps = work.steps
    shard_rows: list[int] = []
    dim = 0
    while (step := steps.get(_shard_name(len(shard_rows)))) is not None:
        shard_rows.append(step["rows"])
        dim = step["dim"]
    for vectors in shards(sum(shard_rows)):
        file = _shard_name(len(shard_rows))
        tensors = _shard_tensors(vectors, dtype, locate, sum(shard_rows))
        rows, dim = tensors[TENSOR].shape
        with work.writing(file, file, checksum=True, rows=rows, dim=dim) as temporary:
            save_file(tensors, temporary)
        shard_rows.append(rows)
    return shard_rows, dim


def write_store(
    folder: str | Path,
    embeddings: Embeddings,
    *,
    sentences: Sequence[str] | None = None,
    dtype: StoreDtype = "float32",
    shard_rows: int = 16384,
    overwrite: bool = False,
) -> EmbeddingStore:
    """Write vectors, from another tool or a memory map, as a store.

    Args:
        folder: A new or empty folder.
        embeddings: numpy, a memory map or torch. *Shape:* ``(rows, dim)``
        sentences: What they are of, so that a miner can check its text; not stored.
        dtype: ``"float32"``, ``"float16"`` or ``"int8"``.
        shard_rows: Rows of a file.
        overwrite: Replace another store.

    Raises:
        ValueError: For vectors that are NaN, infinite or zero, by row; for other numbers of sentences and rows; as
            :func:`write_shards`.
        OSError: For a full disk.
    """
    rows = embeddings.shape[0]
    if sentences is not None and len(sentences) != rows:
        raise ValueError(f"expected a sentence a vector: got {len(sentences)} sentences and {rows} vectors.")
    if rows == 0:
        raise ValueError("expected at least one vector: got none.")
    text = TextSummary((), rows) if sentences is None else summarize(sentences)

    def shards(_: int) -> Iterator[Embeddings]:
        return (embeddings[start : start + shard_rows] for start in range(0, rows, shard_rows))

    return write_shards(folder, Manifest(dtype=dtype, text=text), shards, resume=False, overwrite=overwrite)


def _shard_tensors(rows: Embeddings, dtype: StoreDtype, locate: Callable[[int], str], start: int) -> dict[str, Tensor]:
    """Return the tensors of a shard that begins with row ``start`` and holds these vectors in ``dtype``.

    Raises:
        ValueError: Naming the first rows that are NaN, infinite or zero, or become so in ``dtype``.
    """
    # A copy: torch does not like memory that cannot be written to, such as a read-only map.
    vectors = rows.detach().cpu() if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise ValueError(
            f"expected floating-point vectors of shape (rows, dim): got {vectors.dtype}, {tuple(vectors.shape)}."
        )
    remedy = "fix or drop these sentences, or check the model and the precision it runs in"
    _check_vectors(vectors, locate, start, remedy)
    if dtype == "int8":
        scales = vectors.abs().amax(dim=1).div(127).float()
        numbers = (vectors / scales[:, None]).round().clamp(-127, 127).to(torch.int8)
        tensors = {TENSOR: numbers, SCALES: scales}
        stored = numbers * scales[:, None]
    else:
        stored = vectors.to(DTYPES[dtype]).contiguous()
        tensors = {TENSOR: stored}
    _check_vectors(stored, locate, start, f"{dtype} cannot hold them: normalize the vectors, or write float32")
    return tensors


def _check_vectors(vectors: Tensor, locate: Callable[[int], str], start: int, remedy: str) -> None:
    """Raise ``ValueError`` for vectors that are NaN, infinite or zero, with the places of the first rows."""
    is_finite = torch.isfinite(vectors).all(dim=1)
    is_zero = is_finite & ~vectors.any(dim=1)
    faults = []
    for name, mask in (("NaN or infinite", ~is_finite), ("only zeros", is_zero)):
        rows = torch.nonzero(mask).flatten().tolist()
        if rows:
            places = ", ".join(locate(start + row) for row in rows[:_SHOWN_ROWS])
            others = f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else ""
            faults.append(f"{name} in {places}{others}")
    if faults:
        raise ValueError(f"expected finite vectors of non-zero length: got {' and '.join(faults)}; {remedy}.")
