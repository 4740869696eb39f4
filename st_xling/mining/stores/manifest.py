"""What an embedding store says of itself.

==========================  ==========================================================================
``manifest.json``           written last: what the store holds, and every shard with rows and checksum
``shard-000000.safetensors``…  one tensor ``embeddings`` *(rows, dim)*; or ``.npy``, an array of that shape
``writing.json``            while it is being written: what it is to hold
``journal.jsonl``           while it is being written: a line for every shard that is whole
==========================  ==========================================================================
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
WRITING = "writing.json"
JOURNAL = "journal.jsonl"
FORMAT = "st-xling embedding store"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ModelIdentity:
    """Which encoder made the embeddings.

    Attributes:
        name: As it was asked for; says where to look, is not compared.
        revision: Commit on the Hub, where known; not compared.
        fingerprint: Hash of weights, vocabulary and settings; embeddings agree only where this does.
    """

    name: str = ""
    revision: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        return f"{self.name or 'a model without a name'}@{self.fingerprint[:8] or '?'}"


@dataclass(frozen=True)
class Shard:
    """One file of the store.

    Attributes:
        file: Its name in the folder.
        rows: Vectors in it.
        bytes: Its size.
        sha256: Of its bytes.
        text_sha256: Of the sentences of its rows; empty if unknown.
    """

    file: str
    rows: int
    bytes: int
    sha256: str
    text_sha256: str = ""


@dataclass(frozen=True)
class Header:
    """What all shards of a store share; two writers must agree on it.

    Attributes:
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        file_format: ``"safetensors"`` or ``"npy"``.
        normalised: Whether each vector was scaled to length 1 before it was rounded to ``dtype``.
        model: The encoder.
        settings: What else the numbers depend on, such as the batch size.
    """

    dtype: str = "float32"
    file_format: str = "safetensors"
    normalised: bool = False
    model: ModelIdentity = ModelIdentity()
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """A whole store.

    Attributes:
        header: What all shards share.
        dim: Width of the vectors.
        shards: In the order of their rows.
        texts: One entry for each text whose rows were written, in order, as of :class:`TextSurvey`.
    """

    header: Header
    dim: int
    shards: tuple[Shard, ...]
    texts: tuple[dict[str, Any], ...] = ()

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
            "texts": list(self.texts),
            "shards": [asdict(shard) for shard in self.shards],
        }


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store.

    Raises:
        ValueError: If it is no manifest, damaged, or of a later format.
    """
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = content["format"] == FORMAT
        version = content["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the manifest of an embedding store, got {error!r}; {_REMEDY}") from error
    if not known or version != FORMAT_VERSION:
        raise ValueError(
            f"{path}: expected {FORMAT!r} of version {FORMAT_VERSION}, got {content['format']!r} of version "
            f"{version!r}; read it with the st-xling that wrote it."
        )
    try:
        header = header_from_json(content)
        shards = tuple(Shard(**shard) for shard in content["shards"])
        manifest = Manifest(header, content["dim"], shards, tuple(content["texts"]))
        for shard in shards:
            _check_shard(shard)
        agrees = manifest.rows == content["rows"] and isinstance(manifest.dim, int) and manifest.dim > 0
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the manifest is damaged: {error!r}; {_REMEDY}") from error
    if not agrees:
        raise ValueError(
            f"{path}: the manifest is damaged: it speaks of {content['rows']} rows of {manifest.dim}, its shards of "
            f"{manifest.rows} rows; {_REMEDY}"
        )
    return manifest


def header_from_json(content: dict[str, Any]) -> Header:
    """The header part of a manifest, or of what a writer set out to do."""
    values = {name: content[name] for name in Header.__dataclass_fields__}
    return Header(**{**values, "model": ModelIdentity(**values["model"])})


_REMEDY = "write the store again."


def _check_shard(shard: Shard) -> None:
    if Path(shard.file).name != shard.file or not shard.file.startswith("shard-"):
        raise ValueError(f"a shard may not lie at {shard.file!r}")
    if not all(isinstance(number, int) and number > 0 for number in (shard.rows, shard.bytes)):
        raise ValueError(f"{shard.file} has {shard.rows!r} rows in {shard.bytes!r} bytes")
