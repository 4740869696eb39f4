"""Ranking measures for each query language by each passage language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from st_xling.evaluation.ranking import RankingScores, ranking_scores

Matrix = dict[str, dict[str, RankingScores]]


def ranking_matrix(
    scores: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    query_languages: Sequence[str],
    passage_languages: Sequence[str | Sequence[str]],
    **options: Any,
) -> Matrix:
    """:func:`~st_xling.evaluation.ranking_scores` of each query language against the candidates of each language.

    A cell ranks, for the queries of its row's language, only those candidates that are in its column's language. So a
    query with candidates in two languages is judged once in each, and may lack a relevant candidate in one of them:
    ``no_relevant`` then says what it counts.

    Args:
        scores: One list a query.
        labels: 1 for relevant, 0 for not, aligned with ``scores``.
        query_languages: One for each query.
        passage_languages: For each query the language of all its candidates, or a list with one for each candidate.
        options: Of :func:`~st_xling.evaluation.ranking_scores`.
    Returns:
        Query language → passage language → scores, both in alphabetical order; a cell without candidates is absent.
    Raises:
        ValueError: When languages and queries or candidates do not match in number, or as
            :func:`~st_xling.evaluation.ranking_scores`.
    """
    if not len(scores) == len(labels) == len(query_languages) == len(passage_languages):
        raise ValueError(
            f"expected a query language and passage languages for each of {len(scores)} queries: got "
            f"{len(query_languages)} and {len(passage_languages)} (and {len(labels)} lists of labels)."
        )
    cells: dict[tuple[str, str], tuple[list[np.ndarray], list[np.ndarray]]] = {}
    for query, (language, passages) in enumerate(zip(query_languages, passage_languages)):
        row_scores, row_labels = np.asarray(scores[query], dtype=np.float64), np.asarray(labels[query])
        each = np.array([passages] * len(row_scores) if isinstance(passages, str) else list(passages), dtype=object)
        if not len(each) == len(row_scores) == len(row_labels):
            raise ValueError(
                f"query {query}: expected a language and a label for each of {len(row_scores)} candidates: got "
                f"{len(each)} languages and {len(row_labels)} labels."
            )
        for passage_language in sorted(set(each.tolist())):
            there = each == passage_language
            cell = cells.setdefault((language, passage_language), ([], []))
            cell[0].append(row_scores[there])
            cell[1].append(row_labels[there])
    matrix: Matrix = {}
    for (language, passage_language), (cell_scores, cell_labels) in sorted(cells.items()):
        try:
            judged = ranking_scores(cell_scores, cell_labels, **options)
        except ValueError as error:
            raise ValueError(f"{language} queries, {passage_language} candidates: {error}") from error
        matrix.setdefault(language, {})[passage_language] = judged
    return matrix
