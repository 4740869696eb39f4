"""Test pools as the paper makes them: the query's language tossed, the candidates' languages in even shares."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from st_xling.cross_encoder.aligned import AlignedPairs, numbered
from st_xling.cross_encoder.pools import CandidatePool, CandidatePools, pools_signature
from st_xling.cross_encoder.same_text import same_text_classes

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
    if without_relevant not in get_args(WithoutRelevant):
        raise ValueError(f"without_relevant must be one of {get_args(WithoutRelevant)}: got {without_relevant!r}.")
    if max_candidates is not None and max_candidates < 1:
        raise ValueError(f"max_candidates must be 1 or more: got {max_candidates}; leave it out for all.")
    asked, shown = _rows(queries, "queries"), _rows(passages, "passages")
    _check_length("relevant", relevant, asked)
    _check_length("candidates", candidates, asked)
    _check_length("query_ids", query_ids, asked)
    _check_length("passage_ids", passage_ids, shown)
    rng = np.random.default_rng(seed)
    texts, codes = [tuple(column) for column in passages.values()], tuple(passages)
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
        spoken = rng.permutation((np.arange(len(pool)) + rng.integers(len(codes))) % len(codes)).tolist()
        (empty if not len(pool) else unanswered if not len(right) else []).append(query)
        if not len(right) and without_relevant == "exclude":
            continue
        rows, whole = pool.tolist(), candidates is None and len(pool) == shown
        pools.append(
            CandidatePool(
                queries[language][query],
                language,
                texts[0] if whole and len(codes) == 1 else tuple(texts[code][row] for code, row in zip(spoken, rows)),
                tuple(codes[code] for code in spoken),
                tuple(np.isin(pool, right).astype(int).tolist()),
                str(query if query_ids is None else query_ids[query]),
                ids if whole else tuple(ids[row] for row in rows),
            )
        )
    _settle(empty, unanswered, asked, without_relevant)
    drawn = "own" if candidates is not None else "all"
    return CandidatePools(
        tuple(pools),
        len(empty),
        len(unanswered),
        pools_signature(
            languages, codes, drawn if max_candidates is None else f"{max_candidates}+relevant", seed, without_relevant
        ),
    )


def pools_of_pairs(
    pairs: AlignedPairs,
    *,
    candidates: Literal["own", "all"] = "own",
    query_languages: Sequence[str] | None = None,
    passage_languages: Sequence[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """Pools of labelled pairs, as of InsuranceQA: the rows of one query are its pool.

    Rows belong to one query, and show one passage, if their texts have the same leak key in any language. A passage
    that a query has twice is one candidate, relevant if either row says so.

    Args:
        pairs: Query-passage pairs with labels.
        candidates: Of a query: ``"own"``, the passages of its rows, or ``"all"`` passages of all rows.
        query_languages: To toss among; by default all.
        passage_languages: To share the candidates among; by default all.
        max_candidates, without_relevant, seed: As :func:`candidate_pools`.
    """
    if candidates not in ("own", "all"):
        raise ValueError(f"candidates must be 'own' or 'all': got {candidates!r}.")
    asked, shown = (same_text_classes(list(side.values())) for side in (pairs.queries, pairs.passages))
    own: list[dict[int, int]] = [{} for _ in range(int(asked.max(initial=-1)) + 1)]
    for query, passage, label in zip(asked.tolist(), shown.tolist(), pairs.labels):
        own[query][passage] = max(label, own[query].get(passage, 0))
    queries, passages = (np.unique(classes, return_index=True)[1].tolist() for classes in (asked, shown))
    return candidate_pools(
        {code: [pairs.queries[code][row] for row in queries] for code in query_languages or pairs.languages},
        {code: [pairs.passages[code][row] for row in passages] for code in passage_languages or pairs.languages},
        [[passage for passage, label in pool.items() if label] for pool in own],
        candidates=[list(pool) for pool in own] if candidates == "own" else None,
        max_candidates=max_candidates,
        without_relevant=without_relevant,
        seed=seed,
    )


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
