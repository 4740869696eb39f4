"""Nearest neighbors for corpora too large to compare all with all: candidates from a FAISS index, scored exactly.

An index of each corpus is searched with the other. It only proposes: its candidates are ranked by the cosines that an
exact search ranks by, and lists that it leaves short, or that equal candidates may have been cut from, are searched
exactly. So every index gives true cosines, no gaps, and equal candidates in the order of their indices.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from st_xling.mining.search.corpus_matrix import (
    NO_CANDIDATE,
    CorpusMatrix,
    cosines_of,
    distinct_best,
    indices_of,
    merge_pairs,
    pack_keys,
    pair_cosines,
    product_error,
)
from st_xling.mining.search.exact import Neighbors, corpus_matrices, exact_rows
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import atomic_path, is_intact, locked, record_hash

#: Rows of each corpus that are searched exactly too.
RECALL_SAMPLE = 256

#: Candidates that an index is asked for, per neighbor.
CANDIDATES_PER_NEIGHBOR = 8

#: Least candidates of a row that an index is asked for.
LEAST_CANDIDATES = 32

#: Vectors that an index is trained on, per cell of an inverted file.
SAMPLE_PER_CELL = 32

#: Least vectors that an index is trained on.
LEAST_SAMPLE = 2**16

#: Rows from which on the default index compares codes of four bits for four numbers.
LEAST_CODED = 2**14

#: Rows in a cell of the default index.
ROWS_PER_CELL = 256

# Fewer are repeated: FAISS warns, hundreds of times, of less than 39 for each centroid of a quantiser.
_LEAST_TRAINED = 39 * 256

# Queries searched, and vectors added, at a time, at most.
_MOST_AT_ONCE = 2**14


def approximate_neighbors(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    factory: str | None = None,
    index_folder: str | Path | None = None,
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
) -> tuple[Neighbors, Neighbors]:
    """Find neighbors among the candidates that a FAISS index proposes; see :func:`~st_xling.mining.find_neighbors`.

    Each corpus is indexed, as unit vectors by their distance, which orders as cosines do, and searched with the other.
    Candidates have their exact cosines, best first, the lowest index first among equals; a pair that is
    found from either corpus counts for both. No neighbor is missing: a row with too few candidates is searched
    exactly. Two searches give the same result: with inverted files also for any number of threads, with graphs (HNSW,
    NSG) for one thread.

    Embeddings may be memory maps, which are read in blocks. Beyond them a search takes ``memory_mib``, one index at a
    time, the vectors that it is trained on, and ``32 * k + 16`` bytes per row of either corpus.

    Args:
        source_embeddings: As for an exact search. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbors of each sentence.
        factory: Of FAISS, such as ``"IVF4096,Flat"``, and after a question mark search parameters under FAISS's own
            names, separated by commas; ``candidates`` among them is how many are scored exactly. By default what
            :func:`default_factory` chooses for each corpus.
        index_folder: Folder to keep the indexes of any number of corpora in: ``VECTORS-INDEX.faiss``, by the
            fingerprints of both. By default they are not kept.
        device: Where to score the candidates; the index itself is searched on the CPU.
        memory_mib: Bound on the working memory, in MiB, on ``device``.

    Returns:
        Neighbors of the sources, and of the targets.

    Raises:
        ValueError: As :func:`~st_xling.mining.find_neighbors`; if FAISS has no such index or parameter, or too few
            rows to train it.

    Example:
        >>> forward, _ = approximate_neighbors(np.eye(3), np.eye(3)[[1, 2, 0]], k=1, factory="Flat")
        >>> forward.indices.ravel().tolist()
        [2, 0, 1]
    """
    source, target = corpus_matrices(source_embeddings, target_embeddings, k, device)
    folder = None if index_folder is None else Path(index_folder)
    keys = []
    for queries, corpus in ((source, target), (target, source)):
        index = CandidateIndex(factory or default_factory(corpus.rows, corpus.dim), corpus.dim)
        index.prepare(corpus, folder, memory_mib=memory_mib)
        query_keys, lacking = index.search(queries, corpus, k=k, memory_mib=memory_mib)
        del index  # one at a time in memory
        for rows in lacking.split(max(256, memory_mib * 2**17 // queries.dim)):
            query_keys[rows] = exact_rows(queries, corpus, rows.numpy(), k=k, memory_mib=memory_mib)
        keys.append(query_keys)
    source_keys, target_keys = keys
    forward = Neighbors.from_keys(merge_pairs(source_keys, target_keys))
    backward = Neighbors.from_keys(merge_pairs(target_keys, source_keys))
    return forward, backward


def measure_recall(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    found: tuple[Neighbors, Neighbors],
    *,
    memory_mib: int = 256,
) -> tuple[float, float]:
    """Measure the share of the true neighbors that a search has found, for a sample of each corpus."""
    cpu = torch.device("cpu")
    source = CorpusMatrix(source_embeddings, "rows", cpu)
    target = CorpusMatrix(target_embeddings, "rows", cpu)
    forward, backward = found
    return (
        _sampled_recall(source, target, forward, memory_mib=memory_mib),
        _sampled_recall(target, source, backward, memory_mib=memory_mib),
    )


def _sampled_recall(queries: CorpusMatrix, corpus: CorpusMatrix, neighbors: Neighbors, *, memory_mib: int) -> float:
    """Measure the share of the true neighbors that were found for a sample of the queries."""
    sample = np.random.default_rng(0).choice(queries.rows, min(RECALL_SAMPLE, queries.rows), replace=False)
    sample.sort()
    k = neighbors.indices.shape[1]
    exact = indices_of(exact_rows(queries, corpus, sample, k=k, memory_mib=memory_mib)).numpy()
    same = exact[:, :, None] == neighbors.indices[sample][:, None, :]  # equal in index is equal in cosine
    return float(same.any(axis=2).mean())


def default_factory(rows: int, dim: int) -> str:
    """Return the best index for so many vectors in ``tests.benchmarks.mining_approximate``."""
    if rows < LEAST_CODED:
        return "Flat"
    numbers_per_code = next(count for count in (4, 2, 1) if dim % count == 0)
    return f"IVF{default_cells(rows)},PQ{dim // numbers_per_code}x4fs"


def default_cells(rows: int) -> int:
    """Return the number of cells for so many vectors."""
    return 2 ** max(0, round(np.log2(rows / ROWS_PER_CELL)))


class CandidateIndex:
    """A FAISS index that proposes candidates.

    Args:
        factory: See :func:`approximate_neighbors`.
        dim: Dimension of the vectors.

    Raises:
        ValueError: If FAISS cannot make the index, or it has no such parameter.
    """

    def __init__(self, factory: str, dim: int) -> None:
        import faiss  # slow to import

        self._faiss = faiss
        self.factory, _, query = factory.partition("?")
        parameters: dict[str, Any] = {}
        for assignment in filter(None, query.split(",")):
            name, _, value = assignment.partition("=")
            parameters[name] = value
        with self._errors():
            self._index = faiss.index_factory(dim, self.factory)
            inverted = faiss.try_extract_index_ivf(self._index)
            self.cells = 0 if inverted is None else inverted.nlist
            # Defaults by measurement; translations lie farther apart than neighbors in one language.
            nprobe = parameters.get("nprobe", max(1, self.cells // 4))
            defaults: dict[str, Any] = {}
            if self.cells:
                defaults["nprobe"] = nprobe
            if "HNSW" in factory and self.cells:
                defaults["quantizer_efSearch"] = nprobe
            elif "HNSW" in factory:
                defaults["efSearch"] = 128
            self._parameters = {name: float(value) for name, value in (defaults | parameters).items()}
            # Candidates of each row that are scored exactly; 0 for the default.
            self._candidates = int(self._parameters.pop("candidates", 0))
            self._set_parameters()

    def _set_parameters(self) -> None:
        space = self._faiss.ParameterSpace()
        for name, value in self._parameters.items():
            space.set_index_parameter(self._index, name, value)

    def prepare(self, matrix: CorpusMatrix, folder: Path | None, *, memory_mib: int) -> None:
        """Train the index and add all rows, or read it from the folder, where it is kept."""
        if folder is None:
            self._build(matrix, memory_mib=memory_mib)
            return
        made_by = hashlib.sha256(f"{self.factory} {self._faiss.__version__}".encode()).hexdigest()[:16]
        path = folder / f"{matrix.fingerprint[:16]}-{made_by}.faiss"
        folder.mkdir(parents=True, exist_ok=True)
        # Waits while another process makes the same index.
        with locked(folder, name=f".{path.name}.lock", wait_s=math.inf):
            if is_intact(path):  # FAISS reads an index with wrong bits without an error, and finds other neighbors
                self._index = self._faiss.read_index(str(path))
                self._set_parameters()
                return
            self._build(matrix, memory_mib=memory_mib)
            with atomic_path(path) as temporary:
                self._faiss.write_index(self._index, str(temporary))
            record_hash(path)

    def _build(self, matrix: CorpusMatrix, *, memory_mib: int) -> None:
        """Train the index, if it needs that, and add all rows."""
        if not self._index.is_trained:
            self._train(matrix)
        with self._errors():
            for _, vectors in _unit_vector_blocks(matrix, memory_mib):
                self._index.add(vectors)

    def _train(self, matrix: CorpusMatrix) -> None:
        count = min(matrix.rows, max(LEAST_SAMPLE, SAMPLE_PER_CELL * self.cells))
        rows = np.sort(np.random.default_rng(0).choice(matrix.rows, count, replace=False))
        rows = np.resize(rows, max(count, _LEAST_TRAINED))
        sample = np.empty((len(rows), matrix.dim), dtype=np.float32)
        for start in range(0, len(rows), _MOST_AT_ONCE):
            block = torch.from_numpy(rows[start : start + _MOST_AT_ONCE])
            sample[start : start + len(block)] = matrix.unit_rows(block).cpu().numpy()
        if self.cells:
            inverted: Any = self._faiss.try_extract_index_ivf(self._index)
            inverted.cp.min_points_per_centroid = 1  # it would warn of less than 39
        with self._errors():
            # With more threads, last bits of centroids would depend on how many: the tasks of a cluster have one.
            self._faiss.omp_set_num_threads(1)
            self._index.train(sample)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Use as many threads as torch, and turn errors of FAISS into ``ValueError``."""
        self._faiss.omp_set_num_threads(torch.get_num_threads())
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"FAISS cannot search by {self.factory!r} for these vectors: {error}; see its documentation of "
                "index_factory, or choose another index."
            ) from None
        finally:
            self._faiss.omp_set_num_threads(torch.get_num_threads())

    def search(self, queries: CorpusMatrix, corpus: CorpusMatrix, *, k: int, memory_mib: int) -> tuple[Tensor, Tensor]:
        """Find packed candidates of the queries among the rows of the corpus, which are indexed.

        Returns:
            The candidates, *Shape:* ``(queries, k)``, and the queries that are to be searched exactly.
        """
        wanted = self._candidates or max(LEAST_CANDIDATES, CANDIDATES_PER_NEIGHBOR * k)
        count = min(corpus.rows, max(k + 1, wanted))
        keys = torch.empty((queries.rows, k), dtype=torch.int64)
        lacking = torch.empty(queries.rows, dtype=torch.bool)
        for start, vectors in _unit_vector_blocks(queries, memory_mib, count=count):
            with self._errors():
                _, indices = self._index.search(vectors, count)
            block = slice(start, start + len(vectors))
            candidates = torch.from_numpy(indices)
            keys[block], lacking[block] = _score_candidates(queries, corpus, start, candidates, k)
        return keys, lacking.nonzero().squeeze(1)


def _unit_vector_blocks(matrix: CorpusMatrix, memory_mib: int, *, count: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """Unit vectors of the rows from a first one on, in blocks that leave room for ``count`` candidates of each."""
    rows = min(matrix.rows, _MOST_AT_ONCE, max(256, memory_mib * 2**20 // (4 * matrix.dim + 64 * count)))
    vectors = torch.empty((rows, matrix.dim), device=matrix.device)
    for start in range(0, matrix.rows, rows):
        stop = min(start + rows, matrix.rows)
        matrix.unit(start, stop, vectors)
        yield start, vectors[: stop - start].cpu().numpy()


def _score_candidates(
    queries: CorpusMatrix, corpus: CorpusMatrix, start: int, candidates: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Return the packed best candidates of some queries, and which queries these may be too few for.

    Args:
        queries: The matrix of the queries.
        corpus: That of the candidates.
        start: The first query.
        candidates: Rows of the corpus, -1 for none. *Shape:* ``(queries, count)``
        k: How many are wanted.
    """
    rows, columns = (candidates >= 0).nonzero(as_tuple=True)
    partners = candidates[rows, columns]
    keys = torch.full(candidates.shape, NO_CANDIDATE)
    keys[rows, columns] = pack_keys(pair_cosines(queries, corpus, rows + start, partners).cpu(), partners)
    last = cosines_of(keys).amin(dim=1)
    keys = distinct_best(keys, k)
    # Where even the last candidate may equal the k-th, equal ones may not have been proposed. An index of the vectors
    # themselves errs by less than 2 errors, half a squared distance being lengths less a product: what it leaves out is
    # at most 4 better than its last candidate. So Flat is exact.
    is_near = last >= cosines_of(keys[:, -1]) - 4 * product_error(queries.dim)
    may_be_cut = is_near & (candidates.shape[1] < corpus.rows)
    return keys, may_be_cut | (keys[:, -1] == NO_CANDIDATE)
