"""Exact neighbors in both directions, by a bare float32 product of the same size and by two exact FAISS searches.

The answers are compared too. From text to pairs is in ``mining_end_to_end``; recall against time of approximate search
in ``mining_approximate``.
"""

from collections.abc import Iterator

import numpy as np
import torch

from tests.benchmarks.measure import Ratio, Run, main, quotients

DIM = 768
K = 4


def embeddings(rows: int, seed: int) -> np.ndarray:
    """Unit vectors of random sentences; every second one is near the same row of seed 0, as a translation is."""
    values = np.random.default_rng(0).standard_normal((rows, DIM), dtype=np.float32)
    if seed:
        random = np.random.default_rng(seed)
        values[1::2] = random.standard_normal((len(values[1::2]), DIM), dtype=np.float32)
        values += 0.7 * random.standard_normal(values.shape, dtype=np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def faiss_search(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    import faiss

    index = faiss.IndexFlatIP(corpus.shape[1])
    index.add(corpus)
    return index.search(queries, K)[1]


def measure(run: Run, *, rows: int = 16_384, memory_mib: int = 256) -> Iterator[Ratio]:
    import faiss

    from st_xling.mining import find_neighbors

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
        indices["faiss"] = [faiss_search(source, target), faiss_search(target, source)]

    seconds = run.in_turn({"ours": ours, "product": product, "faiss": searched})
    size = f"{rows:,} x {rows:,} x {DIM}"
    product_time = quotients(seconds["ours"], seconds["product"])
    faiss_time = quotients(seconds["ours"], seconds["faiss"])
    yield Ratio("time", "one float32 product", product_time, at_most=1.0, note=size)
    same = np.mean([np.mean(actual == expected) for actual, expected in zip(indices["ours"], indices["faiss"])])
    note = f"{size}; {same:.4%} the same neighbors (FAISS sorts by float32 sums)"
    yield Ratio("time beside FAISS", "two exact searches", faiss_time, at_most=0.6, note=note)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"rows": 512})
