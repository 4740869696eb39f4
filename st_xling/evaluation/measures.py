"""Measures without a model: acc@k, MRR, MAP and nDCG of rankings; F1 of mined pairs; bootstrap intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from st_xling.mining.thresholds import Threshold, best_threshold, precision_recall_f1

#: Maximum number of draws in memory at a time.
AT_ONCE = 2**22

#: Number of ranks that count in nDCG.
NDCG_AT = 10

#: Measures of mined pairs.
MINING_MEASURES = ("precision", "recall", "f1", "threshold", "n_mined", "n_correct", "n_gold")


@dataclass(frozen=True)
class RankingScores:
    """Means over the queries that have a relevant candidate.

    Attributes:
        means: ``acc@k`` for each k, ``mrr``, ``map`` and ``ndcg@10`` → mean in [0, 1].
        n_queries: Number of queries.
        n_without_relevant: Number of queries without a relevant candidate, which are ignored in the means.
        per_query: Values that are averaged, a row for each query that counts, a column for each of ``means``.
            *Shape:* ``(queries, measures)``
        n_candidates: Mean number of candidates of the queries that count.
        chance: What an order drawn at random reaches on average, by the names of ``means``.
    """

    means: dict[str, float]
    n_queries: int
    n_without_relevant: int
    per_query: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False, compare=False)
    n_candidates: float = field(default=0.0, compare=False)
    chance: dict[str, float] = field(default_factory=dict, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the means, ``n_queries`` and ``n_without_relevant`` in one dictionary."""
        return {**self.means, "n_queries": self.n_queries, "n_without_relevant": self.n_without_relevant}


def relevant_ranks(scores: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return the ranks of the relevant candidates of one query when candidates are sorted by score, best first.

    Among equal scores, irrelevant candidates come first, so that a model that scores all alike gets the worst result.

    Args:
        scores: Higher is better; infinities are allowed. *Shape:* ``(candidates,)``
        labels: 1 for relevant, 0 for not. *Shape:* ``(candidates,)``
    Returns:
        Ranks from 1, ascending, int64. *Shape:* ``(relevant candidates,)``
    Raises:
        ValueError: On unequal lengths, NaN scores, or labels other than 0 and 1.

    Example:
        >>> relevant_ranks([0.5, 0.9, 0.5], [1, 0, 0]).tolist()
        [3]
    """
    values = np.asarray(scores, dtype=np.float64)
    relevant = np.asarray(labels)
    has_equal_shapes = values.ndim == 1 and values.shape == relevant.shape
    if not has_equal_shapes or np.isnan(values).any() or not np.isin(relevant, (0, 1)).all():
        raise ValueError(
            f"scores must be numbers, and labels 0 or 1, as many: got {values.tolist()} and {relevant.tolist()}."
        )
    relevant = relevant.astype(bool)
    # lexsort sorts by its last key first: by score, then irrelevant before relevant.
    order = np.lexsort((relevant, -values))
    return np.flatnonzero(relevant[order]) + 1


def average_precision(ranks: np.ndarray) -> float:
    """Return the mean, over all relevant candidates, of the precision at their ranks.

    Args:
        ranks: Result of :func:`relevant_ranks`, one rank or more. *Shape:* ``(relevant candidates,)``
    Example:
        >>> average_precision(np.array([1, 4]))
        0.75
    """
    return float((np.arange(1, len(ranks) + 1) / ranks).mean())


def binary_ndcg(ranks: np.ndarray) -> float:
    """Return the discounted gain of the relevant candidates over that of the best order, in the first 10 ranks.

    Args:
        ranks: Result of :func:`relevant_ranks`, one rank or more. *Shape:* ``(relevant candidates,)``
    Source:
        Järvelin and Kekäläinen 2002, with the discount of trec_eval, ``1 / log2(rank + 1)``.

    Example:
        >>> binary_ndcg(np.array([1])), binary_ndcg(np.array([3])), binary_ndcg(np.array([11]))
        (1.0, 0.5, 0.0)
    """
    best_ranks = np.arange(1, min(len(ranks), NDCG_AT) + 1)
    gain = (1 / np.log2(ranks[ranks <= NDCG_AT] + 1)).sum()
    best_gain = (1 / np.log2(best_ranks + 1)).sum()
    return float(gain / best_gain)


def chance_of_ranking(n_candidates: int, n_relevant: int, *, ks: Sequence[int] = (1, 10)) -> list[float]:
    r"""Return the expected acc@k, MRR, MAP and nDCG@10 of candidates in random order.

    With :math:`r` of :math:`n` candidates relevant, the first relevant one is at rank :math:`i` with probability
    :math:`\binom{n-i}{r-1} / \binom{n}{r}`, and the candidate at any rank is relevant with probability :math:`r/n`.

    Args:
        n_candidates: Number of candidates of the query.
        n_relevant: Number of relevant ones among them, at least 1.
        ks: The k of acc@k.

    Returns:
        An expectation for each k, then those of MRR, MAP and nDCG@10.

    Example:
        >>> [round(value, 3) for value in chance_of_ranking(10, 1)]
        [0.1, 1.0, 0.293, 0.293, 0.454]
    """
    orders = math.comb(n_candidates, n_relevant)
    accuracies = [1 - math.comb(max(n_candidates - k, 0), n_relevant) / orders for k in ks]
    ranks = np.arange(1, n_candidates + 1)
    share = n_relevant / n_candidates
    firsts = np.array([math.comb(n_candidates - rank, n_relevant - 1) / orders for rank in ranks.tolist()])
    # Of the ranks above a relevant candidate, each has one of the others with this probability.
    share_of_others = (n_relevant - 1) / max(n_candidates - 1, 1)
    precisions = (1 + (ranks - 1) * share_of_others) / ranks
    gains = 1 / np.log2(ranks[:NDCG_AT] + 1)
    ndcg = share * gains.sum() / gains[:n_relevant].sum()
    return [*accuracies, float((firsts / ranks).sum()), float(precisions.mean()), float(ndcg)]


def ranking_scores(
    scores: Sequence[ArrayLike], labels: Sequence[ArrayLike], *, ks: Sequence[int] = (1, 10)
) -> RankingScores:
    r"""Compute acc@k, MRR, MAP and nDCG@10 of queries that each have their own candidates.

    .. math:: \mathrm{AP}(q) = \frac{\sum_{n=1}^{m} \mathrm{Precision@}n(q)\,\mathrm{Rel}(n)}
        {\sum_{n=1}^{m} \mathrm{Rel}(n)}, \qquad \mathrm{RR}(q) = \frac{1}{\mathrm{rank}_q}

    with :math:`m` all candidates of the query. Queries without a relevant candidate are skipped and counted.

    Args:
        scores: A list for each query; lengths may differ. Higher is better.
        labels: 1 for relevant, 0 for not, aligned with ``scores``.
        ks: The k of acc@k.

    Returns:
        Means over queries; 0 if no query has a relevant candidate.

    Raises:
        ValueError: Without queries, for ``ks`` that are no whole numbers from 1 on, or as :func:`relevant_ranks`,
            naming the query.
    Source:
        Chen et al. 2020 (XPR), equations 5 to 11.
    """
    if not len(scores) or len(scores) != len(labels):
        raise ValueError(
            f"scores and labels must hold a list for each query, and at least one: got {len(scores)} and {len(labels)}."
        )
    if not isinstance(ks, Sequence) or not all(isinstance(k, Integral) and k >= 1 for k in ks):
        raise ValueError(f"ks must be a list of whole numbers from 1 on, such as (1, 10): got {ks!r}.")
    ranks = []
    for query, (row_scores, row_labels) in enumerate(zip(scores, labels)):
        try:
            ranks.append(relevant_ranks(row_scores, row_labels))
        except ValueError as error:
            raise ValueError(f"query {query}: {error}") from error
    measured: list[list[float]] = []
    sizes: list[tuple[int, int]] = []
    for row, row_labels in zip(ranks, labels):
        if len(row):
            accuracies = [float(row[0] <= k) for k in ks]
            measured.append([*accuracies, float(1 / row[0]), average_precision(row), binary_ndcg(row)])
            sizes.append((len(np.asarray(row_labels)), len(row)))
    names = [*(f"acc@{k}" for k in ks), "mrr", "map", f"ndcg@{NDCG_AT}"]
    means = [sum(column) / len(column) for column in zip(*measured)] or [0.0] * len(names)
    chances = np.zeros(len(names))
    for (n_candidates, n_relevant), count in Counter(sizes).items():  # most queries have as many as others
        chances += count / len(sizes) * np.array(chance_of_ranking(n_candidates, n_relevant, ks=ks))
    return RankingScores(
        means=dict(zip(names, means)),
        n_queries=len(ranks),
        n_without_relevant=len(ranks) - len(measured),
        per_query=np.array(measured).reshape(len(measured), len(names)),
        n_candidates=sum(n_candidates for n_candidates, _ in sizes) / max(len(sizes), 1),
        chance=dict(zip(names, chances.tolist())),
    )


def ranking_matrix(
    scores: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    query_languages: Sequence[str],
    passage_languages: Sequence[str | Sequence[str]],
    *,
    ks: Sequence[int] = (1, 10),
) -> dict[str, dict[str, RankingScores]]:
    """Compute :func:`~st_xling.evaluation.ranking_scores` by query language and passage language.

    A cell ranks, for the queries of its row's language, only those candidates that are in its column's language. So a
    query with candidates in two languages counts once in each, unless it lacks a relevant candidate there.

    Args:
        scores: A list for each query.
        labels: 1 for relevant, 0 for not, aligned with ``scores``.
        query_languages: One for each query.
        passage_languages: For each query the language of all its candidates, or a list with one for each candidate.
        ks: The k of acc@k.

    Returns:
        Query language → passage language → scores, both in alphabetical order; a cell without candidates is absent.

    Raises:
        ValueError: When languages and queries do not match in number, or as
            :func:`~st_xling.evaluation.ranking_scores`.
    """
    # Languages of queries and passages → scores and labels of each query's candidates in that language.
    cells: dict[tuple[str, str], tuple[list[np.ndarray], list[np.ndarray]]] = {}
    lists = zip(query_languages, passage_languages, scores, labels, strict=True)
    for language, passages, query_scores, query_labels in lists:
        row_scores = np.asarray(query_scores, dtype=np.float64)
        row_labels = np.asarray(query_labels)
        codes = [passages] * len(row_scores) if isinstance(passages, str) else list(passages)
        candidate_languages = np.array(codes, dtype=object)
        for passage_language in set(codes):
            is_in_language = candidate_languages == passage_language
            cell_scores, cell_labels = cells.setdefault((language, passage_language), ([], []))
            cell_scores.append(row_scores[is_in_language])
            cell_labels.append(row_labels[is_in_language])
    matrix: dict[str, dict[str, RankingScores]] = {}
    for (language, passage_language), (cell_scores, cell_labels) in sorted(cells.items()):
        matrix.setdefault(language, {})[passage_language] = ranking_scores(cell_scores, cell_labels, ks=ks)
    return matrix


def ranking_by_relevant_language(
    scores: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    query_languages: Sequence[str],
    passage_languages: Sequence[str | Sequence[str]],
    *,
    ks: Sequence[int] = (1, 10),
) -> dict[str, dict[str, RankingScores]]:
    """Compute :func:`~st_xling.evaluation.ranking_scores` by query language and language of what is relevant.

    All candidates of a query are ranked together, so that a wrong passage in the language of the query competes with
    the right one in another, which :func:`~st_xling.evaluation.ranking_matrix` keeps apart. Relevant candidates in
    other languages than that of the cell are left out, since they are not wrong; as in the matrix, a query without
    relevant ones in the language of the cell is counted, and does not enter the means.

    Args:
        scores: A list for each query.
        labels: 1 for relevant, 0 for not, aligned with ``scores``.
        query_languages: One for each query.
        passage_languages: For each query the language of all its candidates, or a list with one for each candidate.
        ks: The k of acc@k.

    Returns:
        Query language → language of the relevant candidates → scores, both in alphabetical order.

    Raises:
        ValueError: When languages and queries do not match in number, or as
            :func:`~st_xling.evaluation.ranking_scores`.

    Example:
        >>> cells = ranking_by_relevant_language([[0.9, 0.8]], [[0, 1]], ["de"], [["de", "en"]])
        >>> cells["de"]["en"].means["mrr"]
        0.5
    """
    cells: dict[tuple[str, str], tuple[list[ArrayLike], list[ArrayLike]]] = {}
    lists = zip(query_languages, passage_languages, scores, labels, strict=True)
    for language, passages, query_scores, query_labels in lists:
        row_labels = np.asarray(query_labels)
        codes = [passages] * len(row_labels) if isinstance(passages, str) else list(passages)
        for relevant_language in set(codes):
            kept = [not label or code == relevant_language for code, label in zip(codes, row_labels, strict=True)]
            is_of_cell = np.asarray(kept, dtype=bool)
            cell_scores, cell_labels = cells.setdefault((language, relevant_language), ([], []))
            cell_scores.append(np.asarray(query_scores)[is_of_cell])
            cell_labels.append(row_labels[is_of_cell])
    by_language: dict[str, dict[str, RankingScores]] = {}
    for (language, relevant_language), (cell_scores, cell_labels) in sorted(cells.items()):
        by_language.setdefault(language, {})[relevant_language] = ranking_scores(cell_scores, cell_labels, ks=ks)
    return by_language


def resample(
    sizes: Sequence[int], statistic: Callable[[list[np.ndarray]], np.ndarray], *, samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of 95 % percentile bootstrap intervals.

    Args:
        sizes: Number of items of each group, at least 2; groups are resampled independently.
        statistic: Takes for each group how often each item was drawn in each sample, *shape:* ``(samples, items)``, and
            returns values with the samples in the last axis.
        samples: Number of samples.
        seed: Seed of the draw.
    """
    from scipy.stats import bootstrap

    def statistic_of_draws(*drawn: np.ndarray, axis: int) -> np.ndarray:
        times = []
        for rows, size in zip(drawn, sizes):
            # Counts of all samples at once: the items of sample n are numbered from n * size.
            flat = rows + size * np.arange(len(rows))[:, None]
            counts = np.bincount(flat.ravel(), minlength=size * len(rows))
            times.append(counts.reshape(-1, size).astype(np.float64))
        return statistic(times)

    return bootstrap(
        [np.arange(size) for size in sizes],
        statistic_of_draws,
        n_resamples=samples,
        batch=max(1, AT_ONCE // sum(sizes)),
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval


def bootstrap_interval(values: ArrayLike, *, samples: int = 1000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95 % percentile bootstrap interval of the mean over rows.

    Rows are drawn with replacement, as many as there are, all measures of a row together. They count as independent:
    queries that translate each other are not, and the interval is then too narrow.

    Args:
        values: A row for each query, a column for each measure. *Shape:* ``(queries, measures)``
        samples: Number of samples.
        seed: Seed of the draw.

    Returns:
        Lower and upper ends. *Shapes:* ``(measures,)``; 0 without queries, as their means are.

    Raises:
        ValueError: If ``samples`` is less than 1.
    Source:
        Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.

    Example:
        >>> low, high = bootstrap_interval([[1.0], [0.0], [1.0], [1.0]])
        >>> low.tolist(), high.tolist()
        ([0.25], [1.0])
    """
    if samples < 1:
        raise ValueError(f"samples of a bootstrap must be 1 or more: got {samples}; 1000 is the usual choice.")
    table = np.asarray(values, dtype=np.float64)
    n_rows = len(table)
    if n_rows < 2:  # nothing to resample
        return table.sum(axis=0), table.sum(axis=0)

    def means(times: list[np.ndarray]) -> np.ndarray:
        return (times[0] @ table / n_rows).T

    return resample([n_rows], means, samples=samples, seed=seed)


@dataclass(frozen=True, eq=False)
class EvaluatedPairs:
    """Candidate pairs of one corpus with its gold.

    Attributes:
        scores: float64, finite. *Shape:* ``(pairs,)``
        is_correct: Whether each pair is gold. *Shape:* ``(pairs,)``
        n_gold: Number of gold pairs, found or not.
        source_indices: Source sentence of each pair, where it is known. *Shape:* ``(pairs,)``
    """

    scores: np.ndarray
    is_correct: np.ndarray
    n_gold: int
    source_indices: np.ndarray | None = None

    def best(self) -> Threshold:
        """Return the threshold of highest F1 on this gold, see :func:`~st_xling.mining.best_threshold`."""
        return best_threshold(self.scores, self.is_correct, self.n_gold)

    def at(self, threshold: float) -> dict[str, float]:
        """Return the measures of the pairs that score at least ``threshold``, by the names of :data:`MINING_MEASURES`.

        ``precision`` is the correct share of the mined pairs, ``recall`` the found share of the gold pairs, and ``f1``
        their harmonic mean, all in [0, 1]. Minus infinity keeps all pairs, infinity none.
        """
        selected = self.scores >= threshold
        n_mined = int(selected.sum())
        n_correct = int((selected & self.is_correct).sum())
        rates = precision_recall_f1(n_correct, n_mined, self.n_gold)
        return dict(zip(MINING_MEASURES, (*rates, float(threshold), n_mined, n_correct, self.n_gold)))


def judge_pairs(
    pairs: Iterable[tuple[Hashable, Hashable, float]], gold: Iterable[tuple[Hashable, Hashable]]
) -> EvaluatedPairs:
    """Compare scored pairs of ids with gold pairs of ids.

    Args:
        pairs: (source id, target id, score).
        gold: All gold pairs as (source id, target id).

    Raises:
        ValueError: On repeated pairs, scores that are not finite, or no gold.
    """
    scored_pairs = list(pairs)
    gold_pairs = list(gold)
    predicted_pairs = [pair[:2] for pair in scored_pairs]
    for name, id_pairs in (("predictions", predicted_pairs), ("gold", gold_pairs)):
        twice = [pair for pair, count in Counter(id_pairs).items() if count > 1]
        if twice:
            raise ValueError(f"{name} must hold each pair once: got {twice[0]} twice; remove the repeats.")
    scores = np.array([score for *_, score in scored_pairs], dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite: got {scores[~np.isfinite(scores)][0]}; drop this pair first.")
    if not gold_pairs:
        raise ValueError("gold must hold at least one pair: got none; recall needs gold pairs.")
    gold_set = set(gold_pairs)
    is_correct = np.array([pair in gold_set for pair in predicted_pairs], dtype=bool)
    return EvaluatedPairs(scores, is_correct, len(gold_pairs))


def row_thresholds(
    evaluated: Sequence[EvaluatedPairs],
    *,
    threshold: float | Sequence[float] | str | None = None,
    train: Sequence[EvaluatedPairs] | None = None,
) -> tuple[list[float], str]:
    """Return a threshold for each corpus, and the source of the thresholds.

    Args:
        evaluated: The corpora that are evaluated.
        threshold: One number for all, one for each, or ``"tune"``: the best on the corpus's gold. By default minus
            infinity, which keeps every pair.
        train: Other pairs, corpus by corpus, whose best thresholds are taken instead.

    Returns:
        A number for each corpus, and the source: ``"given"``, ``"train"``, ``"tuned on this gold"``, or ``"none"``:
        every pair counts as mined.

    Raises:
        ValueError: When both are given, or the number of thresholds does not match.
    """
    if train is not None:
        if threshold is not None:
            raise ValueError(f"expected a threshold or training pairs to find one: got both, threshold={threshold!r}.")
        return [pairs.best().threshold for pairs in train], "train"
    if threshold is None:
        return [float("-inf")] * len(evaluated), "none"
    if isinstance(threshold, str) and threshold == "tune":
        return [pairs.best().threshold for pairs in evaluated], "tuned on this gold"
    try:
        return np.broadcast_to(np.asarray(threshold, np.float64), len(evaluated)).tolist(), "given"
    except ValueError as error:
        expected = f"expected 'tune', one threshold, or one for each of {len(evaluated)} corpora"
        raise ValueError(f"{expected}: got {threshold!r}.") from error
