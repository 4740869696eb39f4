"""Exact neighbors in both directions, by a bare float32 product of the same size and by two exact FAISS searches.

FAISS searches with ``IndexFlatIP`` and, since version 1.14, with ``IndexFlatIPPanorama``, which reads vectors in pieces
and drops those that cannot be near; without matrix products it is slow, and searches an eighth of the queries. The
answers are compared too. From text to pairs is in ``mining_end_to_end``; recall against time of approximate search in
``mining_approximate``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tests.benchmarks.measure import Ratio, Run, main, quotients

DIM = 768
K = 4
PANORAMA_LEVELS = 8
PANORAMA_SHARE = 8


def embeddings(rows: int, seed: int) -> np.ndarray:
    """Unit vectors of random sentences; every second one is near the same row of seed 0, as a translation is."""
    values = np.random.default_rng(0).standard_normal((rows, DIM), dtype=np.float32)
    if seed:
        random = np.random.default_rng(seed)
        values[1::2] = random.standard_normal((len(values[1::2]), DIM), dtype=np.float32)
        values += 0.7 * random.standard_normal(values.shape, dtype=np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def faiss_search(queries: np.ndarray, corpus: np.ndarray, index: Any) -> np.ndarray:
    index.add(corpus)
    return index.search(queries, K)[1]


def measure(run: Run, *, rows: int = 16_384, memory_mib: int = 256) -> Iterator[Ratio]:
    import faiss

    from st_xling.mining import find_neighbors
    from st_xling.utils.precision import bfloat16_speedup, prefers_bfloat16

    faiss.omp_set_num_threads(run.threads)
    source = embeddings(rows, 0)
    target = embeddings(rows, 1)
    left_factor = torch.from_numpy(source)
    right_factor = torch.from_numpy(target).T
    out = torch.empty(rows, rows)
    indices: dict[str, list[np.ndarray]] = {}

    def ours() -> None:
        directions = find_neighbors(source, target, k=K, memory_mib=memory_mib)
        indices["ours"] = [neighbors.indices for neighbors in directions]

    def product() -> None:
        torch.mm(left_factor, right_factor, out=out)

    def searched() -> None:
        flat = faiss.IndexFlatIP
        indices["faiss"] = [faiss_search(source, target, flat(DIM)), faiss_search(target, source, flat(DIM))]

    def panorama() -> None:
        queries = slice(None, None, PANORAMA_SHARE)
        for one, other in ((source, target), (target, source)):
            faiss_search(one[queries], other, faiss.IndexFlatIPPanorama(DIM, PANORAMA_LEVELS))

    calls = {"ours": ours, "product": product, "faiss": searched}
    if hasattr(faiss, "IndexFlatIPPanorama"):
        calls["panorama"] = panorama
    seconds = run.in_turn(calls)
    used = "bfloat16" if prefers_bfloat16() else "float32"
    size = f"{rows:,} x {rows:,} x {DIM}, {used} (products in bfloat16 at {bfloat16_speedup():.2g}x of float32)"
    product_time = quotients(seconds["ours"], seconds["product"])
    faiss_time = quotients(seconds["ours"], seconds["faiss"])
    yield Ratio("time", "one float32 product", product_time, at_most=1.7, note=size)
    same = np.mean([np.mean(actual == expected) for actual, expected in zip(indices["ours"], indices["faiss"])])
    note = f"{same:.4%} the same neighbors (FAISS sorts by float32 sums)"
    yield Ratio("time beside FAISS", "two exact searches", faiss_time, at_most=0.25, note=note)
    if "panorama" in seconds:
        full = [spent * PANORAMA_SHARE for spent in seconds["panorama"]]
        note = (
            f"of {PANORAMA_LEVELS} levels; its time is that of every {PANORAMA_SHARE}th query, times {PANORAMA_SHARE}"
        )
        yield Ratio("time beside Panorama", "two exact searches", quotients(seconds["ours"], full), note=note)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"rows": 512})
