"""What mining two texts will take on this machine: seconds measured on a small part, bytes counted."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from st_xling.mining.find import check_k, check_search
from st_xling.mining.mining_trials import embedding_trial, search_seconds
from st_xling.mining.text import Files, file_list, read_rows
from st_xling.mining.text_embeddings import vectors_from
from st_xling.mining.text_encoder import EncodeOptions, Encoder
from st_xling.mining.text_lines import open_bytes

_BYTES_PER_NUMBER = {"float32": 4, "float16": 2, "bfloat16": 2}
_BYTES_PER_LINE = 64  # its place in the file, its fold, its hash


@dataclass(frozen=True, kw_only=True)
class MiningPlan:
    """Estimates.

    Attributes:
        rows: Lines of each side, duplicates and blank ones not yet told apart.
        dim: Of the vectors.
        method: How neighbours are searched.
        device: Where.
        encode_seconds: To embed what has no embeddings yet.
        search_seconds: To search.
        memory_bytes: Beyond the encoder's.
        disk_bytes: For the work and the pairs, at most.
        disk_free_bytes: Where the work is to be kept.
    """

    rows: dict[str, int]
    dim: int
    method: str
    device: str
    encode_seconds: float
    search_seconds: float
    memory_bytes: int
    disk_bytes: int
    disk_free_bytes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The plan for a reader."""
        short = " — not enough" if self.disk_bytes > self.disk_free_bytes else ""
        return [
            *(f"{side}: {rows:,} lines" for side, rows in self.rows.items()),
            f"search: {self.method}, dim {self.dim}, on {self.device}",
            f"time: about {_duration(self.encode_seconds)} to embed, {_duration(self.search_seconds)} to search",
            f"memory: about {_size(self.memory_bytes)} beyond the encoder's",
            f"disk: up to {_size(self.disk_bytes)} of {_size(self.disk_free_bytes)} free{short}",
        ]


def plan_mining(
    source: Files,
    target: Files,
    *,
    model: Any = None,
    source_embeddings: str | Path | None = None,
    target_embeddings: str | Path | None = None,
    dim: int = 1024,
    laser_dtype: str = "float32",
    text_format: str = "lines",
    errors: str = "strict",
    batch_size: int = 128,
    dtype: str = "float32",
    prompt: str | None = None,
    k: int = 4,
    method: str = "exact",
    engine: str = "local",
    device: str | None = None,
    memory_mib: int = 256,
    work: str | Path = ".",
) -> MiningPlan:
    """Estimate what :func:`~st_xling.mining.mine_texts` with these options will take; writes nothing.

    Lines are counted, a few hundred sentences embedded, and a small search made among random vectors. Real vectors lie
    closer together, which takes somewhat longer; duplicates, which are mined once, make it shorter.

    Args:
        work: Folder where the work is to be kept, or one above it.
        others: As for ``mine_texts``.
    Raises:
        ValueError: As ``mine_texts``, as far as it can be told by now.
    """
    check_search(method, engine)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    counted = {"source": _count(source), "target": _count(target)}
    rows = {side: count for side, (count, _) in counted.items()}
    check_k(k, *rows.values())
    makers, _ = vectors_from(
        model,
        {"source": source_embeddings, "target": target_embeddings},
        rows,
        dim=dim,
        laser_dtype=laser_dtype,
        options=EncodeOptions(batch_size=batch_size, dtype=dtype, prompt=prompt, device=device),
    )
    encode_s, disk = 0.0, 0
    for side, files in (("source", source), ("target", target)):
        maker = makers[side]
        if isinstance(maker, Encoder):
            first = [row.sentence for row in islice(read_rows(files, format=text_format, errors=errors), 4096)]
            seconds, dim = embedding_trial([text for text in first if text.strip()], maker)
            encode_s += seconds * rows[side]
            disk += rows[side] * dim * _BYTES_PER_NUMBER[dtype] + counted[side][1]
        else:
            dim = int(maker.rows.shape[1])
    both = sum(rows.values())
    return MiningPlan(
        rows=rows,
        dim=dim,
        method=method,
        device=device,
        encode_seconds=encode_s,
        search_seconds=search_seconds(rows["source"], rows["target"], dim, k=k, device=device, memory_mib=memory_mib),
        memory_bytes=memory_mib * 2**20 + (_BYTES_PER_LINE + 32 + 24 * k) * both,
        # Two states of the search while one replaces the other; the pairs hold each text at most once.
        disk_bytes=disk + 16 * k * both + sum(size for _, size in counted.values()),
        disk_free_bytes=shutil.disk_usage(_nearest(Path(work))).free,
    )


def _count(files: Files) -> tuple[int, int]:
    """Lines, and bytes when unpacked."""
    lines = size = 0
    for path in file_list(files):
        with open_bytes(path) as stream:
            last = b"\n"
            while chunk := stream.read(1 << 20):
                lines, size, last = lines + chunk.count(b"\n"), size + len(chunk), chunk[-1:]
            lines += last != b"\n"
    return lines, size


def _nearest(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists() and os.access(folder, os.R_OK))


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count < 10 * 2**30 else f"{count / 2**30:,.0f} GiB"
