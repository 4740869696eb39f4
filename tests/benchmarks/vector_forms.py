"""Search in vectors as people have them: memory maps, stores, and vectors that are not of unit length.

- time of an exact search of a memory map of a ``.npy`` file, and of stores, by that of an array in memory;
- recall of graphs (HNSW) on vectors whose lengths differ: ours, which searches unit vectors; FAISS's and hnswlib's,
  which are given the vectors and rank by inner products; and theirs of the same vectors at unit length.

Recall is the share of the four exact neighbors found, by cosine or, of inner products, by these. The vectors are made
up: 500 topics, sentences around them, and lengths of a log-normal distribution (``--spread``, of the logarithm).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measure import Ratio, Run, log, main, quotients

K = 4
LINKS = 32
EXPLORED = 128


def vectors(rows: int, dim: int, seed: int, spread: float) -> np.ndarray:
    topics = np.random.default_rng(0).standard_normal((500, dim))
    draw = np.random.default_rng(seed)
    found = topics[draw.integers(500, size=rows)] + draw.standard_normal((rows, dim))
    lengths = np.exp(spread * draw.standard_normal((rows, 1)))
    return (found * lengths).astype(np.float32)


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    return float((exact[:, :, None] == found[:, None, :]).any(axis=2).mean())


def faiss_graph(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(corpus.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = EXPLORED
    index.add(corpus)
    return np.asarray(index.search(queries, K)[1])


def hnswlib_graph(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    import hnswlib

    index = hnswlib.Index(space="ip", dim=corpus.shape[1])
    index.init_index(len(corpus), M=LINKS // 2, ef_construction=200, random_seed=0)
    index.set_num_threads(1)
    index.set_ef(EXPLORED)
    index.add_items(corpus)
    return np.asarray(index.knn_query(queries, K)[0])


def search_forms(run: Run, queries: np.ndarray, corpus: np.ndarray) -> Iterator[Ratio]:
    """Yield the time of an exact search of each form by that of the array."""
    from st_xling.mining import find_neighbors, write_store

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        np.save(folder / "vectors.npy", corpus)
        forms: dict[str, Any] = {
            "array": corpus,
            "memory map": np.load(folder / "vectors.npy", mmap_mode="r"),
            "store": write_store(folder / "store", corpus),
            "int8 store": write_store(folder / "int8", corpus, dtype="int8"),
        }
        calls = {name: lambda form=form: find_neighbors(queries, form, k=K) for name, form in forms.items()}
        seconds = run.in_turn(calls)
    for name in list(forms)[1:]:
        yield Ratio(f"{name}: time of exact search", "an array", quotients(seconds[name], seconds["array"]))


def measure(
    run: Run, *, rows: int = 100_000, dim: int = 384, sources: int = 2000, graph_rows: int = 20_000, spread: float = 0.5
) -> Iterator[Ratio]:
    from st_xling.mining import find_neighbors

    yield from search_forms(run, vectors(sources, dim, 1, spread), vectors(rows, dim, 2, spread))

    queries = vectors(1000, 64, 3, spread)
    corpus = vectors(graph_rows, 64, 4, spread)
    unit = corpus / np.linalg.norm(corpus, axis=1, keepdims=True)
    by_cosine = find_neighbors(queries, corpus, k=K)[0].indices
    by_product = np.argsort(-(queries @ corpus.T), axis=1, kind="stable")[:, :K]
    ours = find_neighbors(queries, corpus, k=K, method=f"faiss:HNSW{LINKS}?efSearch={EXPLORED}")[0].indices
    yield Ratio("ours: recall by cosine", "exact search", recall(ours, by_cosine))
    yield Ratio("exact inner products: recall by cosine", "exact search", recall(by_product, by_cosine))
    for name, graph in {"FAISS": faiss_graph, "hnswlib": hnswlib_graph}.items():
        try:
            products = graph(queries, corpus)
        except ImportError:
            log(f"{name} is not installed")
            continue
        yield Ratio(f"{name}: recall by inner product", "exact search", recall(products, by_product))
        yield Ratio(f"{name}: recall by cosine", "exact search", recall(products, by_cosine))
        yield Ratio(f"{name}, unit vectors: recall by cosine", "exact search", recall(graph(queries, unit), by_cosine))


if __name__ == "__main__":
    main(measure, rounds=3, quick={"rows": 2000, "dim": 32, "sources": 100, "graph_rows": 1500})
