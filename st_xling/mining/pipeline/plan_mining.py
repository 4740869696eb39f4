"""What mining two texts will take on this machine: seconds measured on a small part, bytes counted."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from st_xling.mining.find import check_k, method_for
from st_xling.mining.guards import GuardOptions
from st_xling.mining.pipeline.guarded_pairs import check_guards
from st_xling.mining.pipeline.mining_plan import MiningPlan, SearchCost
from st_xling.mining.pipeline.mining_trials import approximate_seconds, embedding_trial, guard_seconds, search_seconds
from st_xling.mining.pipeline.options import SearchOptions
from st_xling.mining.text import Files, file_list, read_rows
from st_xling.mining.thresholds.planted_threshold import check_calibration, most_planted
from st_xling.mining.vectors import Encoder, VectorMakers
from st_xling.utils.text import open_bytes

_BYTES_PER_NUMBER = {"float32": 4, "float16": 2, "bfloat16": 2}
_BYTES_PER_LINE = 64  # its place in the file, its fold, its hash
_EXACT_BYTES, _APPROXIMATE_BYTES = 32, 48  # of a row in a search, beside its neighbours
_WAITING_BYTES = 120 * 2**20  # candidates of an approximate search that wait for their exact cosines


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
    calibrate_with: str | Path | None = None,
    guards: GuardOptions | None = None,
    work: str | Path = ".",
) -> MiningPlan:
    """Estimate what :func:`~st_xling.mining.mine_texts` with these options will take; writes nothing.

    Lines are counted, a few hundred sentences embedded, and a small search made among random vectors. Real vectors lie
    closer together, which takes somewhat longer; duplicates, which are mined once, make it shorter. What ``"auto"``
    picks is told by the lines, which may be more than the distinct sentences that it will go by.

    Args:
        calibrate_with: A threshold will be estimated with it: planted pairs are embedded, and there is a search more.
        guards: Which guards will be on; all by default. They are tried on some pairs of similar length.
        work: Folder where the work is to be kept, or one above it.
        others: As for ``mine_texts``.
    Raises:
        ValueError: As ``mine_texts``, as far as it can be told by now.
    """
    guards = guards or GuardOptions()
    asked = PlanOptions(**locals())
    asked.check()
    counted = {"source": _count(source), "target": _count(target)}
    rows = {side: lines for side, (lines, _) in counted.items()}
    text_bytes = {side: size for side, (_, size) in counted.items()}
    check_k(k, *rows.values())
    makers, encoder = asked.vector_makers(rows)
    embedded = [side for side, maker in makers.items() if isinstance(maker, Encoder)]
    dim, seconds = _embedding(asked, makers, encoder)
    method = method_for(engine, rows["source"], rows["target"], dim) if asked.method == "auto" else asked.method
    searches = _searches(asked, rows, dim)
    both, a_vector = sum(rows.values()), dim * _BYTES_PER_NUMBER[dtype]
    # Two states of the search while one replaces the other; the pairs hold each text at most once.
    disk = 16 * k * both + sum(text_bytes.values())
    disk += sum(rows[side] * a_vector + text_bytes[side] for side in embedded)
    calibrate_s = 0.0
    if calibrate_with is not None:
        planted = most_planted(*rows.values())
        larger = (rows["source"] + planted) * (rows["target"] + planted) / (rows["source"] * rows["target"])
        calibrate_s = planted * sum(seconds.values()) + searches[method].seconds * larger
        of_text = sum(text_bytes.values()) // both
        disk += 2 * planted * (a_vector + of_text + 8 * k) + 8 * k * both  # the state of its search stays
    return MiningPlan(
        rows=rows,
        dim=dim,
        method=method,
        device=asked.place,
        encode_seconds=sum(seconds[side] * rows[side] for side in embedded),
        search_seconds=searches[method].seconds,
        memory_bytes=searches[method].memory_bytes,
        disk_bytes=disk,
        disk_free_bytes=shutil.disk_usage(_nearest(Path(work))).free,
        automatic=asked.method == "auto",
        calibrate_seconds=calibrate_s,
        searches=searches,
        guard_seconds=guard_seconds(_samples(asked), guards, rows["source"], rows["target"], k=k),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanOptions(SearchOptions):
    """All that :func:`plan_mining` is asked for."""

    source: Files
    target: Files
    text_format: str
    errors: str
    calibrate_with: str | Path | None
    guards: GuardOptions
    work: str | Path

    def check(self) -> None:
        super().check()
        check_calibration(self.calibrate_with, threshold=None, target_precision=None, model=self.model)
        check_guards(self.guards, self.k)


def _embedding(asked: PlanOptions, makers: VectorMakers, encoder: Encoder | None) -> tuple[int, dict[str, float]]:
    """Dim, and seconds to embed a sentence of each side that the encoder will see."""
    dim, seconds = 0, {}
    for side, files in (("source", asked.source), ("target", asked.target)):
        maker = makers[side]
        if encoder is not None and (maker is encoder or asked.calibrate_with is not None):
            seconds[side], dim = embedding_trial(_sentences(asked, files), encoder)
        if not isinstance(maker, Encoder):
            dim = int(maker.rows.shape[1])
    return dim, seconds


def _samples(asked: PlanOptions) -> tuple[list[str], list[str]]:
    return _sentences(asked, asked.source), _sentences(asked, asked.target)


def _sentences(asked: PlanOptions, files: Files) -> list[str]:
    """The first of a text."""
    rows = islice(read_rows(files, format=asked.text_format, errors=asked.errors), 4096)
    return [row.sentence for row in rows if row.sentence.strip()]


def _searches(asked: PlanOptions, rows: dict[str, int], dim: int) -> dict[str, SearchCost]:
    """What each method takes; a cluster has but one."""
    options: dict[str, Any] = {"k": asked.k, "device": asked.place, "memory_mib": asked.memory_mib}
    sizes = rows["source"], rows["target"], dim
    both = sum(rows.values())
    # A row's neighbours are there three times: as keys, as they are read, as candidates.
    shared = asked.memory_mib * 2**20 + (_BYTES_PER_LINE + 24 * asked.k) * both
    costs = {"exact": SearchCost(search_seconds(*sizes, **options), shared + _EXACT_BYTES * both)}
    if asked.engine == "local":
        seconds = approximate_seconds(*sizes, **options)
        costs["approximate"] = SearchCost(seconds, shared + _APPROXIMATE_BYTES * both + _WAITING_BYTES)
    return costs


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
