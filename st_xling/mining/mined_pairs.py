"""Mine scored translation pairs from two sets of embeddings, and compute the errors of mining (xsim)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from st_xling.data.check import is_unicode
from st_xling.mining.margins import check_aligned, margin_scores
from st_xling.mining.score_mixture import ESTIMATED, estimate_threshold
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin, Retrieval, check_choice, check_number, helpful_arguments
from st_xling.utils.text import is_blank

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

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


#: Returns whether each pair is allowed. *Shape of the result:* ``(pairs,)``, bool
Allow = Callable[[MinedPairs], np.ndarray]


@helpful_arguments
def mine(
    source: Embeddings | Sequence[str],
    target: Embeddings | Sequence[str],
    *,
    model: Any = None,
    prompt: str | None = None,
    k: int = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | Literal["estimated"] | None = None,
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
    no pair; a blank text has none. Duplicate sentences are not merged: equal sentences have equal neighbors and compete
    by index. For other options of the search, call :func:`~st_xling.mining.find_neighbors` and
    :func:`~st_xling.mining.best_pairs`.

    Args:
        source: Embeddings, numpy or torch, any float dtype, *Shape:* ``(sources, dim)``; or sentences.
        target: *Shape:* ``(targets, dim)``; or sentences.
        model: Encoder of sentences, such as a ``SentenceTransformer``.
        prompt: Text put before each sentence; the model's own by default.
        k: Number of neighbors of each sentence.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        retrieval: ``"forward"``, ``"backward"``, ``"intersect"`` or ``"max"``.
        threshold: Keep pairs that score at least this. All are kept by default: every sentence that is in a pair then,
            and where few sentences have a translation, most of these pairs are wrong. ``"estimated"``: the threshold
            that :func:`~st_xling.mining.estimate_threshold` finds in the scores, which is logged; if it finds none, as
            with fewer than 20 pairs, all are kept, with a warning.
        method: ``"exact"``, ``"approximate"``, ``"faiss:FACTORY"`` or ``"auto"``; see
            :func:`~st_xling.mining.find_neighbors`.
        device: Device to search on, such as ``"cuda"``.
        memory_mib: Limit on the memory of one block of the search, in MiB.
        progress: Show a progress bar on stderr.
    Returns:
        Pairs, best first.
    Raises:
        ValueError: On an unknown margin, retrieval or method, for a sentence that is no text, or as
            :func:`~st_xling.mining.find_neighbors`.
    Source:
        Artetxe and Schwenk 2019, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings", sec. 3.
    Example:
        >>> mine(np.eye(3) + 0.1, np.eye(3)[[1, 2, 0]] + 0.1, k=2).target_indices.tolist()
        [2, 0, 1]
    """
    check_choice("margin", margin, Margin)
    check_choice("retrieval", retrieval, Retrieval)
    if isinstance(threshold, str):
        check_choice("threshold", threshold, [ESTIMATED])
    else:
        check_number("threshold", threshold, allow_infinity=True)
    sides: list[Any] = [source, target]
    if text := next((side for side in sides if isinstance(side, str)), None):
        raise ValueError(
            f"mine takes lists of sentences, or embeddings: got the text {text!r}. Files are mined by "
            "mine_texts(source, target, out, model=model)."
        )
    if model is not None:
        from st_xling.models.encoding import encode

        rows = [sentence_rows(side, name) for side, name in zip(sides, ("source", "target"))]
        texts = [[side[row] for row in kept.tolist()] for side, kept in zip(sides, rows)]
        sides = [encode(model, side, prompt=prompt, show_progress_bar=progress) for side in texts]
    if any(isinstance(side, (list, tuple)) and any(isinstance(text, str) for text in side[:100]) for side in sides):
        raise ValueError("mine takes embeddings, or sentences with their encoder: mine(sources, targets, model=model).")
    both = find_neighbors(*sides, k=k, method=method, device=device, memory_mib=memory_mib, progress=progress)
    least = None if isinstance(threshold, str) else threshold
    pairs = best_pairs(*both, margin=margin, retrieval=retrieval, threshold=least)
    if isinstance(threshold, str):
        estimate = estimate_threshold(*both, pairs.scores, pairs.source_indices, pairs.target_indices, margin=margin)
        if estimate.threshold is None:
            logger.warning("%s", estimate.note)
        else:
            logger.info("%s", estimate.note)
            pairs = pairs.select(pairs.scores >= estimate.threshold)
    if model is not None:
        pairs = MinedPairs(pairs.scores, rows[0][pairs.source_indices], rows[1][pairs.target_indices])
    return pairs


def sentence_rows(texts: Sequence[str], name: str) -> np.ndarray:
    """Return the rows of the texts that are not blank, int64.

    Raises:
        ValueError: If a row is no text, or all are blank.
    """
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be sentences: got {text!r} as {name}[{row}]; leave it out, or write a text.")
        if not is_unicode(text):
            raise ValueError(f"{name}[{row}] has half of a surrogate pair, which is no character: got {text!r}.")
    rows = np.flatnonzero([not is_blank(text) for text in texts])
    if not len(rows):
        raise ValueError(f"{name} must have sentences: all {len(texts)} texts are blank.")
    return rows


def best_pairs(
    forward: Neighbors,
    backward: Neighbors,
    *,
    allow: Allow | None = None,
    keep: Allow | None = None,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | None = None,
) -> MinedPairs:
    """Choose pairs among neighbors as :func:`mine` does, with some pairs forbidden, and others removed.

    A sentence's candidates are looked at from its best down until one is allowed; only then does the retrieval choose
    among those of all sentences. So both sentences of a forbidden pair are free for other partners: forbid what can be
    nobody's pair, such as a sentence in another language, whose copy on the other side has its translation elsewhere.
    A pair that is merely not wanted is removed after the choice: a sentence whose best match is its own copy has found
    its partner, and would otherwise get a wrong one. Pairs below the threshold are not looked at: they could not
    displace any above it.

    Args:
        forward: Source → target.
        backward: Target → source.
        allow: Called once for each pair that is looked at, some thousands at a time; its answer may depend on nothing
            but the pair. By default all are allowed.
        keep: The same for the chosen pairs, each once; their sentences get no other partner. By default all are kept.
        margin: As for :func:`mine`.
        retrieval: As for :func:`mine`.
        threshold: Keep pairs that score at least this; all by default.
    Returns:
        Pairs, best first.
    """
    check_number("threshold", threshold, allow_infinity=True)
    allow = allow or (lambda pairs: np.ones(len(pairs), dtype=bool))
    least = -np.inf if threshold is None else threshold
    (source_scores, source_best), (target_scores, target_best) = _best_both_ways(
        forward, backward, allow, margin, retrieval, least
    )
    sources, targets = np.flatnonzero(source_best >= 0), np.flatnonzero(target_best >= 0)
    if retrieval in ("intersect", "max"):
        # A pair found from both sides has the same score twice: the cosine is shared and the two means commute.
        mutual = source_best[target_best[targets]] == targets
        sources, targets = (sources[:0], targets[mutual]) if retrieval == "intersect" else (sources, targets[~mutual])
    pairs = MinedPairs(
        np.concatenate([source_scores[sources], target_scores[targets]]),
        np.concatenate([sources, target_best[targets]]),
        np.concatenate([source_best[sources], targets]),
    )
    del source_scores, source_best, target_scores, target_best, sources, targets  # tens of bytes a sentence
    order = np.lexsort((pairs.target_indices, pairs.source_indices, -pairs.scores))
    pairs = pairs.select(order[_one_to_one(pairs, order)] if retrieval == "max" else order)
    if keep is None:
        return pairs
    starts = range(0, len(pairs), _ROWS_AT_ONCE)
    kept = [keep(pairs[start : start + _ROWS_AT_ONCE]) for start in starts]
    return pairs.select(np.concatenate(kept)) if kept else pairs


def _best_both_ways(
    forward: Neighbors, backward: Neighbors, allow: Allow, margin: Margin, retrieval: Retrieval, least: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Find the best allowed neighbors of the sources, and of the targets; none if the retrieval does not start there.

    No pair is asked about twice: those that the sources were forbidden are remembered, and the one of each source that
    was allowed.
    """
    targets = len(backward.indices)
    found = [(np.empty(len(side.indices)), np.full(len(side.indices), -1)) for side in (forward, backward)]
    forbidden = [np.array([np.iinfo(np.int64).max])]  # pairs as numbers, and one above all

    def numbers(pairs: MinedPairs) -> np.ndarray:
        return pairs.source_indices * targets + pairs.target_indices

    def ask(pairs: MinedPairs) -> np.ndarray:
        allowed = allow(pairs)
        forbidden.append(numbers(pairs)[~allowed])
        return allowed

    def ask_from_target(pairs: MinedPairs) -> np.ndarray:
        pairs = MinedPairs(pairs.scores, pairs.target_indices, pairs.source_indices)
        allowed = found[0][1][pairs.source_indices] == pairs.target_indices
        unknown = np.flatnonzero(~allowed & (known[np.searchsorted(known, numbers(pairs))] != numbers(pairs)))
        if len(unknown):
            allowed[unknown] = allow(pairs.select(unknown))
        return allowed

    if retrieval != "backward":
        found[0] = _best_allowed(forward, backward.means, margin, least, ask)
    if retrieval != "forward":
        known = np.sort(np.concatenate(forbidden))
        found[1] = _best_allowed(backward, forward.means, margin, least, ask_from_target)
    return found


def _best_allowed(
    own: Neighbors, other_means: np.ndarray, margin: Margin, least: float, allow: Allow
) -> tuple[np.ndarray, np.ndarray]:
    """Find the score and index of each row's best allowed neighbor, -1 for none; the lowest index among equals."""
    best_scores, best = np.empty(len(own.indices)), np.full(len(own.indices), -1)
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
            allowed = allow(candidates)
            found = candidates.select(allowed)
            best_scores[found.source_indices], best[found.source_indices] = found.scores, found.target_indices
            undecided = candidates.source_indices[~allowed] - start
    return best_scores, best


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


@dataclass(frozen=True)
class Xsim:
    """Number of errors among sentences.

    Attributes:
        errors: Number of sources whose best target is another sentence than their translation.
        total: Number of sources.
    """

    errors: int
    total: int

    @property
    def error_rate(self) -> float:
        """In [0, 1]; lower is better."""
        return self.errors / self.total


def xsim(source_embeddings: Embeddings, target_embeddings: Embeddings, *, k: int = 4, margin: Margin = "ratio") -> Xsim:
    """Compute the similarity search error from source to target: each source takes the best-scored of its neighbors.

    Among equal scores the lowest index is taken. A source without any defined ratio counts as an error.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sentences, dim)``
        target_embeddings: Translations, row-aligned. *Shape:* ``(sentences, dim)``
        k: Number of neighbors of each sentence.
        margin: ``"absolute"`` (plain cosine), ``"distance"`` or ``"ratio"``.
    Returns:
        Errors and error rate.
    Raises:
        ValueError: On unequal numbers of rows, an unknown margin, or as :func:`~st_xling.mining.find_neighbors`.
    Source:
        LASER, ``xsim.py``; NLLB Team 2022, section 5.
    Example:
        >>> xsim(np.eye(4), np.eye(4)[[0, 1, 3, 2]] + 0.1, k=2).error_rate
        0.5
    """
    source, target = check_aligned(source_embeddings, target_embeddings)
    total = source.shape[0]
    return Xsim(int((best_targets(source, target, k=k, margin=margin) != np.arange(total)).sum()), total)


def best_targets(
    source_embeddings: Embeddings, target_embeddings: Embeddings, *, k: int = 4, margin: Margin = "ratio"
) -> np.ndarray:
    """Find the target with the highest margin score of each source, or -1 for a source without one.

    Arguments are those of :func:`~st_xling.mining.mine`.

    Returns:
        *Shape:* ``(sources,)``
    """
    pairs = mine(source_embeddings, target_embeddings, k=k, margin=margin, retrieval="forward")
    best = np.full(source_embeddings.shape[0], -1)
    best[pairs.source_indices] = pairs.target_indices
    return best
