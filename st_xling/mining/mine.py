"""Mine scored translation pairs from two sets of embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
import torch

from st_xling.mining.margins import margin_scores
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin, Retrieval, check_choice

if TYPE_CHECKING:
    from datasets import Dataset

#: Names that ``retrieval`` may take.
RETRIEVALS = get_args(Retrieval)

# Rows whose neighbors are looked at together: few enough for filters to remember their texts meanwhile.
_ROWS_AT_ONCE = 2048

_PAIRS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class MinedPairs:
    """Pairs, best first; equal scores by source index, then target index.

    Iterates over, and is indexed by pair as, ``(score, source index, target index)``; slices are pairs again.

    Attributes:
        scores: float64, finite. *Shape:* ``(pairs,)``
        source_indices: Rows of the source corpus, int64. *Shape:* ``(pairs,)``
        target_indices: Rows of the target corpus, int64. *Shape:* ``(pairs,)``
    """

    scores: np.ndarray
    source_indices: np.ndarray
    target_indices: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[tuple[float, int, int]]:
        return zip(self.scores.tolist(), self.source_indices.tolist(), self.target_indices.tolist())

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return self.select(row)
        return float(self.scores[row]), int(self.source_indices[row]), int(self.target_indices[row])

    def __repr__(self) -> str:
        lines = [f"{score:.4f} {source:>8} {target:>8}" for score, source, target in self[:10]]
        more = [f"… {len(self) - 10:,} more"] if len(self) > 10 else []
        return "\n".join([f"{len(self):,} pairs", "score    source   target", *lines, *more])

    def to_dataset(self, source_sentences: Sequence[str], target_sentences: Sequence[str]) -> Dataset:
        """Return the pairs as a data set of ``source``, ``target`` and ``score``, to train with."""
        from datasets import Dataset

        columns: dict[str, list[Any]] = {"source": [source_sentences[row] for row in self.source_indices.tolist()]}
        columns["target"] = [target_sentences[row] for row in self.target_indices.tolist()]
        return Dataset.from_dict({**columns, "score": self.scores.tolist()})

    def select(self, rows: np.ndarray | slice) -> MinedPairs:
        """Select the pairs at ``rows``: a boolean mask, indices or a slice."""
        return MinedPairs(self.scores[rows], self.source_indices[rows], self.target_indices[rows])

    def swapped(self) -> MinedPairs:
        """Return the same pairs from target to source."""
        return MinedPairs(self.scores, self.target_indices, self.source_indices)


#: Returns whether each pair is allowed. *Shape of the result:* ``(pairs,)``, bool
Allow = Callable[[MinedPairs], np.ndarray]


def mine(
    source: Embeddings | Sequence[str],
    target: Embeddings | Sequence[str],
    *,
    model: Any = None,
    prompt: str | None = None,
    k: int = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | None = None,
    method: str = "exact",
    device: str | torch.device = "cpu",
    memory_mib: int = 256,
    progress: bool = False,
) -> MinedPairs:
    """Find the pairs that are likely translations.

    Candidates are each sentence's ``k`` nearest neighbors, scored by :func:`~st_xling.mining.margin_scores`. Every
    retrieval starts from best candidates; among equal scores the lowest index is the best:

    - ``"forward"``: each source with its best target; a target may occur several times.
    - ``"backward"``: each target with its best source; a source may occur several times.
    - ``"intersect"``: the pairs that both of these hold, hence one-to-one.
    - ``"max"``: the pairs that either holds, taken from the best score down, each sentence at most once.

    With ``method="approximate"`` or a FAISS index the result is not exact: a neighbor that the search misses is no
    candidate, and the next best takes its place in the neighborhood, so that some pairs are missed and some scores
    differ.

    A candidate whose ratio is undefined (see :func:`~st_xling.mining.margin_scores`) is skipped, so a sentence may have
    no pair. Duplicate sentences are not merged: equal sentences have equal neighbors and compete by index. For other
    options of the search, call :func:`~st_xling.mining.find_neighbors` and :func:`~st_xling.mining.best_pairs`.

    Args:
        source: Embeddings, numpy or torch, any float dtype, *Shape:* ``(sources, dim)``; or sentences.
        target: *Shape:* ``(targets, dim)``; or sentences.
        model: Encoder of sentences, such as a ``SentenceTransformer``.
        prompt: Text put before each sentence; the model's own by default.
        k: Number of neighbors of each sentence.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        retrieval: ``"forward"``, ``"backward"``, ``"intersect"`` or ``"max"``.
        threshold: Keep pairs that score at least this; all by default.
        method: ``"exact"``, ``"approximate"``, ``"faiss:FACTORY"`` or ``"auto"``; see
            :func:`~st_xling.mining.find_neighbors`.
        device: Device to search on, such as ``"cuda"``.
        memory_mib: Limit on the memory of one block of the search, in MiB.
        progress: Show a progress bar on stderr.
    Returns:
        Pairs, best first.
    Raises:
        ValueError: On an unknown margin, retrieval or method, or as :func:`~st_xling.mining.find_neighbors`.
    Source:
        Artetxe and Schwenk 2019, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings", sec. 3.
    Example:
        >>> mine(np.eye(3) + 0.1, np.eye(3)[[1, 2, 0]] + 0.1, k=2).target_indices.tolist()
        [2, 0, 1]
    """
    check_choice("margin", margin, Margin)
    check_choice("retrieval", retrieval, Retrieval)
    sides: list[Any] = [source, target]
    if text := next((side for side in sides if isinstance(side, str)), None):
        raise ValueError(
            f"mine takes lists of sentences, or embeddings: got the text {text!r}. Files are mined by "
            "mine_texts(source, target, out, model=model)."
        )
    if model is not None:
        from st_xling.models.encode import encode

        sides = [encode(model, list(side), prompt=prompt, show_progress_bar=progress) for side in sides]
    if any(isinstance(side, (list, tuple)) and side and isinstance(side[0], str) for side in sides):
        raise ValueError("mine takes embeddings, or sentences with their encoder: mine(sources, targets, model=model).")
    forward, backward = find_neighbors(
        *sides,
        k=k,
        method=method,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
    )
    return best_pairs(forward, backward, margin=margin, retrieval=retrieval, threshold=threshold)


def best_pairs(
    forward: Neighbors,
    backward: Neighbors,
    *,
    allow: Allow | None = None,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | None = None,
) -> MinedPairs:
    """Choose pairs among neighbors as :func:`mine` does, with some pairs forbidden.

    A sentence's candidates are looked at from its best down until one is allowed; only then does the retrieval choose
    among those of all sentences. Were forbidden pairs struck out afterwards, a sentence whose best match is a copy
    would have lost its translation to that copy. Pairs below the threshold are not looked at: they could not displace
    any above it.

    Args:
        forward: Source → target.
        backward: Target → source.
        allow: Called once for each pair that is looked at, some thousands at a time; its answer may depend on nothing
            but the pair.
        margin: As for :func:`mine`.
        retrieval: As for :func:`mine`.
        threshold: As for :func:`mine`.
    Returns:
        Pairs, best first.
    """
    least = -np.inf if threshold is None else threshold
    ask = None if allow is None else _AskOnce(allow, len(backward.indices))
    from_source = from_target = _Best.of(0)
    if retrieval != "backward":
        from_source = _best_allowed(forward, backward.means, margin, least, ask)
        if ask is not None:
            ask.close_sources(from_source.others)
    if retrieval != "forward":
        allow_swapped = None if ask is None else ask.from_target
        from_target = _best_allowed(backward, forward.means, margin, least, allow_swapped)
    sources, targets = from_source.rows, from_target.rows
    if retrieval in ("intersect", "max"):
        # A pair found from both sides has the same score twice: the cosine is shared and the two means commute.
        mutual = from_source.others[from_target.others[targets]] == targets
        sources, targets = (sources[:0], targets[mutual]) if retrieval == "intersect" else (sources, targets[~mutual])
    pairs = MinedPairs(
        np.concatenate([from_source.scores[sources], from_target.scores[targets]]),
        np.concatenate([sources, from_target.others[targets]]),
        np.concatenate([from_source.others[sources], targets]),
    )
    del from_source, from_target, sources, targets  # tens of bytes a sentence
    order = np.lexsort((pairs.target_indices, pairs.source_indices, -pairs.scores))
    return pairs.select(order[_one_to_one(pairs, order)] if retrieval == "max" else order)


class _Best(NamedTuple):
    """Best allowed neighbor of each row.

    Attributes:
        scores: float64. *Shape:* ``(n,)``
        others: The neighbors, int64; -1 for none. *Shape:* ``(n,)``
    """

    scores: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, rows: int) -> _Best:
        return cls(np.empty(rows), np.full(rows, -1, dtype=np.int64))

    @property
    def rows(self) -> np.ndarray:
        """Rows that have one."""
        return np.flatnonzero(self.others >= 0)


def _best_allowed(own: Neighbors, other_means: np.ndarray, margin: Margin, least: float, allow: Allow | None) -> _Best:
    """Find each row's best allowed neighbor; the lowest index first among equals."""
    best = _Best.of(len(own.indices))
    own_means = own.means
    for start in range(0, len(own.indices), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        indices = own.indices[block]
        scores = margin_scores(own.similarities[block], own_means[block, None], other_means[indices], margin=margin)
        order = np.lexsort((indices, -scores), axis=1)
        scores, indices = (np.take_along_axis(column, order, axis=1) for column in (scores, indices))
        undecided = np.arange(len(indices))
        for place in range(indices.shape[1]):
            score, other = scores[undecided, place], indices[undecided, place]
            possible = np.isfinite(score) & (score >= least)
            candidates = MinedPairs(score[possible], undecided[possible] + start, other[possible])
            if not len(candidates):
                break
            allowed = np.ones(len(candidates), dtype=bool) if allow is None else allow(candidates)
            found = candidates.select(allowed)
            best.scores[found.source_indices], best.others[found.source_indices] = found.scores, found.target_indices
            undecided = candidates.source_indices[~allowed] - start
    return best


class _AskOnce:
    """Filter that checks each pair once, even if it is found from both corpora."""

    def __init__(self, allow: Allow, targets: int) -> None:
        self._allow, self._targets = allow, targets
        self._forbidden = [np.array([np.iinfo(np.int64).max])]  # ends with a key above all others
        self._allowed: np.ndarray | None = None

    def __call__(self, pairs: MinedPairs) -> np.ndarray:
        allowed = self._allow(pairs)
        self._forbidden.append(self._keys(pairs)[~allowed])
        return allowed

    def close_sources(self, allowed: np.ndarray) -> None:
        """Keep the forbidden pairs, and the one target that each source was allowed, or -1."""
        self._forbidden = [np.sort(np.concatenate(self._forbidden))]
        self._allowed = allowed

    def from_target(self, pairs: MinedPairs) -> np.ndarray:
        pairs = pairs.swapped()
        allowed = np.zeros(len(pairs), dtype=bool)
        if self._allowed is not None:
            allowed = self._allowed[pairs.source_indices] == pairs.target_indices
        keys, forbidden = self._keys(pairs), self._forbidden[0]
        unknown = np.flatnonzero(~allowed & (forbidden[np.searchsorted(forbidden, keys)] != keys))
        if len(unknown):
            allowed[unknown] = self._allow(pairs.select(unknown))
        return allowed

    def _keys(self, pairs: MinedPairs) -> np.ndarray:
        return pairs.source_indices * self._targets + pairs.target_indices


def _one_to_one(pairs: MinedPairs, order: np.ndarray) -> np.ndarray:
    """Return which pairs are kept, in this order: those whose sentences are in no earlier kept pair."""
    chosen = np.zeros(len(order), dtype=bool)
    # A byte a sentence, and some pairs at a time: Python's sets and lists of all would take a hundred times that.
    used_sources = bytearray(int(pairs.source_indices.max(initial=-1)) + 1)
    used_targets = bytearray(int(pairs.target_indices.max(initial=-1)) + 1)
    for start in range(0, len(order), _PAIRS_AT_ONCE):
        some = order[start : start + _PAIRS_AT_ONCE]
        candidates = zip(pairs.source_indices[some].tolist(), pairs.target_indices[some].tolist())
        for place, (source, target) in enumerate(candidates, start):
            if not used_sources[source] and not used_targets[target]:
                used_sources[source] = used_targets[target] = True
                chosen[place] = True
    return chosen
