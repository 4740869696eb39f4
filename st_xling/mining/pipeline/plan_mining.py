"""What mining two texts will take on this machine: seconds measured on a small part, bytes counted."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch

from st_xling.mining.deduplication import fold_duplicates
from st_xling.mining.guards import CandidateBatch, GuardOptions, PairGuards, weighted_length
from st_xling.mining.mine import MinedPairs
from st_xling.mining.pipeline.config import MiningConfig, takes_options
from st_xling.mining.pipeline.threshold import most_known
from st_xling.mining.search import approximate
from st_xling.mining.search.approximate import FAISS
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import block_sizes, check_k, neighbours
from st_xling.mining.search.find import choose_method
from st_xling.mining.text import Files, file_list, read_rows
from st_xling.mining.vectors import Encoder
from st_xling.utils.console import duration
from st_xling.utils.text import open_bytes

_BYTES_PER_NUMBER = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
_BYTES_PER_LINE = 16  # its place in the file, the place of its sentence; beside them a MiB or so of sentences
_CHOICE_BYTES = 48  # of a row, while pairs are chosen, beside its neighbours
_MATRIX_BYTES = 22  # of a row in a search, beside its neighbours
_HELD_BYTES = 100  # of a candidate that an exact search holds, and of what it is sorted and scored by
_TRAINING_ROUNDS = 10  # of k-means in FAISS

# Rows and columns of a trial of the exact search: enough for bfloat16 to be tried where it pays.
_TRIAL = 4096, 16384

# What else is done with a line, a pair and a candidate of guards, in units of what it takes to find a line's
# duplicates: lines are checked, folded, put in order and read again; the others are read or written by row.
_PER_LINE, _PER_PAIR, _PER_CANDIDATE = 4.5, 12.0, 3.0

# Rows of a trial search, cells in it, sentences embedded, and pairs that guards look at.
_ROWS, _PROBES, _SENTENCES, _PAIRS = 2048, (3, 12), 256, 1024

# Of the candidates of both texts: a pair that is met from both is asked about once. 62 % where all are turned down and
# neighbours are mutual (30,000 random vectors and noisy copies of them), 100 % where none is met twice.
_ASKED_ABOUT = 0.75


class SearchCost(TypedDict):
    """What one way to search takes: seconds to search once, and memory beyond the encoder's."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class MiningPlan:
    """Estimates.

    Attributes:
        rows: Lines of each text, duplicates and blank ones not yet told apart.
        dim: Of the vectors.
        method: How neighbours are searched: what was requested, or what ``"auto"`` picks.
        device: Where.
        encode_seconds: To embed what has no embeddings yet.
        search_seconds: To search.
        memory_bytes: Beyond the encoder's.
        disk_bytes: For the work and the pairs, at most.
        disk_free_bytes: Where the work is to be kept.
        automatic: Whether ``"auto"`` picked the method.
        calibrate_seconds: To estimate a threshold, at most; 0 where none is to be.
        searches: What each method would take in one process, by name.
        guard_seconds: For the guards to look at candidates.
        text_seconds: To read both texts, find duplicates, choose pairs and write as many as there can be.
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
    automatic: bool
    calibrate_seconds: float
    searches: dict[str, SearchCost]
    guard_seconds: float
    text_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The estimates, as JSON can write them."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The plan for a reader."""
        picked = ", picked by auto" if self.automatic else ""
        times = f"about {duration(self.encode_seconds)} to embed, {duration(self.search_seconds)} to search"
        times += f", {duration(self.guard_seconds)} for the guards" if self.guard_seconds else ""
        times += f", {duration(self.text_seconds)} to read and write"
        times += f", up to {duration(self.calibrate_seconds)} to calibrate" if self.calibrate_seconds else ""
        no_cells = self.method.startswith(FAISS) and "IVF" not in self.method
        short = " — not enough" if self.disk_bytes > self.disk_free_bytes else ""
        lines = [
            *(f"{name}: {rows:,} lines" for name, rows in self.rows.items()),
            f"search: {self.method}, dim {self.dim}, on {self.device}{picked}",
            f"time: {times}",
            *(["  (as by the default index: others without cells may take longer)"] * no_cells),
            f"memory: about {_size(self.memory_bytes)} beyond the encoder's",
            f"disk: up to {_size(self.disk_bytes)} of {_size(self.disk_free_bytes)} free{short}",
        ]
        for method, cost in self.searches.items():
            if method != self.method:
                missed = ", some neighbours missed" if method == "approximate" else ""
                took = f"about {duration(cost['seconds'])} to search, {_size(cost['memory_bytes'])}"
                lines.append(f"{method} instead: {took}{missed}")
        return lines


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count < 10 * 2**30 else f"{count / 2**30:,.0f} GiB"


@takes_options(
    without=(
        *("margin", "retrieval", "threshold", "target_precision", "rescore", "rescore_threshold", "rejects", "format"),
        *("shard_rows", "save_seconds", "keep_work", "progress"),
    )
)
def plan_mining(source: Files, target: Files, *, work: str | Path = ".", **options: Any) -> MiningPlan:
    """Estimate what :func:`~st_xling.mining.mine_texts` with these options will take; writes nothing.

    Lines are counted, a few hundred sentences embedded, and a small search made among random vectors. Real vectors lie
    closer together, which takes somewhat longer; duplicates, which are mined once, make it shorter. What ``"auto"``
    picks is told by the lines, which may be more than the distinct sentences that it will go by.

    Args:
        source: As for ``mine_texts``.
        target: As for ``mine_texts``.
        work: Folder where the work is to be kept, or one above it.
        options: As for :class:`~st_xling.mining.pipeline.config.MiningConfig`. With ``calibrate_with`` known pairs are
            embedded, and there is a search more; guards are tried on some pairs of similar length.
    Raises:
        ValueError: As ``mine_texts``, as far as it can be told by now.
    """
    config = MiningConfig(**options)
    config.check()
    texts = {"source": source, "target": target}
    sizes = {name: _count(files) for name, files in texts.items()}
    rows = {name: lines for name, (lines, _) in sizes.items()}
    text_bytes = {name: size for name, (_, size) in sizes.items()}
    check_k(config.k, rows["source"], rows["target"])
    makers, encoders = config.vector_makers(rows)
    samples = {
        name: [
            row.sentence
            for row in islice(read_rows(files, format=config.text_format, errors=config.errors), 4096)
            if row.sentence.strip()
        ]
        for name, files in texts.items()
    }

    # Seconds to embed a sentence of each text that the encoder will see.
    dim, seconds = 0, {}
    for name, maker in makers.items():
        if isinstance(maker, Encoder) or config.calibrate_with is not None:
            seconds[name], dim = embedding_trial(samples[name], encoders[name])
        if not isinstance(maker, Encoder):
            dim = maker.dim

    shape = rows["source"], rows["target"], dim
    method = choose_method(config.method, *shape)
    k, both, a_vector = config.k, sum(rows.values()), dim * _BYTES_PER_NUMBER[config.dtype]
    a_vector += 4 * (config.dtype == "int8")  # its scale
    options = {"k": k, "device": config.place, "memory_mib": config.memory_mib}
    searched = {"exact": exact_bytes(*shape, **options)}
    searches: dict[str, SearchCost] = {}
    is_named = method.startswith(FAISS)  # an index of the user's choice may hold whole vectors
    chosen = approximate.CandidateIndex(method.removeprefix(FAISS), dim) if is_named else None
    indexed = chosen.bytes_per_vector if chosen else dim // 8
    searched[method if is_named else "approximate"] = approximate_bytes(
        *shape, k=k, memory_mib=config.memory_mib, indexed=indexed
    )
    for name, memory in searched.items():
        seconds_of = search_seconds if name == "exact" else partial(approximate_seconds, chosen=chosen)
        memory = _BYTES_PER_LINE * both + max(memory, (12 * k + _CHOICE_BYTES) * both)
        searches[name] = {"seconds": seconds_of(*shape, **options), "memory_bytes": memory}
    embedded = [name for name, maker in makers.items() if isinstance(maker, Encoder)]
    # Two states of the search while one replaces the other; the pairs hold each text at most once.
    disk = 16 * k * both + sum(text_bytes.values())
    if method != "exact" and config.index is None:  # the indexes lie there too
        disk += (8 + indexed) * both
    disk += sum(rows[name] * a_vector + text_bytes[name] for name in embedded)
    calibrate_seconds = 0.0
    if config.calibrate_with is not None:
        known = most_known(*rows.values())
        larger = (rows["source"] + known) * (rows["target"] + known) / (rows["source"] * rows["target"])
        calibrate_seconds = known * sum(seconds.values()) + searches[method]["seconds"] * larger
        of_text = sum(text_bytes.values()) // both
        disk += 2 * known * (a_vector + of_text + 8 * k) + 8 * k * both  # the state of its search stays
    place = Path(work).absolute()
    place = next(folder for folder in (place, *place.parents) if folder.exists() and os.access(folder, os.R_OK))
    return MiningPlan(
        rows=rows,
        dim=dim,
        method=method,
        device=config.place,
        encode_seconds=sum(seconds[name] * rows[name] for name in embedded),
        search_seconds=searches[method]["seconds"],
        memory_bytes=searches[method]["memory_bytes"],
        disk_bytes=disk,
        disk_free_bytes=shutil.disk_usage(place).free,
        automatic=config.method == "auto",
        calibrate_seconds=calibrate_seconds,
        searches=searches,
        guard_seconds=guard_seconds(samples["source"], samples["target"], config.active_guards, both, k=k),
        text_seconds=text_seconds(samples, rows),
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


def text_seconds(samples: dict[str, list[str]], rows: dict[str, int]) -> float:
    """Expected seconds of all that is neither embedding nor search nor guards, by samples of each text."""
    pairs = min(rows.values()) / 2  # as seen from either text
    return sum(
        _folding_seconds(samples[name]) * (_PER_LINE * lines + _PER_PAIR * pairs) for name, lines in rows.items()
    )


def _folding_seconds(sentences: list[str]) -> float:
    """What it takes to find a sentence's duplicates: the unit of all that is done with text."""
    sample = sentences or ["."]
    return min(_timed(lambda: fold_duplicates(sample)) for _ in range(3)) / len(sample)


def search_seconds(sources: int, targets: int, dim: int, *, k: int, device: str, memory_mib: int) -> float:
    """Expected seconds of an exact search: each product has its price, and each row, which two trials tell apart."""
    rows, many = min(sources, _TRIAL[0]), min(targets, _TRIAL[1])
    few = max(1, many // 2)
    one, other = _random_vectors(rows, many, dim)
    options: dict[str, Any] = {"k": min(k, rows, few), "device": device, "memory_mib": memory_mib}
    short, long = (
        min(_timed(lambda columns=columns: neighbours(one, other[:columns], **options)) for _ in range(2))  # type: ignore[misc]
        for columns in (few, many)
    )
    # Both took a_product * rows * columns + a_row * (rows + columns).
    a_row = max(0.0, (short * many - long * few) / (rows * max(1, many - few)))
    a_product = max(0.0, long - a_row * (rows + many)) / (rows * many)
    return a_product * sources * targets + a_row * (sources + targets)


def exact_bytes(sources: int, targets: int, dim: int, *, k: int, device: str, memory_mib: int) -> int:
    """Memory of an exact search: a block, candidates that are held, all lengths, and neighbours as packed keys."""
    rows, columns = block_sizes(sources, targets, dim, memory_mib=memory_mib, device=device)
    block = 8 * rows * columns + 14 * dim * (rows + columns)
    block += _HELD_BYTES * min(2**20, 8 * max(sources, targets))
    return block + 8 * k * sources + 12 * k * targets + _MATRIX_BYTES * (sources + targets)


def approximate_seconds(
    sources: int,
    targets: int,
    dim: int,
    *,
    k: int,
    device: str,
    memory_mib: int,
    chosen: approximate.CandidateIndex | None = None,
) -> float:
    """Expected seconds of an approximate search: rows by members of near cells, rows by cells, and each row by itself.

    The price of the first is what more probes cost in a trial. A chosen index is taken to cost the same for a member,
    and one without cells, such as a graph, as much as the default one.
    """
    rows, columns = min(sources, _ROWS), min(targets, _ROWS)
    few, many = _PROBES
    options: dict[str, Any] = {"memory_mib": memory_mib, "progress": False}
    own, other = (CorpusMatrix(some, "rows", torch.device(device)) for some in _random_vectors(rows, columns, dim))
    coded = approximate.default_factory(approximate.LEAST_CODED, dim).partition(",")[2]
    index = approximate.CandidateIndex(f"IVF{min(many, columns)},{coded}", dim)
    index.prepare(other, None, "", seed=0, **options)
    seconds = []
    for probes in (few, many):
        index.parameters = {"nprobe": str(probes)}
        index.set_parameters()
        seconds.append(min(_timed(lambda: index.search(own, other, k=min(k, columns), **options)) for _ in range(2)))
    a_pair = max(0.0, seconds[1] - seconds[0]) / (rows * columns * (many - few) / many)
    a_row = max(0.0, seconds[0] - a_pair * rows * columns * few / many) / rows
    a_product = _product_trial(_ROWS, _ROWS, dim, device) / _ROWS**2
    both = sources + targets
    products, near = float(approximate.RECALL_SAMPLE * both), 0.0
    for count in (sources, targets):
        # K-means, then all rows by the cells of one corpus: its own, and those of the other that look for the nearest.
        cells, probes = approximate.default_cells(count), approximate.default_probes(approximate.default_cells(count))
        if chosen and chosen.cells:
            cells, probes = chosen.cells, min(chosen.cells, chosen.probes)
        products += _TRAINING_ROUNDS * approximate.SAMPLE_PER_CELL * cells**2 + both * cells
        near += sources * targets * probes / cells
    return a_pair * near + a_product * products + a_row * both


def approximate_bytes(sources: int, targets: int, dim: int, *, k: int, memory_mib: int, indexed: int) -> int:
    """Memory of an approximate search: one index at a time, of so many bytes a vector, or the neighbours' keys."""
    rows = max(sources, targets)
    trained = max(approximate.LEAST_SAMPLE, approximate.SAMPLE_PER_CELL * approximate.default_cells(rows))
    both, block = sources + targets, min(rows * (4 * dim + 1280), memory_mib * 2**20)
    index = indexed * rows + 4 * dim * min(rows, trained) + 8 * rows + block + 8 * k * both
    return max(index, 48 * k * both) + _MATRIX_BYTES * both


def guard_seconds(sources: list[str], targets: list[str], guards: GuardOptions, rows: int, *, k: int) -> float:
    """Expected seconds of the guards, for a retrieval from both texts.

    A row's candidates are looked at until one may stay: ``1 + r + … + r^(k-1)`` of them where a share ``r`` is turned
    down. What a sample says of ``r`` holds for pairs of similar length, as neighbours are more than any two sentences.

    Args:
        sources: Some sentences of one text.
        targets: Some of the other.
        guards: That will be on.
        rows: Of both texts.
        k: Neighbours of a row.
    """
    one, other = (sorted(some[:_PAIRS], key=weighted_length) for some in (sources, targets))
    pairs = min(len(one), len(other))
    # The hub guard counts neighbours, which there are none of; it takes no time.
    pair_guards = PairGuards(replace(guards, hub=None))
    if not pairs or not pair_guards.guards:
        return 0.0
    batch = CandidateBatch(MinedPairs(np.ones(pairs), np.arange(pairs), np.arange(pairs)), one[:pairs], other[:pairs])
    seconds = _timed(lambda: pair_guards.check(batch))
    share = sum(pair_guards.rejected.values()) / pairs
    candidates = sum(share**place for place in range(k)) * rows
    return (seconds / pairs + _PER_CANDIDATE * _folding_seconds(sources)) * candidates * _ASKED_ABOUT


def embedding_trial(sentences: list[str], encoder: Encoder) -> tuple[float, int]:
    """Seconds a sentence, and the vectors' dim."""
    sample = sentences[:: max(1, len(sentences) // _SENTENCES)][:_SENTENCES] or ["."]
    dim = int(encoder.vectors(sample[:8]).shape[1])
    return _timed(lambda: encoder.vectors(sample)) / len(sample), dim


def _random_vectors(rows: int, columns: int, dim: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((count, dim), dtype=np.float32) for count in (rows, columns)]


def _product_trial(rows: int, columns: int, dim: int, device: str) -> float:
    """Seconds for a block of products and a look at each from either corpus."""
    one, other = torch.rand(rows, dim, device=device), torch.rand(columns, dim, device=device)
    out = torch.empty(rows, columns, device=device)

    def trial() -> None:
        torch.mm(one, other.T, out=out)
        out.amax(dim=1)
        out.amax(dim=0).sum().item()  # waits for a GPU

    return min(_timed(trial) for _ in range(4))


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
