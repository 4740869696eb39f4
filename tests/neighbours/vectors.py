"""Embeddings: stores of ours and .npy files, and the neighbors that vector databases find in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining import EmbeddingStore, find_neighbors, write_store
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import meeting

#: Number of neighbors that are searched.
N_NEIGHBORS = 5
#: Searches a .npy file of vectors (second) for the neighbors of another (first); returns their rows.
Search = Callable[[str, str, int], Any]


def write_vectors(folder: Path) -> tuple[Path, Path]:
    """Write vectors of two sides as .npy: not normalized, and the first ten targets twice."""
    random = np.random.default_rng(0)
    targets = random.normal(size=(200, 32)).astype(np.float32)
    targets[100:110] = targets[:10]
    sources = targets[:50] + 0.3 * random.normal(size=(50, 32)).astype(np.float32)
    sources *= random.uniform(0.5, 2, size=(50, 1)).astype(np.float32)
    np.save(folder / "sources.npy", sources)
    np.save(folder / "targets.npy", targets)
    return folder / "sources.npy", folder / "targets.npy"


def first_of_equal(rows: np.ndarray) -> np.ndarray:
    """Return rows of targets with the first one of two that are equal: rows 100 to 109 are rows 0 to 9 again."""
    is_repeated = (rows >= 100) & (rows < 110)
    return np.where(is_repeated, rows - 100, rows)


def finds_neighbors(
    tool: str, *other_packages: str, tried: str, ties_by_row: bool = False, remedy: str = ""
) -> Callable[[Search], Search]:
    """Register a search as a meeting: it finds the neighbors that we find.

    Args:
        tool: See :func:`~tests.neighbours.meeting.meeting`.
        other_packages: See :func:`~tests.neighbours.meeting.meeting`.
        tried: See :class:`~tests.neighbours.meeting.Meeting`.
        ties_by_row: Whether equal targets are expected in the order of their rows; otherwise in any.
        remedy: See :class:`~tests.neighbours.meeting.Meeting`.
    """

    def register(search: Search) -> Search:
        @meeting(
            tool,
            *other_packages,
            tried=tried,
            expected=f"our neighbors; equal vectors {'by row' if ties_by_row else 'in any order'}",
            users="who puts our embeddings into an index or a database",
            remedy=remedy,
            name=search.__name__,
        )
        def attempt(folder: Path, environment: Environment) -> str | None:
            sources, targets = write_vectors(folder)
            theirs = np.array(environment.call(search, sources, targets, N_NEIGHBORS))
            neighbors, _ = find_neighbors(np.load(sources), np.load(targets), k=N_NEIGHBORS)
            ours = neighbors.indices
            is_other = (first_of_equal(theirs) != first_of_equal(ours)).any(axis=1)
            if is_other.any():
                return f"{is_other.sum()} of {len(theirs)} queries have other neighbors"
            is_tied = (theirs != ours).any(axis=1)
            if ties_by_row and is_tied.any():
                return f"{is_tied.sum()} of {len(theirs)} queries have equal vectors in another order"
            return None

        return search

    return register


@finds_neighbors(
    "faiss-cpu==1.15.1",
    "numpy==2.4.6",
    tried="flat search of our vectors, normalized",
    ties_by_row=True,
    remedy="order equal scores by row yourself, among more hits than you need",
)
def faiss_finds(sources: str, targets: str, k: int) -> Any:
    import faiss
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    for array in (queries, vectors):
        faiss.normalize_L2(array)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index.search(queries, k)[1].tolist()


@finds_neighbors("hnswlib==0.8.0", "numpy==2.4.6", tried="cosine search of our vectors, ef as many as rows")
def hnswlib_finds(sources: str, targets: str, k: int) -> Any:
    import hnswlib
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    index = hnswlib.Index(space="cosine", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors), ef_construction=200, M=32, random_seed=0)
    index.add_items(vectors, num_threads=1)
    index.set_ef(len(vectors))
    return index.knn_query(queries, k=k, num_threads=1)[0].tolist()


@finds_neighbors(
    "usearch==2.26.6",
    "numpy==2.2.6",
    tried="exact cosine search of our vectors",
    ties_by_row=True,
    remedy="order equal scores by row yourself, among more hits than you need",
)
def usearch_finds(sources: str, targets: str, k: int) -> Any:
    import numpy as np
    from usearch.index import search

    matches = search(np.load(targets), np.load(sources), k, "cos", exact=True)
    return matches.keys.tolist()


@finds_neighbors("voyager==2.2.3", "numpy==2.4.6", tried="cosine search of our vectors, ef as many as rows")
def voyager_finds(sources: str, targets: str, k: int) -> Any:
    import numpy as np
    import voyager

    vectors = np.load(targets)
    index = voyager.Index(voyager.Space.Cosine, num_dimensions=vectors.shape[1], M=32, random_seed=0)
    index.add_items(vectors, num_threads=1)
    return index.query(np.load(sources), k=k, num_threads=1, query_ef=len(vectors))[0].tolist()


@finds_neighbors("qdrant-client==1.20.0", tried="cosine search of our vectors in memory")
def qdrant_finds(sources: str, targets: str, k: int) -> Any:
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


@finds_neighbors(
    "lancedb==0.40.0",
    "pyarrow==26.0.1",
    tried="cosine search of our vectors, without an index",
    ties_by_row=True,
)
def lancedb_finds(sources: str, targets: str, k: int) -> Any:
    import tempfile

    import lancedb
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    rows = [{"row": row, "vector": vector.tolist()} for row, vector in enumerate(vectors)]
    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("targets", rows)
        found = []
        for query in queries:
            hits = table.search(query).distance_type("cosine").limit(k).to_list()
            found.append([hit["row"] for hit in hits])
    return found


@finds_neighbors(
    "duckdb==2.0.0", "numpy==2.4.6", tried="array_cosine_similarity over our vectors, then by row", ties_by_row=True
)
def duckdb_finds(sources: str, targets: str, k: int) -> Any:
    import duckdb
    import numpy as np

    queries, vectors = np.load(sources), np.load(targets)
    dim = vectors.shape[1]
    connection = duckdb.connect()
    connection.execute(f"create table targets (number integer, vector float[{dim}])")
    rows = [[row, vector.tolist()] for row, vector in enumerate(vectors)]
    connection.executemany("insert into targets values (?, ?)", rows)
    statement = f"""select number from targets
        order by array_cosine_similarity(vector, ?::float[{dim}]) desc, number limit {k}"""
    found = []
    for query in queries:
        hits = connection.execute(statement, [query.tolist()]).fetchall()
        found.append([row for (row,) in hits])
    return found


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
