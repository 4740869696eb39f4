"""Small trials that tell what embedding and searching cost on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from st_xling.mining.approximate.approximate_neighbours import (
    PROBES,
    RECALL_SAMPLE,
    ROWS_PER_CELL,
    approximate_neighbours,
)
from st_xling.mining.approximate.cells import ROUNDS, SAMPLE_PER_CELL
from st_xling.mining.guards import CandidateBatch, GuardOptions, PairGuards
from st_xling.mining.guards.length_ratio import weighted_length
from st_xling.mining.guards.rejects import reject_line
from st_xling.mining.neighbours import neighbours
from st_xling.mining.search.blocks import block_sizes
from st_xling.mining.vectors import Encoder

_SIDE_OF_A_TRIAL = 2048
_PROBES_OF_A_TRIAL = (3, 12)
_SENTENCES_OF_A_TRIAL = 256
_PAIRS_OF_A_TRIAL = 1024

# Of the candidates of both sides: a pair that is met from both is asked about once. 62 % where all are turned down and
# neighbours are mutual (30,000 random vectors and noisy copies of them), 100 % where none is met twice.
_ASKED_ABOUT = 0.75


def search_seconds(sources: int, targets: int, dim: int, *, k: int, device: str, memory_mib: int) -> float:
    """Expected seconds of an exact search: each product has its price, and each row."""
    side = _SIDE_OF_A_TRIAL
    blocks = block_sizes(min(sources, side), min(targets, side), dim, memory_mib=memory_mib, device=device)
    rows, columns = blocks.rows, blocks.columns
    a_product = _product_trial(rows, columns, dim, device) / (rows * columns)
    pair = _random_sides(rows, columns, dim)
    seconds = _timed(lambda: neighbours(*pair, k=min(k, rows, columns), device=device, memory_mib=memory_mib))
    a_row = max(0.0, seconds - a_product * rows * columns) / (rows + columns)
    return a_product * sources * targets + a_row * (sources + targets)


def approximate_seconds(sources: int, targets: int, dim: int, *, k: int, device: str, memory_mib: int) -> float:
    """Expected seconds of an approximate search: rows by members of near cells, rows by cells, and each row by itself.

    The price of the first is what more probes cost in a trial, so that picking rows together is in it.
    """
    rows, columns = (min(side, _SIDE_OF_A_TRIAL) for side in (sources, targets))
    pair = _random_sides(rows, columns, dim)
    few, many = _PROBES_OF_A_TRIAL
    options: dict[str, Any] = {"k": min(k, rows, columns), "cells": many, "device": device, "memory_mib": memory_mib}

    def trial(probes: int) -> Callable[[], object]:
        return lambda: approximate_neighbours(*pair, probes=probes, recall_sample=0, **options)

    first, more = (min(_timed(trial(probes)) for _ in range(2)) for probes in (few, many))
    compared = 2 * rows * columns  # each row by its near cells, from either side
    a_pair = max(0.0, more - first) / (compared * (many - few) / many)
    a_row = max(0.0, first - a_pair * compared * few / many) / (rows + columns)
    edge = _SIDE_OF_A_TRIAL
    a_product = _product_trial(edge, edge, dim, device) / edge**2
    cells = max(1, (sources + targets) // ROWS_PER_CELL)
    by_cells = ROUNDS * SAMPLE_PER_CELL * cells**2 + 2 * (sources + targets) * cells  # k-means; its own, the nearest
    exactly = RECALL_SAMPLE * (sources + targets)
    near = 2 * sources * targets * min(PROBES, cells) / cells
    return a_pair * near + a_product * (by_cells + exactly) + a_row * (sources + targets)


def guard_seconds(
    samples: tuple[list[str], list[str]], guards: GuardOptions, sources: int, targets: int, *, k: int
) -> float:
    """Expected seconds of the guards, for a retrieval from both sides.

    A row's candidates are looked at until one may stay: ``1 + r + … + r^(k-1)`` of them where a share ``r`` is turned
    down. What a sample says of ``r`` holds for pairs of similar length, as neighbours are more than any two sentences.

    Args:
        samples: Sentences of both sides.
        guards: That will be on.
        sources: Rows.
        targets: Rows of the other side.
        k: Neighbours of a row.
    """
    one, other = (sorted(side[:_PAIRS_OF_A_TRIAL], key=weighted_length) for side in samples)
    pairs = min(len(one), len(other))
    # The hub guard counts neighbours, which there are none of; it takes no time.
    judge = PairGuards(replace(guards, hub=None))
    if not pairs or not judge.guards:
        return 0.0
    batch = CandidateBatch(one[:pairs], other[:pairs], np.ones(pairs), np.arange(pairs), np.arange(pairs))
    seconds = _timed(lambda: [reject_line(reject) for reject in judge.split(batch)[1]])
    share = sum(judge.rejected.values()) / pairs
    candidates = sum(share**place for place in range(k)) * (sources + targets)
    return seconds / pairs * candidates * _ASKED_ABOUT


def _random_sides(rows: int, columns: int, dim: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((count, dim), dtype=np.float32) for count in (rows, columns)]


def _product_trial(rows: int, columns: int, dim: int, device: str) -> float:
    """Seconds for a block of products and a look at each from either side."""
    one, other = torch.rand(rows, dim, device=device), torch.rand(columns, dim, device=device)
    out = torch.empty(rows, columns, device=device)

    def trial() -> None:
        torch.mm(one, other.T, out=out)
        out.amax(dim=1)
        out.amax(dim=0).sum().item()  # waits for a GPU

    return min(_timed(trial) for _ in range(4))


def embedding_trial(sentences: list[str], encoder: Encoder) -> tuple[float, int]:
    """Seconds a sentence, and the vectors' dim."""
    from st_xling.mining.encoding import embed

    sample = sentences[:: max(1, len(sentences) // _SENTENCES_OF_A_TRIAL)][:_SENTENCES_OF_A_TRIAL] or ["."]
    options = {"batch_size": encoder.options.batch_size, "prompt": encoder.options.prompt}
    dim = int(embed(encoder.model, sample[:8], options, encoder.options.device).shape[1])
    return _timed(lambda: embed(encoder.model, sample, options, encoder.options.device)) / len(sample), dim


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
