"""Test pools as the paper makes them: the query's language tossed, the candidates' languages in even shares."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from st_xling.data.reranking.aligned import numbered
from st_xling.data.reranking.candidate_pool import CandidatePool, CandidatePools, pools_signature

logger = logging.getLogger(__name__)

WithoutRelevant = Literal["exclude", "keep", "error"]


def candidate_pools(
    queries: Mapping[str, Sequence[str]],
    passages: Mapping[str, Sequence[str]],
    relevant: Sequence[Collection[int]],
    *,
    candidates: Sequence[Sequence[int]] | None = None,
    query_ids: Sequence[str] | None = None,
    passage_ids: Sequence[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """The paper's test sets: each query in a language that is tossed, its candidates split evenly over the languages.

    For two languages exactly half of the candidates are in the one and half in the other, drawn for each query anew; of
    an odd number, or over more languages, every language has floor or ceil of an even share, and a draw says which. The
    language of a passage has nothing to do with its relevance. Pools share the passages' strings.

    Args:
        queries: Language → queries, aligned. *Shape:* ``(queries,)`` each
        passages: Language → passages, aligned; of the same languages or others. *Shape:* ``(passages,)`` each
        relevant: Of each query, the numbers of the relevant passages. *Shape:* ``(queries,)``
        candidates: Of each query, the numbers of the passages to rank, once each; by default all are candidates for all
            queries. A relevant passage that is no candidate cannot be found. *Shape:* ``(queries,)``
        query_ids: Names; by default numbers. *Shape:* ``(queries,)``
        passage_ids: The same. *Shape:* ``(passages,)``
        max_candidates: Draw this many candidates for each query where it has more. Relevant ones always stay, so the
            task gets easier; the signature says so (``candidates:100+relevant``).
        without_relevant: What becomes of queries without a candidate, or without a relevant one: ``"exclude"``,
            ``"keep"``, ``"error"``. They are counted, and a warning says how many there are.
        seed: Of tosses and draws.
    Raises:
        ValueError: Sides that are not aligned; a number of no passage; queries that cannot be answered, if so asked.
    Source:
        IEEE Access 2020, section V-A-2.
    """
    _check_options(without_relevant, max_candidates)
    asked, shown = _rows(queries, "queries"), _rows(passages, "passages")
    _check_length("relevant", relevant, asked)
    _check_length("candidates", candidates, asked)
    _check_length("query_ids", query_ids, asked)
    _check_length("passage_ids", passage_ids, shown)
    rng = np.random.default_rng(seed)
    texts = {code: tuple(column) for code, column in passages.items()}
    ids = tuple(passage_ids if passage_ids is not None else map(str, range(shown)))
    languages = tuple(queries)
    pools: list[CandidatePool] = []
    empty: list[int] = []
    unanswered: list[int] = []
    for query in range(asked):
        pool = np.arange(shown) if candidates is None else _numbers(candidates[query], shown, query)
        right = np.intersect1d(_numbers(relevant[query], shown, query), pool)
        language = languages[rng.integers(len(languages))]
        pool = _capped(pool, right, max_candidates, rng)
        spoken = rng.permutation((np.arange(len(pool)) + rng.integers(len(texts))) % len(texts))
        (empty if not len(pool) else unanswered if not len(right) else []).append(query)
        if not len(right) and without_relevant == "exclude":
            continue
        whole = candidates is None and len(pool) == shown
        name = str(query if query_ids is None else query_ids[query])
        pools.append(_pool(queries[language][query], language, name, pool, spoken, right, texts, ids, whole=whole))
    _settle(empty, unanswered, asked, without_relevant)
    drawn = "own" if candidates is not None else "all"
    drawn = drawn if max_candidates is None else f"{max_candidates}+relevant"
    signature = pools_signature(languages, tuple(texts), drawn, seed, without_relevant)
    return CandidatePools(tuple(pools), len(empty), len(unanswered), signature)


def _pool(
    query: str,
    language: str,
    name: str,
    rows: np.ndarray,
    spoken: np.ndarray,
    right: np.ndarray,
    texts: Mapping[str, tuple[str, ...]],
    ids: tuple[str, ...],
    *,
    whole: bool,
) -> CandidatePool:
    """One query with its candidates, each in the language that was drawn for it; the whole set is not copied."""
    codes, numbers = tuple(texts), rows.tolist()
    shown = [codes[place] for place in spoken.tolist()]
    alone = whole and len(codes) == 1
    return CandidatePool(
        query,
        language,
        texts[codes[0]] if alone else tuple(texts[code][row] for code, row in zip(shown, numbers)),
        tuple(shown),
        tuple(np.isin(rows, right).astype(int).tolist()),
        name,
        ids if whole else tuple(ids[row] for row in numbers),
    )


def _check_options(without_relevant: str, max_candidates: int | None) -> None:
    if without_relevant not in get_args(WithoutRelevant):
        raise ValueError(f"without_relevant must be one of {get_args(WithoutRelevant)}: got {without_relevant!r}.")
    if max_candidates is not None and max_candidates < 1:
        raise ValueError(f"max_candidates must be 1 or more: got {max_candidates}; leave it out for all.")


def _check_length(name: str, column: Sequence[object] | None, rows: int) -> None:
    if column is not None and len(column) != rows:
        raise ValueError(f"{name} must have {rows} entries, one for each text: got {len(column)}.")


def _rows(sides: Mapping[str, Sequence[str]], name: str) -> int:
    lengths = {language: len(column) for language, column in sides.items()}
    if not lengths or len(set(lengths.values())) > 1:
        got = ", ".join(f"{count} in {language}" for language, count in lengths.items()) or "no language"
        raise ValueError(f"{name} must be the same in every language, row by row: got {got}; align them first.")
    return next(iter(lengths.values()))


def _numbers(given: Collection[int], size: int, query: int) -> np.ndarray:
    numbers = np.asarray(list(given), np.int64)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= size or len(np.unique(numbers)) < len(numbers)):
        raise ValueError(
            f"query {query}: passages must be different numbers from 0 to {size - 1}: got {numbered(numbers.tolist())}."
        )
    return numbers


def _capped(pool: np.ndarray, right: np.ndarray, most: int | None, rng: np.random.Generator) -> np.ndarray:
    if most is None or len(pool) <= most:
        return pool
    kept = np.isin(pool, right)
    others = np.flatnonzero(~kept)
    kept[rng.choice(others, size=min(len(others), max(0, most - int(kept.sum()))), replace=False)] = True
    return pool[kept]  # in the old order, which tells nothing of relevance


def _settle(empty: list[int], unanswered: list[int], asked: int, without_relevant: WithoutRelevant) -> None:
    if not empty and not unanswered:
        return
    told = (
        f"{len(empty)} of {asked} queries have no candidates, {len(unanswered)} no relevant one "
        f"(rows {numbered(sorted(empty + unanswered))})"
    )
    if without_relevant == "error":
        raise ValueError(f"{told}; pass without_relevant='exclude' to leave them out, or 'keep'.")
    logger.warning("%s: %s", told, "left out" if without_relevant == "exclude" else "kept")
