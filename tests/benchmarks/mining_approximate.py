"""Recall against time of approximate search: ``python -m tests.benchmarks.mining_approximate --picture curve.png``.

Exact search first, then FAISS indexes, all in one process and on the same threads. Printed are seconds of the
processor, which other work on the machine does not change, both directions and the making of the indexes included; the
share of exact neighbours found, of the worse side; and the share of the pairs that ``mine`` would take from the exact
ones (retrieval max, margin ratio, without a threshold). Target, at 1,000,000 sentences a side: at least 99 % of the
pairs in at most a quarter of the time.

``--source`` and ``--target`` name row-aligned embeddings of real text: ``.npy`` files or stores of ``st-xling encode``.
``--rows`` beyond theirs adds mixtures of two rows, the same two in both languages. Without files vectors are made up:
topics, sentences around them, and translations near these; text is harder.

``--sample`` is for sides that would take hours: so many sources are searched, and times are those of the samples times
what they are of all; exact search is timed on 50,000 rows a side. Pairs are then the exact best targets that are found.

Measured with multilingual-e5-small on 50,000 parallel sentences a side (11 languages, English), dim 384, one thread of
a busy machine that multiplies in bfloat16, 20 (Flat) to 50 candidates; beyond 50,000 rows mixtures, sampled as above,
and pairs only of sentences whose exact best is their translation:

==============  ==================  ======  ===============  =======
rows a side     index               probes  times as fast    pairs
==============  ==================  ======  ===============  =======
50,000          home-made cells     40/166  0.9              0.959
50,000          IVF256,Flat         16      0.5              0.955
50,000          IVF256,PQ96x4fs     32      1.0              0.981
50,000          IVF256,PQ96x4fs     64      0.8              0.993
200,000         IVF1024,PQ96x4fs    128     3.9              0.976
1,000,000       IVF4096,PQ96x4fs    128     12               0.960
1,000,000       IVF4096,PQ96x4fs    256     8.7              0.980
1,000,000       IVF4096,PQ96x4fs    512     6.8              0.985
1,000,000       IVF4096,PQ96x4fs    1024    4.2              0.993
==============  ==================  ======  ===============  =======

The cells were parted in this package, for both corpora together, and were given up for FAISS.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining import EmbeddingStore, Neighbours, approximate_neighbours, neighbours
from st_xling.mining.mine import best_pairs
from st_xling.mining.search.approximate import CandidateIndex, default_factory
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import exact_rows

Both = tuple[Neighbours, Neighbours]

# Rows of a side by which exact search is timed for a sample.
_TIMED = 50_000


@dataclass(frozen=True)
class Point:
    """One search, against the exact one."""

    name: str
    seconds: float
    recall: float = 1.0
    pairs: float = 1.0

    def line(self, exact: Point) -> str:
        times = f"{self.seconds:8.1f} s  {exact.seconds / self.seconds:5.1f}x"
        return f"{self.name:<44} {times}   {self.recall:.4f}  {self.pairs:.4f}"


def made_up(rows: int, seed: int, dim: int = 384) -> np.ndarray:
    """Every second row is near the same row of another seed; topics are of unequal size, as those of text are."""
    shared, own = np.random.default_rng(0), np.random.default_rng(seed)
    topics = shared.standard_normal((max(2, rows // 100), dim), dtype=np.float32)
    values = topics[(len(topics) * shared.random(rows) ** 2).astype(int)]
    values += 0.7 * shared.standard_normal((rows, dim), dtype=np.float32)
    values[1::2] += 0.7 * own.standard_normal((rows // 2, dim), dtype=np.float32)
    return values + 0.2 * own.standard_normal((rows, dim), dtype=np.float32)


def read(path: Path, rows: int) -> np.ndarray:
    """The first rows, then mixtures of two."""
    stored: Any = EmbeddingStore.open(path) if path.is_dir() else np.load(path, mmap_mode="r")
    values = np.asarray(stored[:rows], dtype=np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    more = rows - len(values)
    random = np.random.default_rng(0)
    one, other = random.integers(0, len(values), (2, more))
    share = random.uniform(0.3, 0.9, (more, 1)).astype(np.float32)
    return np.concatenate([values, values[one] + share * values[other]]) if more else values


def pairs_of(found: Both) -> np.ndarray:
    pairs = best_pairs(*found, allow=None, margin="ratio", retrieval="max", threshold=None)
    return pairs.source_indices * len(found[1].indices) + pairs.target_indices


def common(exact: np.ndarray, found: np.ndarray) -> float:
    """Share of the exact neighbours that are found."""
    return float((exact[:, :, None] == found[:, None]).any(axis=2).mean())


def measure(source: np.ndarray, target: np.ndarray, indexes: list[str], options: dict[str, Any]) -> list[Point]:
    worked = time.process_time()
    exact = neighbours(source, target, **options)
    points = [Point("exact", time.process_time() - worked)]
    print(points[0].line(points[0]), flush=True)
    right = pairs_of(exact)
    for name in indexes:
        worked = time.process_time()
        search = approximate_neighbours(source, target, factory=name, **options)
        seconds, found = time.process_time() - worked, (search.forward, search.backward)
        recall = min(common(one.indices, other.indices) for one, other in zip(exact, found))
        points.append(Point(search.index, seconds, recall, float(np.isin(right, pairs_of(found)).mean())))
        print(points[-1].line(points[0]), flush=True)
    return points


def measure_sample(
    source: np.ndarray, target: np.ndarray, indexes: list[str], options: dict[str, Any], sample: int
) -> list[Point]:
    worked = time.process_time()
    timed = neighbours(source[:_TIMED], target[:_TIMED], **options)
    seconds = (time.process_time() - worked) * len(source) * len(target) / (len(timed[0].means) * len(timed[1].means))
    points = [Point("exact", seconds)]
    print(points[0].line(points[0]), flush=True)
    picked = np.sort(np.random.default_rng(1).choice(len(source), sample, replace=False))
    queries = CorpusMatrix(source[picked], "source", torch.device("cpu"))
    corpus = CorpusMatrix(target, "target", torch.device("cpu"))
    exact = Neighbours.from_keys(exact_rows(queries, corpus, np.arange(sample), **options)).indices
    of: dict[str, Any] = {"memory_mib": options["memory_mib"], "progress": False}
    made: dict[str, tuple[CandidateIndex, float]] = {}
    for name in indexes:
        index = CandidateIndex(name, corpus.dim)
        if index.factory not in made:
            worked = time.process_time()
            index.prepare(corpus, None, "target", seed=0, **of)
            made[index.factory] = index, time.process_time() - worked
        ready, to_make = made[index.factory]
        ready.parameters, ready.candidates = index.parameters, index.candidates
        ready.set_parameters()
        worked = time.process_time()
        keys, _ = ready.search(queries, corpus, k=options["k"], **of)
        to_search = (time.process_time() - worked) * len(source) / sample
        found = Neighbours.from_keys(keys).indices
        best = float((found[:, 0] == exact[:, 0]).mean())
        points.append(Point(ready.text, 2 * (to_make + to_search), common(exact, found), best))
        print(points[-1].line(points[0]), flush=True)
    return points


def draw(points: list[Point], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    exact, *others = points
    for factory in dict.fromkeys(point.name.partition("?")[0] for point in others):
        curve = sorted((p for p in others if p.name.partition("?")[0] == factory), key=lambda p: p.seconds)
        share = [point.seconds / exact.seconds for point in curve]
        (line,) = axes.plot(share, [point.pairs for point in curve], "s-", label=f"{factory}: pairs")
        axes.plot(
            share, [point.recall for point in curve], "o:", color=line.get_color(), label="neighbours, worse side"
        )
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
    parser.add_argument("--rows", type=int, default=20_000, help="sentences a side")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--index", nargs="+", help="factory strings (default: that of method approximate)")
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--sample", type=int, help="sources that are searched")
    parser.add_argument("--picture", type=Path, help="where to draw the curve, a .png")
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    files, rows = (arguments.source, arguments.target), arguments.rows
    sides = [made_up(rows, n) if file is None else read(file, rows) for n, file in enumerate(files, 1)]
    indexes = arguments.index or [default_factory(len(sides[1]), sides[1].shape[1])]
    options = {"k": arguments.k, "memory_mib": arguments.memory_mib}
    shape = " x ".join(map(str, (*(len(side) for side in sides), sides[0].shape[1])))
    print(f"{shape}, k {arguments.k}, {torch.get_num_threads()} threads")
    print(f"{'':<44} {'processor':>10}  {'':>6}   recall  pairs", flush=True)
    if arguments.sample is None:
        points = measure(*sides, indexes, options)
    else:
        points = measure_sample(*sides, indexes, options, arguments.sample)
    if arguments.picture is not None:
        draw(points, arguments.picture)


if __name__ == "__main__":
    main()
