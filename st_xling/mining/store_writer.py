"""Writing an embedding store shard by shard, so that a writer killed at any moment can be followed by another."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from st_xling.mining.store import (
    DTYPES,
    JOURNAL,
    MANIFEST,
    SCALES,
    TENSOR,
    WRITING,
    EmbeddingStore,
    Header,
    Manifest,
    ModelIdentity,
    Shard,
    check_dtype,
    parse,
    read_manifest,
)
from st_xling.mining.text import TextSummary, hash_sentences
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import (
    TEMPORARY,
    append_line,
    file_sha256,
    read_journal,
    read_json_object,
    write_atomic,
    write_json,
)
from st_xling.utils.lock import LockedFolder

_SHOWN = 5
_REMEDY = "replace the store with overwrite (--overwrite), or delete its folder"


class StoreWriter(LockedFolder):
    """The one writer of a store; use it as a context manager, which keeps other writers out.

    On entering, the folder is made, or what an earlier writer left is resumed: ``shards`` are whole then, and
    :meth:`write` goes on with the next. If the store is ``finished`` with the same content, there is nothing to do.

    Args:
        folder: Where the store is to be: a new or empty folder, or a store.
        header: What all shards share.
        text: What the rows are of; a resumed writer must agree on it.
        resume: Go on with what was left half-written; ``False`` for content that cannot be told apart.
        overwrite: Remove another store, or a damaged one, first. The same half-written store is resumed all the same.
    Raises:
        ValueError: On entering: the folder holds something else, or another store; says in what it differs.
        OSError: For a full disk. What was whole remains, and the same writer can go on.
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
        super().__init__(Path(folder), what="the store", instead="choose another name")
        self.header = header
        self.text = text
        self.resume, self.overwrite = resume, overwrite
        self.finished: Manifest | None = None
        self._shards: list[Shard] = []
        self._dim: int | None = None

    def __exit__(self, *exception: object) -> None:
        failed = exception and isinstance(exception[1], Exception) and self.finished is None
        if failed and not (self._shards and self.resume):
            # Nothing stays that would be in the way of a corrected call, but what can be resumed.
            with contextlib.suppress(OSError):
                self._remove_unfinished(None)
                self.path.rmdir()  # unless something else is in it
        super().__exit__()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Those of this text that are whole."""
        return tuple(self._shards)

    def write(self, rows: Embeddings, *, place: Callable[[int], str] | None = None) -> Shard:
        """Write the next shard.

        Args:
            rows: *Shape:* ``(rows, dim)``
            place: Says where row ``i`` of this block comes from, for errors.
        Raises:
            ValueError: For vectors that are NaN, infinite, zero, or of another dim.
            OSError: For a full disk.
        """
        assert self._lock is not None and self.finished is None, "write inside the with block, before finish"
        file = self._file_name(len(self._shards))
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
        # The journal speaks of a shard only when the shard has its name.
        write_atomic(self.path / file, data)
        append_line(self.path / JOURNAL, json.dumps({"dim": dim, **asdict(shard)}))
        self._dim = dim
        self._shards.append(shard)
        return shard

    def finish(self) -> Manifest:
        """Write the manifest: from now on this is a store."""
        assert self._dim is not None, "a store holds at least one shard"
        manifest = Manifest(self.header, self._dim, tuple(self._shards), self.text)
        # Last of all: what has no manifest is no store.
        write_json(self.path / MANIFEST, manifest.as_json(), indent=1)
        self._remove_unfinished(manifest)
        self.finished = manifest
        return manifest

    def _prepare(self) -> None:
        """Resume, start again, or raise; dying between any two steps leaves what the next writer understands."""
        ours = any((self.path / name).is_file() for name in (MANIFEST, WRITING))
        temporary = [path for path in self.path.iterdir() if _is_temporary(path)]
        if not ours and len(temporary) < len(list(self.path.iterdir())):
            raise ValueError(f"{self.path} holds something that is no store; choose another folder.")
        for path in temporary:
            path.unlink()
        if (manifest := self._read_manifest()) is not None:
            unlike = _differences(manifest.header, self.header) + _differences(manifest.text, self.text)
            if self.resume and not unlike and (not self.overwrite or all(map(self._is_whole, manifest.shards))):
                self._remove_unfinished(manifest)
                self.finished = manifest
                return
            if not self.overwrite:
                raise self._refusal("a finished store", unlike)
        elif (task := self._read_task()) is not None:
            unlike = _differences(task[0], self.header) + _differences(task[1], self.text)
            if self.resume and not unlike:
                self._read_journal()
                return
            if not self.overwrite:
                raise self._refusal("a half-written store", unlike)
        # The journal goes first, so that no shard of another task is resumed.
        (self.path / JOURNAL).unlink(missing_ok=True)
        write_json(self.path / WRITING, {**asdict(self.header), "text": asdict(self.text)}, indent=1)
        for path in (self.path / MANIFEST, *self.path.glob("shard-*")):
            path.unlink(missing_ok=True)

    def _refusal(self, what: str, unlike: list[str]) -> ValueError:
        why = f" of something else ({'; '.join(unlike)})" if unlike else ""
        return ValueError(
            f"{self.path} holds {what}{why}; replace it with overwrite (--overwrite), or choose another folder."
        )

    def _read_manifest(self) -> Manifest | None:
        """The manifest of a finished store, if there is one; a damaged one is none to a writer that overwrites."""
        try:
            return read_manifest(self.path) if (self.path / MANIFEST).is_file() else None
        except ValueError:
            if not self.overwrite:
                raise
            return None

    def _read_task(self) -> tuple[Header, TextSummary] | None:
        """What an earlier writer was to write, if it did not finish."""
        path = self.path / WRITING
        if not path.is_file():
            return None
        try:
            content = read_json_object(path, remedy=_REMEDY)
            return parse(Header, content), parse(TextSummary, content, "text")
        except (KeyError, TypeError, ValueError) as error:
            if self.overwrite:
                return None
            if str(path) in str(error):
                raise
            raise ValueError(f"{path}: expected what a writer was to write, got {error!r}; {_REMEDY}.") from error

    def _read_journal(self) -> None:
        """Go on after the last shard that is in the journal and, as it was written, in the folder."""
        for entry in read_journal(self.path / JOURNAL):
            try:
                dim, shard = entry["dim"], parse(Shard, entry)
            except (KeyError, TypeError, ValueError):
                break  # no line of ours
            if shard.file != self._file_name(len(self._shards)) or self._dim not in (None, dim):
                break
            if not self._is_whole(shard):
                break
            self._dim = dim
            self._shards.append(shard)
        # Without what was cut off.
        lines = [json.dumps({"dim": self._dim, **asdict(shard)}) + "\n" for shard in self._shards]
        write_atomic(self.path / JOURNAL, "".join(lines).encode("utf-8"))

    def _is_whole(self, shard: Shard) -> bool:
        path = self.path / shard.file
        return path.is_file() and path.stat().st_size == shard.bytes and file_sha256(path) == shard.sha256

    def _file_name(self, number: int) -> str:
        return f"shard-{number:06d}.safetensors"

    def _remove_unfinished(self, manifest: Manifest | None) -> None:
        """Leave the store and nothing else; ``writing.json`` goes last, since it says whose the rest is."""
        finished = {shard.file for shard in manifest.shards} if manifest else set()
        for path in self.path.glob("shard-*"):
            if path.name not in finished:
                path.unlink()
        for name in (JOURNAL, WRITING):
            (self.path / name).unlink(missing_ok=True)


def write_store(
    folder: str | Path,
    embeddings: Embeddings,
    *,
    sentences: Sequence[str] | None = None,
    model: ModelIdentity | None = None,
    normalised: bool = False,
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
        normalised: Whether they have length 1; they are written as they are.
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
    header = Header(dtype, normalised, model or ModelIdentity())
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
    _check_vectors(vectors, place, f"{dtype} cannot hold them: normalise the vectors, or write float32")
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


def _differences(stored: Header | TextSummary, requested: Header | TextSummary) -> list[str]:
    """In what two headers or two texts do not agree; names are left out, contents count."""
    differences = []
    old_values, new_values = ({**vars(of), **getattr(of, "settings", {})} for of in (stored, requested))
    for name in (name for name in {**new_values, **old_values} if name != "settings"):
        old, new = old_values.get(name), new_values.get(name)
        # A model may be moved or renamed: its fingerprint counts.
        if name != "files" and getattr(old, "fingerprint", old) != getattr(new, "fingerprint", new):
            differences.append(f"{name.replace('_', ' ')} was {_short(old)}, is now {_short(new)}")
    return differences


def _short(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > _SHOWN:
        return f"{len(value)} of them"
    return value[:8] if isinstance(value, str) and len(value) == 64 else str(value)


def _is_temporary(path: Path) -> bool:
    """Whether it is a file of a store that a killed process left while it was written."""
    name = path.name.removesuffix(TEMPORARY)
    return path.name != name and (name in (MANIFEST, WRITING, JOURNAL) or name.startswith("shard-"))
