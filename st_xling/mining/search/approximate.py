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

#: Candidates that an index is asked for, per neighbor; the least for few.
CANDIDATES_PER_NEIGHBOR, LEAST_CANDIDATES = 8, 32

#: Vectors that an index is trained on, per cell of an inverted file, and the least.
SAMPLE_PER_CELL, LEAST_SAMPLE = 32, 2**16

#: Rows from which on the default index compares codes of four bits for four numbers, in cells of so many rows.
LEAST_CODED, ROWS_PER_CELL = 2**14, 256

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
    for own, other in ((source, target), (target, source)):
        index = CandidateIndex(factory or default_factory(other.rows, own.dim), own.dim)
        index.prepare(other, folder, memory_mib=memory_mib)
        own_keys, lacking = index.search(own, other, k=k, memory_mib=memory_mib)
        del index  # one at a time in memory
        for rows in lacking.split(max(256, memory_mib * 2**17 // own.dim)):
            own_keys[rows] = exact_rows(own, other, rows.numpy(), k=k, memory_mib=memory_mib)
        keys.append(own_keys)
    return Neighbors.from_keys(merge_pairs(*keys)), Neighbors.from_keys(merge_pairs(*keys[::-1]))


def measure_recall(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    found: tuple[Neighbors, Neighbors],
    *,
    memory_mib: int = 256,
) -> tuple[float, float]:
    """Measure the share of the true neighbors that a search has found, for a sample of each corpus."""
    cpu, k = torch.device("cpu"), found[0].indices.shape[1]
    matrices = [CorpusMatrix(rows, "rows", cpu) for rows in (source_embeddings, target_embeddings)]
    recalls = []
    for neighbors, (own, other) in zip(found, (matrices, matrices[::-1])):
        sample = np.random.default_rng(0).choice(own.rows, min(RECALL_SAMPLE, own.rows), replace=False)
        exact = indices_of(exact_rows(own, other, np.sort(sample), k=k, memory_mib=memory_mib)).numpy()
        same = exact[:, :, None] == neighbors.indices[np.sort(sample)][:, None, :]  # equal in index is equal in cosine
        recalls.append(float(same.any(axis=2).mean()))
    return recalls[0], recalls[1]


def default_factory(rows: int, dim: int) -> str:
    """Return the best index for so many vectors in ``tests.benchmarks.mining_approximate``."""
    if rows < LEAST_CODED:
        return "Flat"
    parts = next(parts for parts in (4, 2, 1) if dim % parts == 0)
    return f"IVF{default_cells(rows)},PQ{dim // parts}x4fs"


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
        self.factory, _, words = factory.partition("?")
        parameters = dict(word.partition("=")[::2] for word in words.split(",") if word)
        with self._errors():
            self._index = faiss.index_factory(dim, self.factory)
            inverted = faiss.try_extract_index_ivf(self._index)
            self.cells = 0 if inverted is None else inverted.nlist
            # Defaults by measurement; translations lie farther apart than neighbors in one language.
            nprobe = parameters.get("nprobe", max(1, self.cells // 4))
            defaults = {"nprobe": nprobe} if self.cells else {}
            if "HNSW" in factory:
                defaults |= {"quantizer_efSearch": nprobe} if self.cells else {"efSearch": 128}
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
        index = self._index
        if not index.is_trained:
            most = min(matrix.rows, max(LEAST_SAMPLE, SAMPLE_PER_CELL * self.cells))
            rows = np.sort(np.random.default_rng(0).choice(matrix.rows, most, replace=False))
            rows = np.resize(rows, max(most, _LEAST_TRAINED))
            sample = np.empty((len(rows), matrix.dim), dtype=np.float32)
            for start in range(0, len(rows), _MOST_AT_ONCE):
                some = torch.from_numpy(rows[start : start + _MOST_AT_ONCE])
                sample[start : start + len(some)] = matrix.unit_rows(some).cpu().numpy()
            if self.cells:
                inverted: Any = self._faiss.try_extract_index_ivf(index)
                inverted.cp.min_points_per_centroid = 1  # it would warn of less than 39
            with self._errors():
                # With more threads, last bits of centroids would depend on how many: the tasks of a cluster have one.
                self._faiss.omp_set_num_threads(1)
                index.train(sample)
        with self._errors():
            for _, vectors in _blocks(matrix, memory_mib):
                index.add(vectors)

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

    def search(self, own: CorpusMatrix, other: CorpusMatrix, *, k: int, memory_mib: int) -> tuple[Tensor, Tensor]:
        """Find packed candidates of ``own`` among the rows of ``other``, which are indexed.

        Returns:
            The candidates, *Shape:* ``(rows, k)``, and the rows whose own are to be searched exactly.
        """
        count = min(other.rows, max(k + 1, self._candidates or max(LEAST_CANDIDATES, CANDIDATES_PER_NEIGHBOR * k)))
        keys = torch.empty((own.rows, k), dtype=torch.int64)
        lacking = torch.empty(own.rows, dtype=torch.bool)
        for start, vectors in _blocks(own, memory_mib, count=count):
            with self._errors():
                found = torch.from_numpy(self._index.search(vectors, count)[1])
            here = slice(start, start + len(vectors))
            keys[here], lacking[here] = _scored(own, other, start, found, k)
        return keys, lacking.nonzero().squeeze(1)


def _blocks(matrix: CorpusMatrix, memory_mib: int, *, count: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """Unit vectors of the rows from a first one on, in blocks that leave room for ``count`` candidates of each."""
    rows = min(matrix.rows, _MOST_AT_ONCE, max(256, memory_mib * 2**20 // (4 * matrix.dim + 64 * count)))
    vectors = torch.empty((rows, matrix.dim), device=matrix.device)
    for start in range(0, matrix.rows, rows):
        stop = min(start + rows, matrix.rows)
        matrix.unit(start, stop, vectors)
        yield start, vectors[: stop - start].cpu().numpy()


def _scored(own: CorpusMatrix, other: CorpusMatrix, start: int, found: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Packed best of the candidates of some rows, and which rows these may be too few for.

    Args:
        own: The matrix of the rows.
        other: That of the candidates.
        start: The first row.
        found: Candidates, -1 for none. *Shape:* ``(rows, count)``
        k: How many are wanted.
    """
    rows, places = (found >= 0).nonzero(as_tuple=True)
    others = found[rows, places]
    keys = torch.full(found.shape, NO_CANDIDATE)
    keys[rows, places] = pack_keys(pair_cosines(own, other, rows + start, others).cpu(), others)
    last = cosines_of(keys).amin(dim=1)
    keys = distinct_best(keys, k)
    # Where even the last candidate may equal the k-th, equal ones may not have been proposed. An index of the vectors
    # themselves errs by less than 2 errors, half a squared distance being lengths less a product: what it leaves out is
    # at most 4 better than its last candidate. So Flat is exact.
    cut = (last >= cosines_of(keys[:, -1]) - 4 * product_error(own.dim)) & (found.shape[1] < other.rows)
    return keys, cut | (keys[:, -1] == NO_CANDIDATE)
