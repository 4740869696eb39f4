"""Embeddings: stores of ours and .npy files, and the neighbors that vector databases find in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining import EmbeddingStore, find_neighbors, write_store
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import meeting

K = 5


def write_vectors(folder: Path) -> tuple[Path, Path]:
    """Write vectors of two sides as .npy: not normalized, and the first ten targets twice."""
    random = np.random.default_rng(0)
    targets = random.normal(size=(200, 32)).astype(np.float32)
    targets[100:110] = targets[:10]
    sources = targets[:50] + 0.3 * random.normal(size=(50, 32)).astype(np.float32)
    sources *= random.uniform(0.5, 2, size=(50, 1)).astype(np.float32)
    for name, vectors in (("sources", sources), ("targets", targets)):
        np.save(folder / f"{name}.npy", vectors)
    return folder / "sources.npy", folder / "targets.npy"


def compare(
    folder: Path, tool: Environment, search: Callable[[str, str, int], Any], *, ties_by_row: bool = False
) -> str | None:
    """Compare the neighbors that a tool finds with ours.

    Args:
        folder: An empty folder.
        tool: The tool.
        search: Searches the targets for the sources, with its code.
        ties_by_row: Whether equal targets are expected in the order of their rows; otherwise in any.
    """
    sources, targets = write_vectors(folder)
    found = np.array(tool.call(search, sources, targets, K))
    ours, _ = find_neighbors(np.load(sources), np.load(targets), k=K)
    # Numbers 100 to 109 are equal to 0 to 9.
    distinct = found - 100 * ((found >= 100) & (found < 110))
    our_distinct = ours.indices - 100 * ((ours.indices >= 100) & (ours.indices < 110))
    facts = []
    if wrong := int((distinct != our_distinct).any(axis=1).sum()):
        facts.append(f"{wrong} of {len(found)} queries have other neighbors")
    elif (tied := int((found != ours.indices).any(axis=1).sum())) and ties_by_row:
        facts.append(f"{tied} of {len(found)} queries have equal vectors in another order")
    return ", ".join(facts) or None


def search_with_faiss(sources: str, targets: str, k: int) -> Any:
    import faiss
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    for array in (queries, vectors):
        faiss.normalize_L2(array)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index.search(queries, k)[1].tolist()


@meeting(
    "faiss-cpu==1.15.1",
    "numpy==2.4.6",
    tried="flat search of our vectors, normalized",
    expected="our neighbors; equal vectors by row",
    users="who puts our embeddings into an index",
    remedy="order equal scores by row yourself, among more hits than you need",
)
def faiss_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_faiss, ties_by_row=True)


def search_with_hnswlib(sources: str, targets: str, k: int) -> Any:
    import hnswlib
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    index = hnswlib.Index(space="cosine", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors), ef_construction=200, M=32, random_seed=0)
    index.add_items(vectors, num_threads=1)
    index.set_ef(len(vectors))
    return index.knn_query(queries, k=k, num_threads=1)[0].tolist()


@meeting(
    "hnswlib==0.8.0",
    "numpy==2.4.6",
    tried="cosine search of our vectors, ef as many as rows",
    expected="our neighbors; equal vectors in any order",
    users="who puts our embeddings into an index",
)
def hnswlib_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_hnswlib)


def search_with_usearch(sources: str, targets: str, k: int) -> Any:
    import numpy as np
    from usearch.index import search

    matches = search(np.load(targets), np.load(sources), k, "cos", exact=True)
    return matches.keys.tolist()


@meeting(
    "usearch==2.26.6",
    "numpy==2.2.6",
    tried="exact cosine search of our vectors",
    expected="our neighbors; equal vectors by row",
    users="who puts our embeddings into an index",
    remedy="order equal scores by row yourself, among more hits than you need",
)
def usearch_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_usearch, ties_by_row=True)


def search_with_voyager(sources: str, targets: str, k: int) -> Any:
    import numpy as np
    import voyager

    vectors = np.load(targets)
    index = voyager.Index(voyager.Space.Cosine, num_dimensions=vectors.shape[1], M=32, random_seed=0)
    index.add_items(vectors, num_threads=1)
    return index.query(np.load(sources), k=k, num_threads=1, query_ef=len(vectors))[0].tolist()


@meeting(
    "voyager==2.2.3",
    "numpy==2.4.6",
    tried="cosine search of our vectors, ef as many as rows",
    expected="our neighbors; equal vectors in any order",
    users="who puts our embeddings into an index",
)
def voyager_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_voyager)


def search_with_qdrant(sources: str, targets: str, k: int) -> Any:
    import numpy as np
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    queries, vectors = np.load(sources), np.load(targets)
    client = QdrantClient(":memory:")
    client.create_collection("targets", VectorParams(size=vectors.shape[1], distance=Distance.COSINE))
    client.upsert("targets", [PointStruct(id=row, vector=vector.tolist()) for row, vector in enumerate(vectors)])
    found = []
    for query in queries:
        points = client.query_points("targets", query=query.tolist(), limit=k).points
        found.append([point.id for point in points])
    return found


@meeting(
    "qdrant-client==1.20.0",
    tried="cosine search of our vectors in memory",
    expected="our neighbors; equal vectors in any order",
    users="who puts our embeddings into a database",
)
def qdrant_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_qdrant)


def search_with_duckdb(sources: str, targets: str, k: int) -> Any:
    import duckdb
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    dim = vectors.shape[1]
    connection = duckdb.connect()
    connection.execute(f"create table targets (number integer, vector float[{dim}])")
    connection.executemany("insert into targets values (?, ?)", [[row, v.tolist()] for row, v in enumerate(vectors)])
    statement = f"""select number from targets
        order by array_cosine_similarity(vector, ?::float[{dim}]) desc, number limit {k}"""
    return [[row for (row,) in connection.execute(statement, [query.tolist()]).fetchall()] for query in queries]


@meeting(
    "duckdb==2.0.0",
    "numpy==2.4.6",
    tried="array_cosine_similarity over our vectors",
    expected="our neighbors; equal vectors by row, as the statement says",
    users="who searches our embeddings with SQL",
)
def duckdb_finds(folder: Path, tool: Environment) -> str | None:
    return compare(folder, tool, search_with_duckdb, ties_by_row=True)


def read_shards(folder: str) -> Any:
    from pathlib import Path

    import numpy as np
    from safetensors.numpy import load_file

    rows = []
    for path in sorted(Path(folder).glob("shard-*.safetensors")):
        tensors = load_file(path)
        vectors = tensors["embeddings"].astype(np.float32)
        if "scales" in tensors:
            vectors *= tensors["scales"][:, None]
        rows += vectors.tolist()
    return rows


@meeting(
    "safetensors==0.8.0",
    "numpy==2.4.6",
    tried="reads the shards of our store, int8, without us",
    expected="the vectors that the store has",
    users="who takes embeddings elsewhere without installing us",
)
def safetensors_reads_store(folder: Path, tool: Environment) -> str | None:
    sources, _ = write_vectors(folder)
    store: EmbeddingStore = write_store(folder / "my.store", np.load(sources), dtype="int8", shard_rows=16)
    theirs = np.array(tool.call(read_shards, store.path), dtype=np.float32)
    return None if np.array_equal(theirs, np.asarray(store)) else "other vectors"
