"""Recall against time of approximate search: ``python -m tests.benchmarks.mining_approximate --picture curve.png``.

Exact search first, then approximate search with some numbers of probes, all in one process and on the same threads.
Printed are seconds on the clock and of the processor, which other work on the machine does not change; the shares of
exact neighbours, and of the pairs that ``mine`` would take from them (retrieval max, margin ratio, without a
threshold). Target, at 200,000 sentences a side: at least 99 % of the pairs in at most a quarter of the time.

``--source`` and ``--target`` name embeddings of real text: ``.npy`` files or stores of ``st-xling encode``. Without
them, vectors are made up: topics, sentences around them, and translations near these.

``--faiss`` compares FAISS: an inverted file and a graph, searched once in each direction.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining import EmbeddingStore, Neighbours, neighbours
from st_xling.mining.mine import best_pairs
from st_xling.mining.search.approximate import approximate_neighbours

Both = tuple[Neighbours, Neighbours]


@dataclass(frozen=True)
class Point:
    """One search, against the exact one."""

    name: str
    clock_s: float
    processor_s: float
    recall: float
    pairs: float

    def line(self, exact: Point) -> str:
        ratios = f"{exact.clock_s / self.clock_s:5.1f}x  {exact.processor_s / self.processor_s:5.1f}x"
        times = f"{self.clock_s:8.1f} s  {self.processor_s:8.1f} s"
        return f"{self.name:<22} {times}  {ratios}   {self.recall:.4f}  {self.pairs:.4f}"


def made_up(rows: int, seed: int, dim: int = 256) -> np.ndarray:
    """Every second row is near the same row of another seed; topics are of unequal size, as those of text are."""
    shared, own = np.random.default_rng(0), np.random.default_rng(seed)
    topics = shared.standard_normal((max(2, rows // 100), dim), dtype=np.float32)
    values = topics[(len(topics) * shared.random(rows) ** 2).astype(int)]
    values += 0.7 * shared.standard_normal((rows, dim), dtype=np.float32)
    values[1::2] += 0.7 * own.standard_normal((rows // 2, dim), dtype=np.float32)
    return values + 0.2 * own.standard_normal((rows, dim), dtype=np.float32)


def read(path: Path) -> Any:
    return EmbeddingStore.open(path) if path.is_dir() else np.load(path, mmap_mode="r")


def pairs_of(found: Both) -> np.ndarray:
    pairs = best_pairs(*found, allow=None, margin="ratio", retrieval="max", threshold=None)
    return pairs.source_indices * len(found[1].indices) + pairs.target_indices


def measure(name: str, search: Callable[[], Both], exact: Both | None = None) -> tuple[Point, Both]:
    started, worked = time.perf_counter(), time.process_time()
    found = search()
    clock, processor = time.perf_counter() - started, time.process_time() - worked
    shares, same = [1.0], 1.0
    if exact is not None:
        for one, other in zip(found, exact):
            shares.append(float((other.indices[:, :, None] == one.indices[:, None]).any(axis=2).mean()))
        same = float(np.isin(pairs_of(exact), pairs_of(found)).mean())
    return Point(name, clock, processor, min(shares), same), found


def faiss_searches(source: np.ndarray, target: np.ndarray, k: int, probes: list[int]) -> dict[str, Callable[[], Both]]:
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in map(np.asarray, (source, target))]

    def both(make: Callable[[np.ndarray], Any]) -> Both:
        return one_way(make, *unit), one_way(make, *unit[::-1])

    def one_way(make: Callable[[np.ndarray], Any], queries: np.ndarray, corpus: np.ndarray) -> Neighbours:
        cosines, indices = make(corpus).search(queries, k)
        return Neighbours(np.where(indices < 0, -1, cosines), np.maximum(indices, 0))

    def inverted(corpus: np.ndarray, probes: int) -> Any:
        dim = corpus.shape[1]
        cells = max(1, len(corpus) // 200)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, cells, faiss.METRIC_INNER_PRODUCT)
        index.train(corpus[: 40 * cells])
        index.add(corpus)
        index.nprobe = probes
        return index

    def graph(corpus: np.ndarray) -> Any:
        index = faiss.IndexHNSWFlat(corpus.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efSearch = 128
        index.add(corpus)
        return index

    runs = {f"FAISS IVF, {p} probes": lambda p=p: both(lambda corpus: inverted(corpus, p)) for p in probes}
    return {**runs, "FAISS HNSW 32, ef 128": lambda: both(graph)}


def draw(points: list[Point], exact: Point, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    ours = sorted((p for p in points if not p.name.startswith("FAISS")), key=lambda p: p.processor_s)
    share = [p.processor_s / exact.processor_s for p in ours]
    axes.plot(share, [p.recall for p in ours], "o-", label="exact neighbours found, worse side")
    axes.plot(share, [p.pairs for p in ours], "s-", label="exact search's pairs mined")
    for point, x in zip(ours, share):
        axes.annotate(point.name, (x, point.pairs), textcoords="offset points", xytext=(4, -12), fontsize=8)
    for point in points:
        if point not in ours:
            axes.plot(point.processor_s / exact.processor_s, point.pairs, "x", label=point.name)
    axes.axvline(0.25, color="grey", linewidth=0.8)
    axes.axhline(0.99, color="grey", linewidth=0.8)
    axes.set(xlabel="processor time, share of exact search", ylabel="share found", xlim=(0, None))
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="embeddings: .npy or the folder of a store")
    parser.add_argument("--target", type=Path)
    parser.add_argument("--rows", type=int, default=20_000, help="sentences a side, the first ones of the files")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--probes", type=int, nargs="+", default=[8, 16, 24, 40, 64])
    parser.add_argument("--cells", type=int, help="instead of the default")
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--picture", type=Path, help="where to draw the curve, a .png")
    parser.add_argument("--faiss", type=int, nargs="*", metavar="PROBES", help="also FAISS with these probes")
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    files = (arguments.source, arguments.target)
    sides = [made_up(arguments.rows, n) if f is None else read(f)[: arguments.rows] for n, f in enumerate(files, 1)]
    options = {"k": arguments.k, "memory_mib": arguments.memory_mib}

    def ours(probes: int) -> Both:
        found = approximate_neighbours(*sides, probes=probes, cells=arguments.cells, **options, progress=True)
        print(f"{probes} probes: {found}", file=sys.stderr)
        return found.forward, found.backward

    shape = " x ".join(map(str, (*(len(side) for side in sides), sides[0].shape[1])))
    print(f"{shape}, k {arguments.k}, {torch.get_num_threads()} threads")
    print(f"{'':<22} {'clock':>10}  {'processor':>10}  {'clock':>6}  {'proc.':>6}   recall  pairs", flush=True)
    exact, true = measure("exact", lambda: neighbours(*sides, **options, progress=True))
    print(exact.line(exact), flush=True)
    runs: dict[str, Callable[[], Both]] = {f"{p} probes": lambda p=p: ours(p) for p in arguments.probes}  # type: ignore[misc]
    if arguments.faiss is not None:
        runs |= faiss_searches(*sides, arguments.k, arguments.faiss)
    points = []
    for name, run in runs.items():
        points.append(measure(name, run, true)[0])
        print(points[-1].line(exact), flush=True)
    if arguments.picture is not None:
        draw(points, exact, arguments.picture)


if __name__ == "__main__":
    main()
