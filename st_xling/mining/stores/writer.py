"""Writing an embedding store shard by shard, so that a writer killed at any moment can be followed by another."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from st_xling.mining.stores.claim import check_folder, differences
from st_xling.mining.stores.manifest import (
    JOURNAL,
    MANIFEST,
    WRITING,
    Header,
    Manifest,
    Shard,
    header_from_json,
    read_manifest,
    shard_from_json,
)
from st_xling.mining.stores.shard_files import check_format, shard_bytes, shard_rows_to_write
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

_REMEDY = "replace the store with overwrite (--overwrite), or delete its folder"


class StoreWriter(LockedFolder):
    """The one writer of a store; use it as a context manager, which keeps other writers out.

    On entering, the folder is made, or what an earlier writer left is taken up: ``shards`` are whole then, and
    :meth:`write` goes on with the next. If the store is ``finished`` with the same content, there is nothing to do.

    Args:
        folder: Where the store is to be: a new or empty folder, or a store.
        header: What all shards share.
        text: What the rows are of (:class:`TextSurvey` as a dict); a resumed writer must agree on it.
        append: Add to the rows of a finished store, whose header must be the same.
        resume: Take up what was left half-written; ``False`` for content that cannot be told apart.
        overwrite: Replace another store. The same half-written store is taken up all the same.
    Raises:
        ValueError: On entering: the folder holds something else, or another store; says in what it differs.
        OSError: For a full disk. What was whole remains, and the same writer can go on.
    """

    def __init__(
        self,
        folder: str | Path,
        header: Header,
        text: dict[str, Any],
        *,
        append: bool = False,
        resume: bool = True,
        overwrite: bool = False,
    ) -> None:
        check_format(header.dtype, header.file_format)
        if append and overwrite:
            raise ValueError("append adds to a store, overwrite replaces it: choose one of them.")
        super().__init__(Path(folder), what="the store", instead="choose another name")
        self.header = header
        self.text: dict[str, Any] = json.loads(json.dumps(text))
        self.append, self.resume, self.overwrite = append, resume, overwrite
        self.finished: Manifest | None = None
        self._base: Manifest | None = None
        self._shards: list[Shard] = []
        self._dim: int | None = None
        self._refused = self._is_new = False

    def __enter__(self) -> StoreWriter:
        self._is_new = not self.path.exists()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None and exception and isinstance(exception[1], Exception) and self.finished is None:
            with contextlib.suppress(OSError):
                self._give_up()
        super().__exit__()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Those of this text that are whole."""
        return tuple(self._shards)

    def keep(self, shards: int) -> None:
        """Go on after the first ``shards`` of those that are whole."""
        del self._shards[shards:]
        lines = [json.dumps({"dim": self._dim, **asdict(shard)}) + "\n" for shard in self._shards]
        write_atomic(self.path / JOURNAL, "".join(lines).encode("utf-8"))

    def write(self, rows: Embeddings, *, text_sha256: str = "", place: Callable[[int], str] | None = None) -> Shard:
        """Write the next shard.

        Args:
            rows: *Shape:* ``(rows, dim)``
            text_sha256: Hash of their sentences.
            place: Says where row ``i`` of this block comes from, for errors.
        Raises:
            ValueError: For vectors that are NaN, infinite, zero, or of another dim.
            OSError: For a full disk.
        """
        assert self._lock is not None and self.finished is None, "write inside the with block, before finish"
        file = self._file_name(len(self._shards))
        try:
            tensor = shard_rows_to_write(rows, self.header.dtype, place or (lambda row: f"row {row} of {file}"))
        except ValueError:
            self._refused = True
            raise
        dim = tensor.shape[1]
        if self._dim not in (None, dim):
            raise ValueError(f"{self.path}: expected vectors of dim {self._dim}, got {dim}; one store, one model.")
        data = shard_bytes(tensor, self.header.file_format)
        shard = Shard(file, len(tensor), len(data), hashlib.sha256(data).hexdigest(), text_sha256)
        write_atomic(self.path / file, data)
        append_line(self.path / JOURNAL, json.dumps({"dim": dim, **asdict(shard)}))
        self._dim = dim
        self._shards.append(shard)
        return shard

    def finish(self) -> Manifest:
        """Write the manifest: from now on this is a store."""
        assert self._dim is not None, "a store holds at least one shard"
        before = self._base or Manifest(self.header, self._dim, ())
        manifest = Manifest(before.header, self._dim, (*before.shards, *self._shards), (*before.texts, self.text))
        write_json(self.path / MANIFEST, manifest.as_json(), indent=1)
        self._tidy(manifest)
        self.finished = manifest
        return manifest

    def _claim(self) -> None:
        check_folder(self.path)
        self._clear(*(f"{name}{TEMPORARY}" for name in (MANIFEST, WRITING, JOURNAL, "shard-*")))
        written = self._half_written()
        if written is not None and written.get("refused"):
            written = self._mended(written)
        same = written is not None and self.resume and not self._unlike(written)
        if self.overwrite:
            if same and not (self.path / MANIFEST).exists():
                self._take_up()
            else:
                self._set_out()
            return
        if (self.path / MANIFEST).is_file():
            manifest = read_manifest(self.path)
            if self._is_asked_for(manifest):
                if same:
                    self._tidy(manifest)
                self.finished = manifest
                return
            self._base, self._dim = manifest, manifest.dim
        if written is None:
            self._set_out()
        elif same:
            self._take_up()
        else:
            raise self._refusal("a half-written store", self._unlike(written))

    def _is_asked_for(self, manifest: Manifest) -> bool:
        """Whether a finished store is what this writer was to write, so that there is nothing to do.

        Raises:
            ValueError: If it is another, unless this writer appends to it.
        """
        unlike = differences(manifest.header, self.header)
        of_text = differences(manifest.texts[-1], self.text)
        if len(manifest.texts) > 1 and not self.append:
            of_text.append(f"it was of {len(manifest.texts)} texts")
        if self.resume and not unlike and not of_text:
            return True
        if unlike or not self.append:
            raise self._refusal("a finished store", unlike + of_text, can_append=not unlike)
        return False

    def _refusal(self, what: str, unlike: list[str], can_append: bool = False) -> ValueError:
        hint = "add to it with append (--append), " if can_append else ""
        why = f" of something else ({'; '.join(unlike)})" if unlike else ""
        return ValueError(
            f"{self.path} holds {what}{why}; {hint}replace it with overwrite (--overwrite), or choose another folder."
        )

    def _half_written(self) -> dict[str, Any] | None:
        path = self.path / WRITING
        if not path.is_file():
            return None
        try:
            written = read_json_object(path, remedy=_REMEDY)
            header_from_json(written)
            if not isinstance(written["text"], dict):
                raise TypeError(written["text"])
        except (KeyError, TypeError, ValueError) as error:
            if self.overwrite:
                return None
            if str(path) in str(error):
                raise
            raise ValueError(f"{path}: expected what a writer set out to do, got {error!r}; {_REMEDY}.") from error
        return written

    def _unlike(self, written: dict[str, Any]) -> list[str]:
        return differences(header_from_json(written), self.header) + differences(written["text"], self.text)

    def _mended(self, written: dict[str, Any]) -> dict[str, Any] | None:
        """What stands in place of a half-written store whose next vectors were refused: nothing can become of it.

        Its shards are kept for the same model and settings; each says of which sentences it is.
        """
        if not self.resume or differences(header_from_json(written), self.header):
            self._clear_unfinished()
            return None
        return self._announce()

    def _give_up(self) -> None:
        """After an error: leave nothing that would stand in the way of a mended call, unless it can be resumed."""
        if self._shards and self.resume:
            if self._refused:
                self._announce(refused=True)
            return
        self._clear_unfinished()
        if self._is_new:
            self.path.rmdir()

    def _announce(self, **more: Any) -> dict[str, Any]:
        task = {**asdict(self.header), "text": self.text, **more}
        write_json(self.path / WRITING, task, indent=1)
        return task

    def _file_name(self, number: int) -> str:
        return f"shard-{number + (len(self._base.shards) if self._base else 0):06d}.{self.header.file_format}"

    def _take_up(self) -> None:
        """Go on after the last shard that is in the journal and, as it was written, in the folder."""
        for entry in read_journal(self.path / JOURNAL):
            try:
                dim = entry.pop("dim")
                shard = shard_from_json(entry)
            except (AttributeError, KeyError, TypeError, ValueError):
                break  # no line of ours
            path = self.path / shard.file
            if shard.file != self._file_name(len(self._shards)) or self._dim not in (None, dim):
                break
            if not path.is_file() or path.stat().st_size != shard.bytes or file_sha256(path) != shard.sha256:
                break
            self._dim = dim
            self._shards.append(shard)
        self.keep(len(self._shards))  # without what was cut off

    def _set_out(self) -> None:
        # In this order: dying between any two steps leaves a folder that the next writer understands.
        self._clear(JOURNAL)
        self._announce()
        if self.overwrite:
            self._clear(MANIFEST, "shard-*")

    def _clear_unfinished(self) -> None:
        self._tidy(read_manifest(self.path) if (self.path / MANIFEST).is_file() else None)

    def _tidy(self, manifest: Manifest | None) -> None:
        """Leave the store and nothing else; ``writing.json`` goes last, since it says whose the rest is."""
        kept = {shard.file for shard in manifest.shards} if manifest else set()
        for path in self.path.glob("shard-*"):
            if path.name not in kept:
                path.unlink()
        self._clear(JOURNAL, WRITING)

    def _clear(self, *patterns: str) -> None:
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
