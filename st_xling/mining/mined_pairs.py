"""Mine scored translation pairs from two sets of embeddings, and compute the errors of mining (xsim)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from st_xling.data.check import is_unicode
from st_xling.data.pairs import dataset_in_memory
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
        import pyarrow as pa

        sources = [source_sentences[row] for row in self.source_indices.tolist()]
        targets = [target_sentences[row] for row in self.target_indices.tolist()]
        return dataset_in_memory(pa.table({"source": sources, "target": targets, "score": self.scores.tolist()}))

    def select(self, rows: np.ndarray | slice) -> MinedPairs:
        """Select the pairs at ``rows``: a boolean mask, indices or a slice."""
        return MinedPairs(self.scores[rows], self.source_indices[rows], self.target_indices[rows])


#: Returns whether each pair is allowed. *Shape of the result:* ``(pairs,)``, bool
Allow = Callable[[MinedPairs], np.ndarray]

#: Returns of which pairs the source, and of which the target, is nobody's partner. *Shapes:* ``(pairs,)``, bool
Spent = Callable[[MinedPairs], tuple[np.ndarray, np.ndarray]]


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
    spent: Spent | None = None,
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
        spent: Called for the pairs that are looked at and not allowed; returns which of their sources, and which of
            their targets, are nobody's partner, such as a sentence left untranslated. By default both sentences remain
            free.
        keep: The same as ``allow`` for the chosen pairs, each once; their sentences get no other partner. By default
            all are kept.
        margin: As for :func:`mine`.
        retrieval: As for :func:`mine`.
        threshold: Keep pairs that score at least this; all by default.

    Returns:
        Pairs, best first.
    """
    check_number("threshold", threshold, allow_infinity=True)
    allow = allow or (lambda pairs: np.ones(len(pairs), dtype=bool))
    least = -np.inf if threshold is None else threshold
    source_best, target_best = _best_both_ways(forward, backward, allow, spent, margin, retrieval, least)
    sources = np.flatnonzero(source_best.indices >= 0)
    targets = np.flatnonzero(target_best.indices >= 0)
    if retrieval in ("intersect", "max"):
        # A pair found from both sides has the same score twice: the cosine is shared and the two means commute.
        mutual = source_best.indices[target_best.indices[targets]] == targets
        if retrieval == "intersect":
            sources = sources[:0]
            targets = targets[mutual]
        else:
            targets = targets[~mutual & ~target_best.is_next[targets]]
            source_is_mutual = target_best.indices[source_best.indices[sources]] == sources
            sources = sources[source_is_mutual | ~source_best.is_next[sources]]
    pairs = MinedPairs(
        np.concatenate([source_best.scores[sources], target_best.scores[targets]]),
        np.concatenate([sources, target_best.indices[targets]]),
        np.concatenate([source_best.indices[sources], targets]),
    )
    del source_best, target_best, sources, targets  # tens of bytes a sentence
    order = np.lexsort((pairs.target_indices, pairs.source_indices, -pairs.scores))
    if retrieval == "max":
        order = order[_one_to_one(pairs, order)]
    pairs = pairs.select(order)
    if keep is None:
        return pairs
    starts = range(0, len(pairs), _ROWS_AT_ONCE)
    kept = [keep(pairs[start : start + _ROWS_AT_ONCE]) for start in starts]
    return pairs.select(np.concatenate(kept)) if kept else pairs


class _Verdicts:
    """Answers about pairs that are looked at, so that no pair is asked about twice.

    Args:
        allow: As for :func:`best_pairs`.
        spent: As for :func:`best_pairs`.
        sources: Number of sources.
        targets: Number of targets.
    """

    def __init__(self, allow: Allow, spent: Spent | None, sources: int, targets: int) -> None:
        self._allow = allow
        self._spent = spent
        self._targets = targets
        self._forbidden = np.array([np.iinfo(np.int64).max])  # pairs as numbers, sorted, and one above all
        self._newly_forbidden: list[np.ndarray] = []
        # What was known when the search of both sides began: what is found meanwhile depends on the order of rows and
        # sides.
        self.spent_sources = np.zeros(sources, dtype=bool)
        self.spent_targets = np.zeros(targets, dtype=bool)
        self._newly_spent: list[tuple[np.ndarray, np.ndarray]] = []

    def ask(self, pairs: MinedPairs, is_allowed: np.ndarray) -> np.ndarray:
        """Return which pairs are allowed.

        Args:
            pairs: The pairs.
            is_allowed: Which of them are known to be allowed.
        """
        numbers = pairs.source_indices * self._targets + pairs.target_indices
        is_forbidden = self._forbidden[np.searchsorted(self._forbidden, numbers)] == numbers
        is_forbidden |= self.spent_sources[pairs.source_indices] | self.spent_targets[pairs.target_indices]
        allowed = ~is_forbidden
        undecided = np.flatnonzero(allowed & ~is_allowed)
        if len(undecided):
            asked = pairs.select(undecided)
            allowed[undecided] = self._allow(asked)
            forbidden = asked.select(~allowed[undecided])
            self._newly_forbidden.append(numbers[undecided][~allowed[undecided]])
            if self._spent is not None and len(forbidden):
                source_is_spent, target_is_spent = self._spent(forbidden)
                spent = (forbidden.source_indices[source_is_spent], forbidden.target_indices[target_is_spent])
                self._newly_spent.append(spent)
        return allowed

    def remember_forbidden(self) -> None:
        """Use from now on which pairs were found to be forbidden since the last call."""
        self._forbidden = np.sort(np.concatenate([self._forbidden, *self._newly_forbidden]))
        self._newly_forbidden = []

    def remember_spent(self) -> None:
        """Use from now on which sentences were found to be spent since the last call."""
        for sources, targets in self._newly_spent:
            self.spent_sources[sources] = True
            self.spent_targets[targets] = True
        self._newly_spent = []


@dataclass(eq=False)
class _Best:
    """The best allowed neighbor of each row of a side.

    Attributes:
        scores: Its score, undefined where there is none. *Shape:* ``(rows,)``
        indices: Its index, -1 for none. *Shape:* ``(rows,)``
        is_next: Whether a better one was forbidden. *Shape:* ``(rows,)``
    """

    scores: np.ndarray
    indices: np.ndarray
    is_next: np.ndarray

    @classmethod
    def none(cls, rows: int) -> _Best:
        """Return that no row has a neighbor."""
        return cls(np.empty(rows), np.full(rows, -1), np.zeros(rows, dtype=bool))


def _best_both_ways(
    forward: Neighbors,
    backward: Neighbors,
    allow: Allow,
    spent: Spent | None,
    margin: Margin,
    retrieval: Retrieval,
    least: float,
) -> tuple[_Best, _Best]:
    """Find the best allowed neighbors of the sources, and of the targets; none if the retrieval does not start there.

    A row whose best neighbor turns out to be spent, by a pair that was looked at later, continues with the next ones.
    """
    source_best = _Best.none(len(forward.indices))
    target_best = _Best.none(len(backward.indices))
    verdicts = _Verdicts(allow, spent, len(source_best.indices), len(target_best.indices))

    def ask_from_source(pairs: MinedPairs) -> np.ndarray:
        return verdicts.ask(pairs, target_best.indices[pairs.target_indices] == pairs.source_indices)

    def ask_from_target(pairs: MinedPairs) -> np.ndarray:
        pairs = MinedPairs(pairs.scores, pairs.target_indices, pairs.source_indices)
        return verdicts.ask(pairs, source_best.indices[pairs.source_indices] == pairs.target_indices)

    source_rows = np.arange(len(source_best.indices))
    target_rows = np.arange(len(target_best.indices))
    if retrieval == "backward":
        source_rows = source_rows[:0]
    if retrieval == "forward":
        target_rows = target_rows[:0]
    while len(source_rows) or len(target_rows):
        _find_best_allowed(source_best, source_rows, forward, backward.means, margin, least, ask_from_source)
        verdicts.remember_forbidden()
        _find_best_allowed(target_best, target_rows, backward, forward.means, margin, least, ask_from_target)
        verdicts.remember_forbidden()
        verdicts.remember_spent()
        source_rows = _with_spent_best(source_best, verdicts.spent_sources, verdicts.spent_targets)
        target_rows = _with_spent_best(target_best, verdicts.spent_targets, verdicts.spent_sources)
    return source_best, target_best


def _with_spent_best(best: _Best, is_spent: np.ndarray, other_is_spent: np.ndarray) -> np.ndarray:
    """Return the rows of a side that have a neighbor, and are spent or have a spent one."""
    rows = np.flatnonzero(best.indices >= 0)
    return rows[is_spent[rows] | other_is_spent[best.indices[rows]]]


def _find_best_allowed(
    best: _Best,
    rows: np.ndarray,
    neighbors: Neighbors,
    other_means: np.ndarray,
    margin: Margin,
    least: float,
    ask: Allow,
) -> None:
    """Set the best allowed neighbor of some rows; the lowest index among equals."""
    best.indices[rows] = -1
    means = neighbors.means
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
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
            undecided = undecided[possible]
            candidates = MinedPairs(rank_scores[possible], block[undecided], rank_indices[possible])
            if not len(candidates):
                break
            allowed = ask(candidates)
            accepted = candidates.select(allowed)
            best.scores[accepted.source_indices] = accepted.scores
            best.indices[accepted.source_indices] = accepted.target_indices
            undecided = undecided[~allowed]
            best.is_next[block[undecided]] = True


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
