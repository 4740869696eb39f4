"""Recall against time of approximate search, by exact search: FAISS indexes, all in one process.

Speed is in seconds of both directions and the making of the indexes; ``recall`` the share of exact neighbors found, of
``--sample`` sources; pairs the exact best targets found, of sources whose exact best is their translation. Target, at
1,000,000 sentences a side: at least 99 % of the pairs in at most a quarter of the time.

``--source`` and ``--target`` name row-aligned embeddings of real text: ``.npy`` files or stores of ``st-xling encode``.
``--rows`` beyond theirs adds mixtures of two rows, the same two in both languages. Without files vectors are made up:
topics, sentences around them, and translations near these; text is harder.

Times are those of the sample times what it is of all; exact search is timed on 50,000 rows a side at most. ``--points``
adds the measurements to a file of JSON lines, all of which ``--picture`` draws.

Measured with multilingual-e5-small ("query: ", bfloat16) on 32,768 parallel sentences a side (11 languages, English),
beyond these mixtures, dim 384, 2,048 sources, one thread of a busy machine, faiss-cpu 1.15.1, 20 (Flat, SQ8)
or 50 candidates; of a graph, efSearch for probes:

=========  =================  ======  =============  =======  ==========
rows       index              probes  times as fast  pairs    neighbors
=========  =================  ======  =============  =======  ==========
50,000     IVF256,PQ96x4fs    16      2.8            0.914    0.775
50,000     IVF256,PQ96x4fs    32      2.7            0.960    0.840
50,000     IVF256,PQ96x4fs    64      2.3            0.986    0.879
50,000     HNSW32             64      0.59           0.811    0.925
50,000     HNSW32             128     0.41           0.867    0.952
50,000     HNSW32             256     0.26           0.910    0.965
50,000     IVF256,SQ8         16      1.5            0.914    0.831
50,000     IVF256,SQ8         32      0.9            0.960    0.916
50,000     IVF256,SQ8         64      0.51           0.986    0.971
200,000    IVF1024,PQ96x4fs   32      9.9            0.859    0.770
200,000    IVF1024,PQ96x4fs   64      8.4            0.929    0.838
200,000    IVF1024,PQ96x4fs   128     6.7            0.968    0.881
200,000    IVF1024,PQ96x4fs   256     4.9            0.986    0.900
200,000    IVF1024,Flat       32      1.8            0.859    0.817
200,000    IVF1024,Flat       64      0.97           0.931    0.899
200,000    IVF1024,Flat       128     0.53           0.971    0.954
200,000    IVF1024,Flat       256     0.28           0.990    0.984
200,000    IVF1024,RaBitQ     64      3.1            0.929    0.883
200,000    IVF1024,RaBitQ     128     1.9            0.970    0.933
200,000    IVF1024,RaBitQ     256     1              0.989    0.958
1,000,000  IVF4096,PQ96x4fs   128     22             0.931    0.817
1,000,000  IVF4096,PQ96x4fs   256     17             0.972    0.851
1,000,000  IVF4096,PQ96x4fs   512     11             0.988    0.866
1,000,000  IVF4096,PQ96x4fs   1024    7              0.994    0.871
4,000,000  IVF1024,PQ96x4fs   64      19             0.947    0.810
4,000,000  IVF1024,PQ96x4fs   128     28             0.984    0.831
4,000,000  IVF1024,PQ96x4fs   256     16             0.990    0.844
=========  =================  ======  =============  =======  ==========

Exact search took 22 to 25 s for 50,000 rows a side then; in another run 0.8 of one float32 product, as 16 s would be,
by which approximate search is a third less ahead. Of 50,000 rows 1,024 sources were searched, of 4,000,000 only 256,
the first time from cold caches. Cells parted in this package, for both corpora together, were given up for FAISS: at
50,000 rows 0.9 times as fast, 0.959 of the pairs.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining import EmbeddingStore, Neighbors, find_neighbors
from st_xling.mining.search.approximate import CandidateIndex, default_cells, default_factory
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import exact_rows
from tests.benchmarks.measure import Ratio, Run, main

# Rows of a side by which exact search is timed at most, and rows made up at a time.
_TIMED, _ROWS_AT_ONCE = 50_000, 2**16


@dataclass(frozen=True)
class Point:
    """One search, against the exact one, which takes so many seconds."""

    rows: int
    name: str
    exact: float
    seconds: float
    recall: float
    pairs: float


def made_up(rows: int, seed: int, dim: int = 384) -> np.ndarray:
    """Every second row is near the same row of another seed; topics are of unequal size, as those of text are."""
    topics = np.random.default_rng(0).standard_normal((max(2, rows // 100), dim), dtype=np.float32)
    result = np.memmap(tempfile.TemporaryFile(), np.float16, "w+", shape=(rows, dim))  # noqa: SIM115
    for start in range(0, rows, _ROWS_AT_ONCE):
        shared, own = np.random.default_rng(start), np.random.default_rng((seed, start))
        count = min(_ROWS_AT_ONCE, rows - start)
        values = topics[(len(topics) * shared.random(count) ** 2).astype(int)]
        values += 0.7 * shared.standard_normal((count, dim), dtype=np.float32)
        values[1::2] += 0.7 * own.standard_normal((count // 2, dim), dtype=np.float32)
        result[start : start + count] = values + 0.2 * own.standard_normal((count, dim), dtype=np.float32)
    return result


def read(path: Path, rows: int) -> np.ndarray:
    """The first rows, then mixtures of two."""
    stored: Any = EmbeddingStore.open(path) if path.is_dir() else np.load(path, mmap_mode="r")
    values = np.asarray(stored[:rows], dtype=np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    result = np.memmap(tempfile.TemporaryFile(), np.float16, "w+", shape=(rows, values.shape[1]))  # noqa: SIM115
    result[: len(values)] = values
    random = np.random.default_rng(0)
    for start in range(len(values), rows, _ROWS_AT_ONCE):
        one, other = random.integers(0, len(values), (2, min(_ROWS_AT_ONCE, rows - start)))
        share = random.uniform(0.3, 0.9, (len(one), 1)).astype(np.float32)
        result[start : start + len(one)] = values[one] + share * values[other]
    return result


def points_of(
    run: Run, source: np.ndarray, target: np.ndarray, indexes: list[str], options: dict[str, Any], sample: int
) -> Iterator[Point]:
    count = min(_TIMED, len(source)) * min(_TIMED, len(target))
    in_all = run.seconds(lambda: find_neighbors(source[:_TIMED], target[:_TIMED], **options))
    in_all *= len(source) * len(target) / count
    picked = np.sort(np.random.default_rng(1).choice(len(source), sample, replace=False))
    queries = CorpusMatrix(source[picked], "source", torch.device("cpu"))
    corpus = CorpusMatrix(target, "target", torch.device("cpu"))
    exact = Neighbors.from_keys(exact_rows(queries, corpus, np.arange(sample), **options)).indices
    translated = exact[:, 0] == picked
    of: dict[str, Any] = {"memory_mib": options["memory_mib"], "progress": False}
    made: dict[str, tuple[CandidateIndex, float]] = {}
    for name in indexes:
        index = CandidateIndex(name, corpus.dim)
        if index.factory not in made:
            to_make = run.seconds(partial(index.prepare, corpus, None, **of))
            made[index.factory] = index, to_make
        ready, to_make = made[index.factory]
        ready.parameters, ready.candidates = index.parameters, index.candidates
        ready.set_parameters()
        keys: list[torch.Tensor] = []
        search = partial(ready.search, queries, corpus, k=options["k"], **of)
        to_search = run.seconds(lambda: keys.append(search()[0])) * len(source) / sample  # noqa: B023
        found = Neighbors.from_keys(keys[0]).indices
        best = float((found[:, 0] == exact[:, 0])[translated].mean())
        recall = float((exact[:, :, None] == found[:, None]).any(axis=2).mean())
        yield Point(len(target), index.text, in_all, 2 * (to_make + to_search), recall, best)


def draw(points: list[Point], path: Path) -> None:
    from matplotlib import pyplot

    sizes = sorted({point.rows for point in points})
    size, shared = (1 + 3.6 * len(sizes), 6.4), {"sharex": True, "sharey": "row"}
    figure, panels = pyplot.subplots(2, len(sizes), figsize=size, squeeze=False, layout="constrained", **shared)
    names = {point: re.sub(r"IVF\d+", "IVF", point.name.partition("?")[0]) for point in points}
    colors = dict(zip(dict.fromkeys(names.values()), pyplot.colormaps["tab10"].colors))
    for column, rows in enumerate(sizes):
        others = [point for point in points if point.rows == rows]
        for axes, share in zip(panels[:, column], ("pairs", "recall")):
            for name in dict.fromkeys(names[point] for point in others):
                own = (point for point in others if names[point] == name)
                curve = sorted((point.exact / point.seconds, getattr(point, share)) for point in own)
                axes.plot(*zip(*curve), ".-", color=colors[name], label=name)
            axes.axvline(4, color="grey", linewidth=0.8)
            axes.axhline(0.99, color="grey", linewidth=0.8)
            axes.set(xscale="log", xlabel="times as fast as exact search")
            axes.xaxis.set(major_formatter="{x:g}", minor_formatter="")
        panels[0, column].set_title(f"{rows:,} rows a side")
    panels[0, 0].set_ylabel("pairs found")
    panels[1, 0].set_ylabel("neighbors found")
    lines = {line.get_label(): line for axes in panels[0] for line in axes.lines if line.get_label()[0] != "_"}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=150)


def measure(
    run: Run,
    *,
    source: Path | None = None,
    target: Path | None = None,
    rows: int = 20_000,
    k: int = 4,
    index: tuple[str, ...] = (),
    sample: int = 2048,
    points: Path | None = None,
    picture: Path | None = None,
) -> Iterator[Ratio]:
    """``index``: factory strings, ``IVF*`` with the cells that the default has; without any, the default."""
    if (source is None) != (target is None):
        raise SystemExit("--source and --target go together")
    sides = [made_up(rows, n) if file is None else read(file, rows) for n, file in enumerate((source, target), 1)]
    indexes = list(index) or [default_factory(len(sides[1]), sides[1].shape[1])]
    indexes = [name.replace("IVF*", f"IVF{default_cells(rows)}") for name in indexes]
    found = []
    for point in points_of(run, *sides, indexes, {"k": k, "memory_mib": 256}, min(sample, rows)):
        found.append(point)
        name, note = point.name.replace(".", ","), f"{point.seconds:.1f} by {point.exact:.1f} s; {rows:,} a side"
        yield Ratio(f"{name}: speed", "exact", point.exact / point.seconds, note=note)
        yield Ratio(f"{name}: pairs", "exact", point.pairs, note=f"recall {point.recall:.4f}")
    if points is not None:
        with points.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(point)) + "\n" for point in found)
        found = [Point(**json.loads(line)) for line in points.read_text(encoding="utf-8").splitlines()]
    if picture is not None:
        draw(found, picture)


if __name__ == "__main__":
    main(measure, quick={"rows": 2000, "sample": 200})
