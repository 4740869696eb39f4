"""Recall against time of approximate search, by exact search: FAISS indexes, all in one process.

Speed is in seconds of both directions and the making of the indexes. ``recall`` is the share of exact neighbours found,
of the worse side; pairs are those that ``mine`` would take from the exact neighbours (retrieval max, margin ratio, no
threshold). Target, at 1,000,000 sentences a side: at least 99 % of the pairs in at most a quarter of the time.

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

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.mining import EmbeddingStore, Neighbours, approximate_neighbours, neighbours
from st_xling.mining.mine import best_pairs
from st_xling.mining.search.approximate import CandidateIndex, default_factory
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.exact import exact_rows
from tests.benchmarks.measure import Ratio, Run, main

Both = tuple[Neighbours, Neighbours]

# Rows of a side by which exact search is timed for a sample.
_TIMED = 50_000


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


def ratios(name: str, exact: float, seconds: float, recall: float, pairs: float) -> Iterator[Ratio]:
    name = name.replace(".", ",")
    yield Ratio(f"{name}: speed", "exact", exact / seconds, note=f"{seconds:.1f} by {exact:.1f} s")
    yield Ratio(f"{name}: pairs", "exact", pairs, note=f"recall {recall:.4f}")


def whole(
    run: Run, source: np.ndarray, target: np.ndarray, indexes: list[str], options: dict[str, Any]
) -> Iterator[Ratio]:
    found: list[Both] = []
    exact_seconds = run.seconds(lambda: found.append(neighbours(source, target, **options)))
    right = pairs_of(found[0])
    for name in indexes:
        search: list[Any] = []
        call = partial(approximate_neighbours, source, target, factory=name, **options)
        seconds = run.seconds(lambda: search.append(call()))  # noqa: B023
        both = search[0].forward, search[0].backward
        recall = min(common(one.indices, other.indices) for one, other in zip(found[0], both))
        pairs = float(np.isin(right, pairs_of(both)).mean())
        yield from ratios(search[0].index, exact_seconds, seconds, recall, pairs)


def sampled(
    run: Run, source: np.ndarray, target: np.ndarray, indexes: list[str], options: dict[str, Any], sample: int
) -> Iterator[Ratio]:
    rows = min(_TIMED, len(source)) * min(_TIMED, len(target))
    exact_seconds = run.seconds(lambda: neighbours(source[:_TIMED], target[:_TIMED], **options))
    exact_seconds *= len(source) * len(target) / rows
    picked = np.sort(np.random.default_rng(1).choice(len(source), sample, replace=False))
    queries = CorpusMatrix(source[picked], "source", torch.device("cpu"))
    corpus = CorpusMatrix(target, "target", torch.device("cpu"))
    exact = Neighbours.from_keys(exact_rows(queries, corpus, np.arange(sample), **options)).indices
    of: dict[str, Any] = {"memory_mib": options["memory_mib"], "progress": False}
    made: dict[str, tuple[CandidateIndex, float]] = {}
    for name in indexes:
        index = CandidateIndex(name, corpus.dim)
        if index.factory not in made:
            to_make = run.seconds(lambda: index.prepare(corpus, None, "target", seed=0, **of))  # noqa: B023
            made[index.factory] = index, to_make
        ready, to_make = made[index.factory]
        ready.parameters, ready.candidates = index.parameters, index.candidates
        ready.set_parameters()
        keys: list[torch.Tensor] = []
        search = partial(ready.search, queries, corpus, k=options["k"], **of)
        to_search = run.seconds(lambda: keys.append(search()[0])) * len(source) / sample  # noqa: B023
        found = Neighbours.from_keys(keys[0]).indices
        best = float((found[:, 0] == exact[:, 0]).mean())
        yield from ratios(ready.text, exact_seconds, 2 * (to_make + to_search), common(exact, found), best)


def measure(
    run: Run,
    *,
    source: Path | None = None,
    target: Path | None = None,
    rows: int = 20_000,
    k: int = 4,
    index: tuple[str, ...] = (),
    memory_mib: int = 256,
    sample: int | None = None,
) -> Iterator[Ratio]:
    """``index``: factory strings; without any that of method approximate."""
    if (source is None) != (target is None):
        raise SystemExit("--source and --target go together")
    sides = [made_up(rows, n) if file is None else read(file, rows) for n, file in enumerate((source, target), 1)]
    indexes = list(index) or [default_factory(len(sides[1]), sides[1].shape[1])]
    options = {"k": k, "memory_mib": memory_mib}
    yield from (
        whole(run, *sides, indexes, options) if sample is None else sampled(run, *sides, indexes, options, sample)
    )


if __name__ == "__main__":
    main(measure, quick={"rows": 2000})
