"""Recall against time of approximate search, by exact search: FAISS indexes, all in one process.

Speed is in seconds of both directions and the making of the indexes; ``recall`` the share of exact neighbors found, of
``--sample`` sources; pairs the exact best targets found, of sources whose exact best is their translation. Target, at
1,000,000 sentences a side: at least 99 % of the pairs in at most a quarter of the time.

``--source`` and ``--target`` name row-aligned embeddings of real text: ``.npy`` files or stores of ``st-xling encode``.
``--rows`` beyond theirs adds mixtures of two rows, the same two in both languages. Without files vectors are made up:
topics, sentences around them, and translations near these; text is harder.

Times are those of the sample times what it is of all; exact search is timed on 50,000 rows a side at most.

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

import tempfile
from collections.abc import Iterator
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

# Rows of a side by which exact search is timed at most.
_TIMED = 50_000
# Rows made up at a time.
_ROWS_AT_ONCE = 2**16


def made_up(rows: int, seed: int, dim: int = 384) -> np.ndarray:
    """Every second row is near the same row of another seed; topics are of unequal size, as those of text are."""
    topics = np.random.default_rng(0).standard_normal((max(2, rows // 100), dim), dtype=np.float32)
    result = np.memmap(tempfile.TemporaryFile(), np.float16, "w+", shape=(rows, dim))  # noqa: SIM115
    for start in range(0, rows, _ROWS_AT_ONCE):
        shared = np.random.default_rng(start)
        of_side = np.random.default_rng((seed, start))
        count = min(_ROWS_AT_ONCE, rows - start)
        values = topics[(len(topics) * shared.random(count) ** 2).astype(int)]
        values += 0.7 * shared.standard_normal((count, dim), dtype=np.float32)
        values[1::2] += 0.7 * of_side.standard_normal((count // 2, dim), dtype=np.float32)
        result[start : start + count] = values + 0.2 * of_side.standard_normal((count, dim), dtype=np.float32)
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
        count = min(_ROWS_AT_ONCE, rows - start)
        first, second = random.integers(0, len(values), (2, count))
        share = random.uniform(0.3, 0.9, (count, 1)).astype(np.float32)
        result[start : start + count] = values[first] + share * values[second]
    return result


def measure(
    run: Run,
    *,
    source: Path | None = None,
    target: Path | None = None,
    rows: int = 20_000,
    k: int = 4,
    index: tuple[str, ...] = (),
    sample: int = 2048,
) -> Iterator[Ratio]:
    """``index``: factory strings, ``IVF*`` with the cells that the default has; without any, the default."""
    if (source is None) != (target is None):
        raise SystemExit("--source and --target go together")
    sides = [made_up(rows, n) if file is None else read(file, rows) for n, file in enumerate((source, target), 1)]
    names = list(index) or [default_factory(len(sides[1]), sides[1].shape[1])]
    sample = min(sample, rows)
    options = {"k": k, "memory_mib": 256}
    timed = [side[:_TIMED] for side in sides]
    exact_seconds = run.seconds(lambda: find_neighbors(*timed, **options)) * (rows / len(timed[0])) ** 2
    picked = np.sort(np.random.default_rng(1).choice(rows, sample, replace=False))
    queries = CorpusMatrix(sides[0][picked], "source", torch.device("cpu"))
    corpus = CorpusMatrix(sides[1], "target", torch.device("cpu"))
    exact = Neighbors.from_keys(exact_rows(queries, corpus, np.arange(sample), **options)).indices
    translated = exact[:, 0] == picked
    for name in names:
        chosen = CandidateIndex(name.replace("IVF*", f"IVF{default_cells(rows)}"), corpus.dim)
        to_make = run.seconds(partial(chosen.prepare, corpus, None, memory_mib=256))
        keys: list[torch.Tensor] = []
        search = partial(chosen.search, queries, corpus, **options)
        to_search = run.seconds(lambda: keys.append(search()[0])) * rows / sample  # noqa: B023
        approximate = Neighbors.from_keys(keys[0]).indices
        seconds = 2 * (to_make + to_search)
        label = name.replace(".", ",")
        note = f"{seconds:.1f} by {exact_seconds:.1f} s; {rows:,} a side"
        yield Ratio(f"{label}: speed", "exact", exact_seconds / seconds, note=note)
        best = float((approximate[:, 0] == exact[:, 0])[translated].mean())
        recall = float((exact[:, :, None] == approximate[:, None]).any(axis=2).mean())
        yield Ratio(f"{label}: pairs", "exact", best, note=f"recall {recall:.4f}")


if __name__ == "__main__":
    main(measure, quick={"rows": 2000, "sample": 200})
