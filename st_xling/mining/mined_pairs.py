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
        lines = [f"{len(self):,} pairs", "score    source   target"]
        lines += [f"{score:.4f} {source:>8} {target:>8}" for score, source, target in self[:10]]
        if len(self) > 10:
            lines.append(f"… {len(self) - 10:,} more")
        return "\n".join(lines)

    def to_dataset(self, source_sentences: Sequence[str], target_sentences: Sequence[str]) -> Dataset:
        """Return the pairs as a data set of ``source``, ``target`` and ``score``, to train with."""
        from datasets import Dataset

        sources = [source_sentences[row] for row in self.source_indices.tolist()]
        targets = [target_sentences[row] for row in self.target_indices.tolist()]
        return Dataset.from_dict({"source": sources, "target": targets, "score": self.scores.tolist()})

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
    for side in (source, target):
        if isinstance(side, str):
            raise ValueError(
                f"mine takes lists of sentences, or embeddings: got the text {side!r}. Files are mined by "
                "mine_texts(source, target, out, model=model)."
            )
    source_embeddings: Any = source  # or sentences, which are embedded now
    target_embeddings: Any = target
    if model is not None:
        from st_xling.models.encoding import encode

        source_rows = sentence_rows(source_embeddings, "source")
        target_rows = sentence_rows(target_embeddings, "target")
        source_texts = [source_embeddings[row] for row in source_rows.tolist()]
        target_texts = [target_embeddings[row] for row in target_rows.tolist()]
        source_embeddings = encode(model, source_texts, prompt=prompt, show_progress_bar=progress)
        target_embeddings = encode(model, target_texts, prompt=prompt, show_progress_bar=progress)
    if _has_texts(source_embeddings) or _has_texts(target_embeddings):
        raise ValueError("mine takes embeddings, or sentences with their encoder: mine(sources, targets, model=model).")
    forward, backward = find_neighbors(
        source_embeddings,
        target_embeddings,
        k=k,
        method=method,
        device=device,
        memory_mib=memory_mib,
        progress=progress,
    )
    if isinstance(threshold, str):
        pairs = best_pairs(forward, backward, margin=margin, retrieval=retrieval)
        pairs = _above_estimated_threshold(pairs, forward, backward, margin)
    else:
        pairs = best_pairs(forward, backward, margin=margin, retrieval=retrieval, threshold=threshold)
    if model is not None:
        pairs = MinedPairs(pairs.scores, source_rows[pairs.source_indices], target_rows[pairs.target_indices])
    return pairs


def _has_texts(side: Any) -> bool:
    """Return whether a side is a list of sentences rather than of vectors; its first hundred items tell."""
    return isinstance(side, (list, tuple)) and any(isinstance(item, str) for item in side[:100])


def _above_estimated_threshold(
    pairs: MinedPairs, forward: Neighbors, backward: Neighbors, margin: Margin
) -> MinedPairs:
    """Select the pairs above the threshold that is estimated from their scores; all if there is none."""
    estimate = estimate_threshold(
        forward, backward, pairs.scores, pairs.source_indices, pairs.target_indices, margin=margin
    )
    if estimate.threshold is None:
        logger.warning("%s", estimate.note)
        return pairs
    logger.info("%s", estimate.note)
    return pairs.select(pairs.scores >= estimate.threshold)


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
    With ``retrieval="max"`` such a sentence gets another partner only if they are then each other's best: what comes
    next after a forbidden candidate is often wrong, where the translation is not there.
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
    (source_scores, source_best, source_is_next), (target_scores, target_best, target_is_next) = _best_both_ways(
        forward, backward, allow, margin, retrieval, least
    )
    sources = np.flatnonzero(source_best >= 0)
    targets = np.flatnonzero(target_best >= 0)
    if retrieval in ("intersect", "max"):
        # A pair found from both sides has the same score twice: the cosine is shared and the two means commute.
        mutual = source_best[target_best[targets]] == targets
        if retrieval == "intersect":
            sources = sources[:0]
            targets = targets[mutual]
        else:
            targets = targets[~mutual & ~target_is_next[targets]]
            source_is_mutual = target_best[source_best[sources]] == sources
            sources = sources[source_is_mutual | ~source_is_next[sources]]
    pairs = MinedPairs(
        np.concatenate([source_scores[sources], target_scores[targets]]),
        np.concatenate([sources, target_best[targets]]),
        np.concatenate([source_best[sources], targets]),
    )
    # Tens of bytes a sentence.
    del source_scores, source_best, source_is_next, target_scores, target_best, target_is_next, sources, targets
    order = np.lexsort((pairs.target_indices, pairs.source_indices, -pairs.scores))
    if retrieval == "max":
        order = order[_one_to_one(pairs, order)]
    pairs = pairs.select(order)
    if keep is None:
        return pairs
    starts = range(0, len(pairs), _ROWS_AT_ONCE)
    kept = [keep(pairs[start : start + _ROWS_AT_ONCE]) for start in starts]
    return pairs.select(np.concatenate(kept)) if kept else pairs


def _best_both_ways(
    forward: Neighbors, backward: Neighbors, allow: Allow, margin: Margin, retrieval: Retrieval, least: float
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Find the best allowed neighbors of the sources, and of the targets; none if the retrieval does not start there.

    See :func:`_best_allowed` for what is returned of either side.

    No pair is asked about twice: those that the sources were forbidden are remembered, and the one of each source that
    was allowed.
    """
    targets = len(backward.indices)
    source_scores = np.empty(len(forward.indices))
    source_best = np.full(len(forward.indices), -1)
    target_scores = np.empty(len(backward.indices))
    target_best = np.full(len(backward.indices), -1)
    source_is_next = np.zeros(len(source_best), dtype=bool)
    target_is_next = np.zeros(len(target_best), dtype=bool)
    forbidden = [np.array([np.iinfo(np.int64).max])]  # pairs as numbers, and one above all

    def numbers(pairs: MinedPairs) -> np.ndarray:
        return pairs.source_indices * targets + pairs.target_indices

    def allow_from_source(pairs: MinedPairs) -> np.ndarray:
        allowed = allow(pairs)
        forbidden.append(numbers(pairs)[~allowed])
        return allowed

    def allow_from_target(pairs: MinedPairs) -> np.ndarray:
        pairs = MinedPairs(pairs.scores, pairs.target_indices, pairs.source_indices)
        allowed = source_best[pairs.source_indices] == pairs.target_indices
        is_forbidden = all_forbidden[np.searchsorted(all_forbidden, numbers(pairs))] == numbers(pairs)
        undecided = np.flatnonzero(~allowed & ~is_forbidden)
        if len(undecided):
            allowed[undecided] = allow(pairs.select(undecided))
        return allowed

    if retrieval != "backward":
        source_scores, source_best, source_is_next = _best_allowed(
            forward, backward.means, margin, least, allow_from_source
        )
    if retrieval != "forward":
        all_forbidden = np.sort(np.concatenate(forbidden))
        target_scores, target_best, target_is_next = _best_allowed(
            backward, forward.means, margin, least, allow_from_target
        )
    return [(source_scores, source_best, source_is_next), (target_scores, target_best, target_is_next)]


def _best_allowed(
    neighbors: Neighbors, other_means: np.ndarray, margin: Margin, least: float, allow: Allow
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find each row's best allowed neighbor; the lowest index among equals.

    Returns:
        Its score; its index, -1 for none; and whether a better one was forbidden. *Shapes:* ``(rows,)``
    """
    best_scores = np.empty(len(neighbors.indices))
    best = np.full(len(neighbors.indices), -1)
    is_next = np.zeros(len(neighbors.indices), dtype=bool)
    means = neighbors.means
    for start in range(0, len(neighbors.indices), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        indices = neighbors.indices[block]
        scores = margin_scores(neighbors.similarities[block], means[block, None], other_means[indices], margin=margin)
        order = np.lexsort((indices, -scores), axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        indices = np.take_along_axis(indices, order, axis=1)
        undecided = np.arange(len(indices))  # rows of the block
        for rank in range(indices.shape[1]):
            rank_scores = scores[undecided, rank]
            rank_indices = indices[undecided, rank]
            possible = np.isfinite(rank_scores) & (rank_scores >= least)
            candidates = MinedPairs(rank_scores[possible], undecided[possible] + start, rank_indices[possible])
            if not len(candidates):
                break
            allowed = allow(candidates)
            accepted = candidates.select(allowed)
            best_scores[accepted.source_indices] = accepted.scores
            best[accepted.source_indices] = accepted.target_indices
            forbidden = candidates.source_indices[~allowed]
            is_next[forbidden] = True
            undecided = forbidden - start
    return best_scores, best, is_next


def _one_to_one(pairs: MinedPairs, order: np.ndarray) -> np.ndarray:
    """Return which pairs are kept, in this order: those whose sentences are in no earlier kept pair."""
    chosen = np.zeros(len(order), dtype=bool)
    # A byte a sentence, and some pairs at a time: Python's sets and lists of all would take a hundred times that.
    used_sources = bytearray(int(pairs.source_indices.max(initial=-1)) + 1)
    used_targets = bytearray(int(pairs.target_indices.max(initial=-1)) + 1)
    for start in range(0, len(order), _PAIRS_AT_ONCE):
        block = order[start : start + _PAIRS_AT_ONCE]
        candidates = zip(pairs.source_indices[block].tolist(), pairs.target_indices[block].tolist())
        for rank, (source, target) in enumerate(candidates, start):
            if not used_sources[source] and not used_targets[target]:
                used_sources[source] = used_targets[target] = True
                chosen[rank] = True
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
    best = best_targets(source, target, k=k, margin=margin)
    return Xsim(errors=int((best != np.arange(total)).sum()), total=total)


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
