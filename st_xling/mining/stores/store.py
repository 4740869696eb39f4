"""Embeddings on disk, read a slice at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from st_xling._version import __version__
from st_xling.mining.stores.manifest import JOURNAL, MANIFEST, WRITING, read_manifest
from st_xling.mining.stores.rows import ShardedRows
from st_xling.mining.stores.shard_files import shard_shape
from st_xling.mining.text.survey import hash_sentence
from st_xling.utils.io import file_sha256, read_journal


class EmbeddingStore(ShardedRows):
    """A folder of embeddings that looks like one array of shape ``(rows, dim)``.

    It reads as :class:`~st_xling.mining.stores.rows.ShardedRows` says: ``store.shape``, ``store[a:b]``.
    """

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> EmbeddingStore:
        """Open a store and look at every shard's size and header.

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
            if (folder / WRITING).is_file():
                raise ValueError(
                    f"{folder}: the store is half-written: {len(read_journal(folder / JOURNAL))} shards are whole; run "
                    "the command that writes it again, it goes on from there."
                )
            raise ValueError(f"{folder}: expected an embedding store, got a folder without {MANIFEST}.")
        store = cls(folder, read_manifest(folder))
        store._check_shards()
        if verify:
            store.verify()
        return store

    @property
    def blank_rows(self) -> np.ndarray:
        """Rows that stand for an empty sentence, int64: not to be mined. *Shape:* ``(blank rows,)``"""
        rows, first = [], 0
        for text in self.manifest.texts:
            rows += [first + row for row in text["blank_rows"]]
            first += text["rows"]
        return np.array(rows, dtype=np.int64)

    def __repr__(self) -> str:
        header = self.manifest.header
        return f"EmbeddingStore({str(self.path)!r}, shape={self.shape}, dtype={header.dtype}, model={header.model})"

    @property
    def signature(self) -> str:
        """One line that says what the vectors are."""
        header, texts = self.manifest.header, self.manifest.texts
        data = "+".join(f"{','.join(text['files']) or 'unnamed'}@{text['sha256'][:8] or '?'}" for text in texts)
        settings = "".join(f"{key}:{value}|" for key, value in header.settings.items() if value is not None)
        return (
            f"encode|model:{header.model}|rows:{self.rows}|dim:{self.dim}|dtype:{header.dtype}|"
            f"normalised:{'yes' if header.normalised else 'no'}|{settings}data:{data}|st-xling:{__version__}"
        )

    def check_same_model(self, other: EmbeddingStore) -> None:
        """Raise unless both stores were encoded by the same model: cosines between models mean nothing.

        Raises:
            ValueError: If dims or models differ.
        """
        mine, theirs = self.manifest.header.model, other.manifest.header.model
        if self.dim != other.dim or mine.fingerprint != theirs.fingerprint:
            raise ValueError(
                f"both sides must be encoded by the same model: got {mine} of dim {self.dim} in {self.path} and "
                f"{theirs} of dim {other.dim} in {other.path}; encode one of them again."
            )

    def check_text(self, sentences: Iterable[str]) -> None:
        """Raise unless row ``i`` was encoded from sentence ``i``, for all rows.

        Args:
            sentences: A :class:`~st_xling.mining.MiningText`, or any sentences in the order of the rows.
        Raises:
            ValueError: If there are more or fewer sentences than rows, or others than were encoded; names the rows.
        """
        stream, count = iter(sentences), 0
        for shard in self.manifest.shards:
            digest, first = hashlib.sha256(), count
            for sentence in islice(stream, shard.rows):
                hash_sentence(digest, sentence)
                count += 1
            if count - first < shard.rows:
                break
            if shard.text_sha256 and digest.hexdigest() != shard.text_sha256:
                raise ValueError(
                    f"{self.path}: the text is not the one that was encoded: it differs in rows {first} to {count - 1} "
                    f"({shard.file}); give the same text, or encode this one."
                )
        count += sum(1 for _ in stream)
        if count != self.rows:
            raise ValueError(
                f"{self.path}: the text must have a sentence for each of {self.rows} rows: got {count} sentences; give "
                "the text that was encoded, or encode this one."
            )

    def verify(self) -> None:
        """Raise unless every shard's bytes have the checksum of the manifest."""
        for shard in self.manifest.shards:
            if file_sha256(self.path / shard.file) != shard.sha256:
                raise ValueError(f"{self.path / shard.file}: the checksum is wrong; {_AGAIN}")

    def _check_shards(self) -> None:
        for shard in self.manifest.shards:
            path = self.path / shard.file
            if not path.is_file():
                raise FileNotFoundError(f"{path}: this shard of {shard.rows} rows is missing; {_AGAIN}")
            size = path.stat().st_size
            if size != shard.bytes:
                raise ValueError(f"{path}: expected {shard.bytes:,} bytes, got {size:,}; {_AGAIN}")
            expected = (shard.rows, self.dim), self.manifest.header.dtype
            if (found := shard_shape(path)) != expected:
                raise ValueError(f"{path}: expected {_shape(*expected)}, got {_shape(*found)}; {_AGAIN}")


_AGAIN = "write the store again, or fetch this file again."


def _shape(shape: tuple[int, ...], dtype: str) -> str:
    return f"{dtype} of shape {tuple(shape)}"
