"""Writing an embedding store shard by shard, so that a writer killed at any moment can be followed by another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from st_xling.mining.store import (
    DTYPES,
    MANIFEST,
    SCALES,
    TENSOR,
    EmbeddingStore,
    Header,
    Manifest,
    ModelIdentity,
    Shard,
    check_dtype,
    read_manifest,
)
from st_xling.mining.text import TextSummary, hash_sentences
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import file_sha256, write_json
from st_xling.utils.resumable import ResumableFolder, differences

_SHOWN = 5


class StoreWriter:
    """The one writer of a store; use it as a context manager, which keeps other writers out.

    On entering, the folder is made, or what an earlier writer left is resumed: ``shards`` are complete, and
    :meth:`write` continues with the next. If the store is ``finished`` with the same content, there is nothing to do.

    Args:
        folder: Where the store is written: a new or empty folder, or a store.
        header: What all shards share.
        text: What the rows are computed from; a resumed writer must agree on it.
        resume: Resume a half-written store; ``False`` for content that cannot be told apart.
        overwrite: Remove another store, or a damaged one, first. The same half-written store is resumed all the same.
    Raises:
        ValueError: On entering: the folder contains something else, or another store (names the differences).
        OSError: For a full disk. Complete shards remain, and the same writer can resume.
    """

    def __init__(
        self,
        folder: str | Path,
        header: Header,
        text: TextSummary,
        *,
        resume: bool = True,
        overwrite: bool = False,
    ) -> None:
        check_dtype(header.dtype)
        self.path = Path(folder)
        self.header = header
        self.text = text
        self.resume, self.overwrite = resume, overwrite
        self.finished: Manifest | None = None
        instead = "replace it with overwrite (--overwrite), or choose another folder"
        self._folder = ResumableFolder(self.path, name="the store", instead=instead)
        self._shards: list[Shard] = []
        self._dim: int | None = None

    def __enter__(self) -> StoreWriter:
        with ExitStack() as stack:
            stack.enter_context(self._folder)
            self._prepare()
            self._entered = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and self.finished is None and not self.resume:
            self._folder.remove()  # nothing stays that would be in the way of a corrected call
        self._entered.__exit__(kind, error, trace)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The complete shards of this text."""
        return tuple(self._shards)

    def write(self, rows: Embeddings, *, place: Callable[[int], str] | None = None) -> Shard:
        """Write the next shard.

        Args:
            rows: *Shape:* ``(rows, dim)``
            place: Returns where row ``i`` of this block comes from, for errors.
        Raises:
            ValueError: For vectors that are NaN, infinite, zero, or of another dim.
            OSError: For a full disk.
        """
        assert self._folder.task and self.finished is None, "write inside the with block, before finish"
        file = self._next_file()
        try:
            tensors = _rounded(rows, self.header.dtype, place or (lambda row: f"row {row} of {file}"))
        except ValueError:
            self.resume = False  # vectors of another text or model are needed
            raise
        tensor = tensors[TENSOR]
        dim = tensor.shape[1]
        if self._dim not in (None, dim):
            raise ValueError(f"{self.path}: expected vectors of dim {self._dim}, got {dim}; one store, one model.")
        data = save(tensors)
        shard = Shard(file, len(tensor), len(data), hashlib.sha256(data).hexdigest())
        with self._folder.writing(file, file, dim=dim, **asdict(shard)) as temporary:
            temporary.write_bytes(data)
        self._dim = dim
        self._shards.append(shard)
        return shard

    def finish(self) -> Manifest:
        """Write the manifest: from now on this is a store."""
        assert self._dim is not None, "a store holds at least one shard"
        self.finished = Manifest(self.header, self._dim, tuple(self._shards), self.text)
        # Last of all: what has no manifest is no store.
        write_json(self.path / MANIFEST, self.finished.as_json(), indent=1)
        self._folder.record.unlink()
        return self.finished

    def _prepare(self) -> None:
        """Resume, start again, or raise."""
        task = _task(self.header, self.text)
        manifest = self._read_manifest()
        same = manifest is not None and self.resume and _task(manifest.header, manifest.text) == task
        if manifest is not None and same and (not self.overwrite or all(map(self._is_whole, manifest.shards))):
            self._folder.record.unlink(missing_ok=True)
            self.finished = manifest
            return
        if (self.path / MANIFEST).is_file():
            if not self.overwrite:
                assert manifest is not None
                unlike = differences(_task(manifest.header, manifest.text), task)
                why = f" of something else ({'; '.join(unlike)})" if unlike else ""
                raise ValueError(
                    f"{self.path} contains a finished store{why}; replace it with overwrite (--overwrite), or choose "
                    "another folder."
                )
            shards = self.path.glob("shard-*.safetensors")  # where the manifest is damaged
            files = [path.name for path in shards] if manifest is None else [shard.file for shard in manifest.shards]
            self._folder.start({"command": "overwrite"}, {"store": {"files": [MANIFEST, *files]}})
        resumed = self._folder.begin(task, overwrite=self.overwrite)
        if resumed and not self.resume:
            self._folder.clear()
            self._folder.start(task)
        steps = self._folder.steps
        while (step := steps.get(self._next_file())) is not None:
            self._dim = step["dim"]
            self._shards.append(Shard(**{name: step[name] for name in ("file", "rows", "bytes", "sha256")}))

    def _read_manifest(self) -> Manifest | None:
        """The manifest of a finished store, if there is one; a damaged one is none to a writer that overwrites."""
        try:
            return read_manifest(self.path) if (self.path / MANIFEST).is_file() else None
        except ValueError:
            if not self.overwrite:
                raise
            return None

    def _next_file(self) -> str:
        return f"shard-{len(self._shards):06d}.safetensors"

    def _is_whole(self, shard: Shard) -> bool:
        path = self.path / shard.file
        return path.is_file() and path.stat().st_size == shard.bytes and file_sha256(path) == shard.sha256


def write_store(
    folder: str | Path,
    embeddings: Embeddings,
    *,
    sentences: Sequence[str] | None = None,
    model: ModelIdentity | None = None,
    normalized: bool = False,
    dtype: str = "float32",
    shard_rows: int = 16384,
    overwrite: bool = False,
) -> EmbeddingStore:
    """Write vectors, from another tool or a memory map, as a store.

    Args:
        folder: A new or empty folder.
        embeddings: numpy, a memory map or torch. *Shape:* ``(rows, dim)``
        sentences: What they are of, so that a miner can check its text; not stored.
        model: What made them.
        normalized: Whether they have length 1; they are written as they are.
        dtype: ``"float32"``, ``"float16"`` or ``"int8"``.
        shard_rows: Rows of a file.
        overwrite: Replace another store.
    Raises:
        ValueError: For vectors that are NaN, infinite or zero, by row; for other numbers of sentences and rows; as
            :class:`StoreWriter`.
        OSError: For a full disk.
    """
    rows = embeddings.shape[0]
    if sentences is not None and len(sentences) != rows:
        raise ValueError(f"expected a sentence a vector: got {len(sentences)} sentences and {rows} vectors.")
    if rows == 0:
        raise ValueError("expected at least one vector: got none.")
    if shard_rows < 1:
        raise ValueError(f"shard_rows must be at least 1: got {shard_rows}; leave it out for the default.")
    text = TextSummary((), "", "", rows, "" if sentences is None else hash_sentences(sentences))
    header = Header(dtype, normalized, model or ModelIdentity())
    with StoreWriter(folder, header, text, overwrite=overwrite, resume=False) as writer:
        for start in range(0, rows, shard_rows):
            writer.write(
                embeddings[start : start + shard_rows],
                place=lambda row, start=start: f"row {start + row}",  # type: ignore[misc]
            )
        writer.finish()
    return EmbeddingStore.open(folder)


def _rounded(rows: Embeddings, dtype: str, place: Callable[[int], str]) -> dict[str, Tensor]:
    """The tensors of a shard that holds these vectors in ``dtype``.

    Raises:
        ValueError: Naming the first rows that are NaN, infinite or zero, or become so in ``dtype``.
    """
    # A copy: torch does not like memory that cannot be written to, such as a read-only map.
    vectors = rows.detach().cpu() if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise ValueError(f"expected vectors of shape (rows, dim), none of them 0: got {tuple(vectors.shape)}.")
    if not vectors.is_floating_point():
        raise ValueError(f"expected vectors of floating-point numbers: got {vectors.dtype}; convert them to float32.")
    _check_vectors(vectors, place, "mend or drop these sentences, or check the model and the precision it runs in")
    if dtype == "int8":
        scales = vectors.abs().amax(dim=1).div(127).float()
        tensors = {TENSOR: (vectors / scales[:, None]).round().clamp(-127, 127).to(torch.int8), SCALES: scales}
        vectors = tensors[TENSOR] * scales[:, None]
    else:
        vectors = vectors.to(DTYPES[dtype]).contiguous()
        tensors = {TENSOR: vectors}
    _check_vectors(vectors, place, f"{dtype} cannot hold them: normalize the vectors, or write float32")
    return tensors


def _check_vectors(vectors: Tensor, place: Callable[[int], str], remedy: str) -> None:
    bad = ~torch.isfinite(vectors).all(dim=1)
    faults = []
    for name, mask in {"NaN or infinite": bad, "only zeros": ~bad & ~vectors.any(dim=1)}.items():
        if numbers := torch.nonzero(mask).flatten().tolist():
            more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
            faults.append(f"{name} in {', '.join(map(place, numbers[:_SHOWN]))}{more}")
    if faults:
        raise ValueError(f"expected finite vectors of non-zero length: got {' and '.join(faults)}; {remedy}.")


def _task(header: Header, text: TextSummary) -> dict[str, Any]:
    """What two writers of a store must agree on: contents, not the names of files and models."""
    return {
        **header.settings,
        "command": "encode",
        "dtype": header.dtype,
        "normalized": header.normalized,
        "model": header.model.fingerprint,
        "rows": text.rows,
        "text": text.sha256,
    }
