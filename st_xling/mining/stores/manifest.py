"""What an embedding store says of itself.

==========================  ==========================================================================
``manifest.json``           written last: what the store holds, and every shard with rows and checksum
``shard-000000.safetensors``…  one tensor ``embeddings`` *(rows, dim)*; or ``.npy``, an array of that shape
``writing.json``            while it is being written: what it is to hold
``journal.jsonl``           while it is being written: a line for every shard that is whole
==========================  ==========================================================================
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from st_xling.mining.stores.shard_files import check_format
from st_xling.utils.io import read_json_object

MANIFEST = "manifest.json"
WRITING = "writing.json"
JOURNAL = "journal.jsonl"
FORMAT = "st-xling embedding store"
FORMAT_VERSION = 1

_SHA256 = re.compile("[0-9a-f]{64}")


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
    content = read_json_object(path, missing_ok=False, remedy=_REMEDY.removesuffix("."))
    known, version = content.get("format"), content.get("version")
    if known != FORMAT or version != FORMAT_VERSION:
        raise ValueError(
            f"{path}: expected {FORMAT!r} of version {FORMAT_VERSION}, got {known!r} of version "
            f"{version!r}; read it with the st-xling that wrote it."
        )
    try:
        header = header_from_json(content)
        shards = tuple(map(shard_from_json, content["shards"]))
        manifest = Manifest(header, content["dim"], shards, tuple(content["texts"]))
        _check_texts(manifest)
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
    """The header part of a manifest, or of what a writer set out to do.

    Raises:
        ValueError, KeyError, TypeError: If it is none.
    """
    values = {name: content[name] for name in Header.__dataclass_fields__}
    header = Header(**{**values, "model": ModelIdentity(**values["model"])})
    for part, default in ((header, Header()), (header.model, ModelIdentity())):
        for name, expected in vars(default).items():
            if type(value := getattr(part, name)) is not type(expected):
                raise ValueError(f"{name} must be of type {type(expected).__name__}: got {value!r}")
    check_format(header.dtype, header.file_format)
    return header


def shard_from_json(content: Any) -> Shard:
    """A shard of a manifest or of a journal.

    Raises:
        ValueError, KeyError, TypeError: If it is none.
    """
    shard = Shard(**content)
    _check_shard(shard)
    return shard


_REMEDY = "write the store again."


def _check_shard(shard: Shard) -> None:
    if Path(shard.file).name != shard.file or not shard.file.startswith("shard-"):
        raise ValueError(f"a shard may not lie at {shard.file!r}")
    if not all(type(number) is int and number > 0 for number in (shard.rows, shard.bytes)):
        raise ValueError(f"{shard.file} has {shard.rows!r} rows in {shard.bytes!r} bytes")
    for name in ("sha256", "text_sha256"):
        value = getattr(shard, name)
        if not isinstance(value, str) or not (_SHA256.fullmatch(value) or (name == "text_sha256" and not value)):
            raise ValueError(f"{shard.file} has the {name} {value!r}")


def _check_texts(manifest: Manifest) -> None:
    """Raise unless the texts are those of the shards: where a text was hashed, each of its shards was."""
    shards = iter(manifest.shards)
    for text in manifest.texts:
        if not (_is_list(text["files"], str) and _is_list(text["blank_rows"], int) and isinstance(text["sha256"], str)):
            raise ValueError(f"no text is described by {text!r}")
        left = text["rows"]
        while left > 0:
            shard = next(shards, None)
            if shard is None or shard.rows > left:
                raise ValueError("the rows of its texts are not those of its shards")
            left -= shard.rows
            if text["sha256"] and not shard.text_sha256:
                raise ValueError(f"{shard.file} has no hash of its text, which was hashed")
    if next(shards, None) is not None:
        raise ValueError("the rows of its texts are not those of its shards")


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(part) is kind for part in value)
