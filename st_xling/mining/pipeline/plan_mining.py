"""Estimate the costs of mining two texts: a sample of the lines is embedded and searched, and scaled to all of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.pipeline.work import default_device
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import find_neighbors
from st_xling.mining.store import DTYPES
from st_xling.mining.text import MiningText
from st_xling.mining.vectors import PrecomputedEmbeddings, vectors_from
from st_xling.utils.console import duration
from st_xling.utils.options import StoreDtype, TextFormat

#: Lines of each text that are measured: fewer where they must be embedded first.
EMBEDDED, READY = 2048, 8192


@dataclass(frozen=True, kw_only=True)
class MiningPlan:
    """Estimates for all lines, from measurements on a sample.

    Attributes:
        rows: Lines of each text, by side; duplicates and blank lines count.
        measured: Lines of each text that were measured.
        encode_seconds: Time to embed all lines that have no embeddings; proportional to the lines.
        search_seconds: Time of an exact search; proportional to the product of the lines of both texts.
        memory_bytes: Memory beyond the encoder's: a block of the search, and the neighbors of each line.
        disk_bytes: Disk space of the work: vectors of embedded lines, and the state of the search.
        device: Device of the encoder and the search.
    """

    rows: dict[str, int]
    measured: dict[str, int]
    encode_seconds: float
    search_seconds: float
    memory_bytes: int
    disk_bytes: int
    device: str

    def lines(self) -> list[str]:
        """Describe the plan, one a line."""
        return [
            *(f"{side}: {rows:,} lines, {self.measured[side]:,} of them measured" for side, rows in self.rows.items()),
            f"time: about {duration(self.encode_seconds)} to embed, {duration(self.search_seconds)} for an exact search"
            f" on {self.device}",
            f"memory: about {self.memory_bytes / 2**20:,.0f} MiB beyond the encoder's",
            f"disk: about {self.disk_bytes / 2**20:,.0f} MiB",
        ]


def plan_mining(
    source: str | Path,
    target: str | Path,
    *,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    text_format: TextFormat = "lines",
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    k: int = 4,
    device: str | None = None,
    memory_mib: int = 256,
) -> MiningPlan:
    """Estimate time, memory and disk of :func:`~st_xling.mining.mine_texts` with these options; writes nothing.

    Lines at equal distances in each text are embedded, or their vectors are read if there are embeddings, and the two
    samples are searched. Encoding grows with the lines, an exact search with their product. A small search takes longer
    per product than a large one, so the search is estimated on the high side. Filters, calibration, re-scoring and
    approximate search are not measured.

    Args:
        source: As for ``mine_texts``, as all that follow unless stated otherwise.
        target: As for ``mine_texts``.
        model: As for ``mine_texts``.
        source_embeddings: As for ``mine_texts``.
        target_embeddings: As for ``mine_texts``.
        source_language: Language of the source text, for a model that is centered by language.
        target_language: Language of the target text.
        text_format: As for ``mine_texts``.
        batch_size: As for ``mine_texts``.
        dtype: As for ``mine_texts``.
        prompt: As for ``mine_texts``.
        k: As for ``mine_texts``.
        device: As for ``mine_texts``.
        memory_mib: As for ``mine_texts``.
    Raises:
        ValueError: For options out of range, faulty texts, or embeddings that do not match them.
    """
    device = device or default_device()
    texts = {"source": MiningText(source, format=text_format), "target": MiningText(target, format=text_format)}
    rows = {side: text.validate().rows for side, text in texts.items()}
    check_k(k, rows["source"], rows["target"])
    encoder = None
    if model is not None:
        from st_xling.mining.encoding import Encoder  # slow to import

        encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device)
    given = {"source": source_embeddings, "target": target_embeddings}
    languages = {"source": source_language, "target": target_language}
    makers, _ = vectors_from(encoder, given, rows, languages=languages)
    vectors: dict[str, np.ndarray] = {}
    encode_seconds, embedded = 0.0, 0
    for side, maker in makers.items():
        step = -(-rows[side] // (READY if isinstance(maker, PrecomputedEmbeddings) else EMBEDDED))
        sample = dict(islice((line for line in enumerate(texts[side]) if line[1].strip()), 0, None, step))
        if isinstance(maker, PrecomputedEmbeddings):
            vectors[side] = np.asarray(maker.rows[np.array([*sample])])
            continue
        maker.vectors([*sample.values()][:8])  # the first call prepares the device
        started = time.perf_counter()
        vectors[side] = maker.vectors([*sample.values()])
        encode_seconds += (time.perf_counter() - started) * rows[side] / len(sample)
        embedded += rows[side]
    measured = {side: len(sample) for side, sample in vectors.items()}
    sample_k = min(k, *measured.values())
    for _ in range(2):  # the first run prepares the device
        started = time.perf_counter()
        find_neighbors(vectors["source"], vectors["target"], k=sample_k, device=device, memory_mib=memory_mib)
        searched_in = time.perf_counter() - started
    vector_bytes = vectors["source"].shape[1] * DTYPES[dtype].itemsize + 4 * (dtype == "int8")  # with its scale
    return MiningPlan(
        rows=rows,
        measured=measured,
        encode_seconds=encode_seconds,
        search_seconds=searched_in * math.prod(rows.values()) / math.prod(measured.values()),
        memory_bytes=memory_mib * 2**20 + 12 * k * sum(rows.values()),
        disk_bytes=embedded * vector_bytes + 16 * k * sum(rows.values()),
        device=device,
    )
