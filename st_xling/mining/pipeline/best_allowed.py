"""Pairs chosen among the neighbours that guards let through: a pair turned down makes room for the next best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from st_xling.mining.margins import margin_scores
from st_xling.mining.mine import MinedPairs, retrieve
from st_xling.mining.neighbours import Neighbours

#: Says of each pair whether it may stay. *Shape of the result:* ``(pairs,)``, bool
Allow = Callable[[MinedPairs], np.ndarray]

# Rows whose neighbours are looked at place by place: few enough for guards to remember them meanwhile.
_ROWS_AT_ONCE = 2048


def best_allowed_pairs(
    forward: Neighbours,
    backward: Neighbours,
    *,
    allow: Allow | None = None,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float | None = None,
) -> MinedPairs:
    """As :func:`~st_xling.mining.mine`, with neighbours that are there already and some pairs forbidden.

    A sentence's candidates are looked at from its best down until one is allowed; only then does the retrieval choose
    among those of all sentences. Were forbidden pairs struck out afterwards, a sentence whose best match is a copy
    would have lost its translation to that copy. Pairs below the threshold are not looked at: they could not displace
    any above it.

    Args:
        forward: Source → target.
        backward: Target → source.
        allow: Asked once about each pair that is looked at, some thousands at a time; its answer may depend on nothing
            but the pair.
        margin: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        threshold: As for :func:`~st_xling.mining.mine`.
    Returns:
        Pairs, best first; those of ``mine`` if everything is allowed.
    """
    least = -np.inf if threshold is None else threshold
    verdicts = _Verdicts(allow, len(forward.indices), len(backward.indices))
    from_source = from_target = _NO_PAIRS
    if retrieval != "backward":
        from_source = _best_allowed(forward, backward.means, margin, least, verdicts.from_source)
        verdicts.remember(from_source)
    if retrieval != "forward":
        swapped = _best_allowed(backward, forward.means, margin, least, verdicts.from_target)
        from_target = _swapped(swapped)
    return retrieve(from_source, from_target, retrieval)


_NO_PAIRS = MinedPairs(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def _swapped(pairs: MinedPairs) -> MinedPairs:
    return MinedPairs(pairs.scores, pairs.target_indices, pairs.source_indices)


def _best_allowed(own: Neighbours, other_means: np.ndarray, margin: str, least: float, allow: Allow) -> MinedPairs:
    """Each row's best neighbour that is allowed, as (score, row, neighbour); the lowest index first among equals."""
    parts = [_NO_PAIRS]
    own_means = own.means
    for start in range(0, len(own.indices), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        indices = own.indices[block]
        scores = margin_scores(own.similarities[block], own_means[block, None], other_means[indices], margin=margin)
        order = np.lexsort((indices, -scores), axis=1)
        pairs = [np.take_along_axis(column, order, axis=1) for column in (scores, indices)]
        undecided = np.arange(len(indices))
        for place in range(indices.shape[1]):
            score, other = (column[undecided, place] for column in pairs)
            possible = np.isfinite(score) & (score >= least)
            candidates = MinedPairs(score[possible], undecided[possible] + start, other[possible])
            if not len(candidates):
                break
            allowed = allow(candidates)
            parts.append(candidates.select(allowed))
            undecided = candidates.source_indices[~allowed] - start
    columns = zip(*((part.scores, part.source_indices, part.target_indices) for part in parts))
    return MinedPairs(*(np.concatenate(column) for column in columns))


class _Verdicts:
    """Asks about each pair once, though it may be met from both sides."""

    def __init__(self, allow: Allow | None, sources: int, targets: int) -> None:
        self._allow, self._targets = allow, targets
        self._forbidden: list[np.ndarray] = []
        self._known_forbidden = np.empty(0, dtype=np.int64)
        self._known_allowed = np.full(sources, -1, dtype=np.int64)

    def from_source(self, pairs: MinedPairs) -> np.ndarray:
        if self._allow is None:
            return np.ones(len(pairs), dtype=bool)
        allowed = self._allow(pairs)
        self._forbidden.append(self._keys(pairs)[~allowed])
        return allowed

    def remember(self, allowed: MinedPairs) -> None:
        """Close the first side: what was forbidden, and the one pair that each source was allowed."""
        if self._forbidden:
            self._known_forbidden = np.sort(np.concatenate(self._forbidden))
        self._known_allowed[allowed.source_indices] = allowed.target_indices

    def from_target(self, pairs: MinedPairs) -> np.ndarray:
        pairs = _swapped(pairs)
        if self._allow is None:
            return np.ones(len(pairs), dtype=bool)
        allowed = self._known_allowed[pairs.source_indices] == pairs.target_indices
        keys = self._keys(pairs)
        places = np.searchsorted(self._known_forbidden, keys)
        forbidden = np.zeros(len(pairs), dtype=bool)
        inside = places < len(self._known_forbidden)
        forbidden[inside] = self._known_forbidden[places[inside]] == keys[inside]
        unknown = np.flatnonzero(~allowed & ~forbidden)
        if len(unknown):
            allowed[unknown] = self._allow(pairs.select(unknown))
        return allowed

    def _keys(self, pairs: MinedPairs) -> np.ndarray:
        return pairs.source_indices * self._targets + pairs.target_indices
