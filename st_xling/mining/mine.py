"""Two sets of embeddings in, scored translation pairs out."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import torch

from st_xling.mining.find import find_neighbours
from st_xling.mining.margins import margin_scores
from st_xling.mining.neighbours import Neighbours
from st_xling.utils.cosines import Embeddings

#: Names that ``retrieval`` may take.
RETRIEVALS = ("forward", "backward", "intersect", "max")

_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class MinedPairs:
    """Pairs, best first; equal scores by source index, then target index.

    Attributes:
        scores: float64, finite. *Shape:* ``(pairs,)``
        source_indices: Rows of the source side, int64. *Shape:* ``(pairs,)``
        target_indices: Rows of the target side, int64. *Shape:* ``(pairs,)``
    """

    scores: np.ndarray
    source_indices: np.ndarray
    target_indices: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, rows: np.ndarray) -> MinedPairs:
        """The pairs at ``rows``, a boolean mask or indices."""
        return MinedPairs(self.scores[rows], self.source_indices[rows], self.target_indices[rows])


def mine(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float | None = None,
    method: str = "exact",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    block_rows: int | None = None,
    block_columns: int | None = None,
    progress: bool = False,
    state_folder: str | os.PathLike[str] | None = None,
    save_seconds: float = 60.0,
) -> MinedPairs:
    """Find the pairs that are likely translations.

    Candidates are each sentence's ``k`` nearest neighbours, scored by :func:`~st_xling.mining.margin_scores`. Every
    retrieval starts from best candidates; among equal scores the lowest index is the best:

    - ``"forward"``: each source with its best target; a target may occur several times.
    - ``"backward"``: each target with its best source; a source may occur several times.
    - ``"intersect"``: the pairs that both of these hold, hence one-to-one.
    - ``"max"``: the pairs that either holds, taken from the best score down, each sentence at most once.

    With ``method="approximate"`` the result is not exact: a neighbour that the search misses is no candidate, and the
    next best takes its place in the neighbourhood, so that some pairs are missed and some scores differ.

    A candidate whose ratio has no meaning (see :func:`~st_xling.mining.margin_scores`) is left out, so a sentence may
    go without a pair. Nothing here removes duplicate sentences: equal sentences have equal neighbours and compete by
    index.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sources, dim)``
        target_embeddings: *Shape:* ``(targets, dim)``
        k: Neighbours that make up a sentence's neighbourhood.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        retrieval: ``"forward"``, ``"backward"``, ``"intersect"`` or ``"max"``.
        threshold: Keep pairs that score at least this; all by default.
        method: ``"exact"``, ``"approximate"`` or ``"auto"``; see :func:`~st_xling.mining.find.find_neighbours`.
        device: Where to search, such as ``"cuda"``.
        memory_mib: Bound on the memory of one block of the search; what an exact one finds does not depend on it.
        block_rows: Sources that an exact search compares at a time, instead of what ``memory_mib`` allows.
        block_columns: Targets that it compares at a time.
        progress: Show a bar on stderr.
        state_folder: Where an exact search saves what it has found, and goes on from.
        save_seconds: Least time between two saves.
    Returns:
        Pairs, best first.
    Raises:
        ValueError: On an unknown margin, retrieval or method, a NaN threshold, or as
            :func:`~st_xling.mining.neighbours`.
    Source:
        Artetxe and Schwenk 2019, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings", sec. 3.
    Example:
        >>> mine(np.eye(3) + 0.1, np.eye(3)[[1, 2, 0]] + 0.1, k=2).target_indices.tolist()
        [2, 0, 1]
    """
    check_choice(margin=margin, retrieval=retrieval, threshold=threshold)
    forward, backward = find_neighbours(
        source_embeddings,
        target_embeddings,
        k=k,
        method=method,
        device=device,
        memory_mib=memory_mib,
        block_rows=block_rows,
        block_columns=block_columns,
        progress=progress,
        state_folder=state_folder,
        save_seconds=save_seconds,
    )
    from_source = _best_of_each(forward, backward.means, margin)
    scores, targets, sources = _columns(_best_of_each(backward, forward.means, margin))
    from_target = MinedPairs(scores, sources, targets)
    pairs = retrieve(from_source, from_target, retrieval)
    return pairs if threshold is None else pairs.select(pairs.scores >= threshold)


def check_choice(*, margin: str, threshold: float | None, retrieval: str = "max") -> None:
    """Raise where a choice of pairs cannot be made: that should not wait for the search."""
    if retrieval not in RETRIEVALS:
        raise ValueError(
            f"retrieval must be one of {', '.join(RETRIEVALS)}: got {retrieval!r}; 'max' is the usual choice."
        )
    if threshold is not None and math.isnan(threshold):
        raise ValueError("threshold must be a number: got NaN; leave it out to keep every pair.")
    margin_scores(0.0, 1.0, 1.0, margin=margin)


def _columns(pairs: MinedPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return pairs.scores, pairs.source_indices, pairs.target_indices


def _best_of_each(own: Neighbours, other_means: np.ndarray, margin: str) -> MinedPairs:
    """Each row's best-scored neighbour, as (score, row, neighbour); rows without a finite score are left out."""
    scores = margin_scores(own.similarities, own.means[:, None], other_means[own.indices], margin=margin)
    top = scores.max(axis=1)
    best = np.where(scores == top[:, None], own.indices, np.iinfo(np.int64).max).min(axis=1)
    scored = np.isfinite(top)
    return MinedPairs(top[scored], np.flatnonzero(scored), best[scored])


def retrieve(from_source: MinedPairs, from_target: MinedPairs, retrieval: str) -> MinedPairs:
    """Choose among the best candidates of each side as :func:`mine` says.

    Args:
        from_source: At most one pair a source.
        from_target: At most one pair a target.
        retrieval: As for :func:`mine`.
    Returns:
        Pairs, best first.
    """
    if retrieval == "forward":
        return _best_first(from_source)
    if retrieval == "backward":
        return _best_first(from_target)
    # A pair found from both sides has the same score twice: the cosine is shared and the two means commute.
    both = MinedPairs(*(np.concatenate(two) for two in zip(_columns(from_source), _columns(from_target))))
    ordered = _best_first(both)
    repeats = np.zeros(len(ordered), dtype=bool)
    repeats[1:] = (np.diff(ordered.source_indices) == 0) & (np.diff(ordered.target_indices) == 0)
    return ordered.select(repeats) if retrieval == "intersect" else _one_to_one(ordered.select(~repeats))


def _best_first(pairs: MinedPairs) -> MinedPairs:
    return pairs.select(np.lexsort((pairs.target_indices, pairs.source_indices, -pairs.scores)))


def _one_to_one(ordered: MinedPairs) -> MinedPairs:
    """Greedy from the top: a pair stays when neither of its sentences is in a better pair."""
    kept = np.zeros(len(ordered), dtype=bool)
    # A byte a sentence, and some pairs at a time: Python's sets and lists of all would take a hundred times that.
    used_sources = bytearray(int(ordered.source_indices.max(initial=-1)) + 1)
    used_targets = bytearray(int(ordered.target_indices.max(initial=-1)) + 1)
    for start in range(0, len(ordered), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        candidates = zip(ordered.source_indices[some].tolist(), ordered.target_indices[some].tolist())
        for row, (source, target) in enumerate(candidates, start):
            if not used_sources[source] and not used_targets[target]:
                used_sources[source] = used_targets[target] = True
                kept[row] = True
    return ordered.select(kept)
