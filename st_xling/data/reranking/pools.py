"""Queries with candidate passages in several languages: what re-ranking is tested on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from st_xling.data.pairs import Sample
from st_xling.data.reranking.pairs import AlignedPairs, known_languages, listed_rows, same_text_classes
from st_xling.data.retrieval import read_retrieval_set, sample_queries

logger = logging.getLogger(__name__)

WithoutRelevant = Literal["exclude", "keep", "error"]


@dataclass(frozen=True)
class CandidatePool:
    """One query and what is to be ranked for it.

    Args:
        query: The query.
        query_language: Its code.
        passages: The candidates. *Shape:* ``(candidates,)``
        passage_languages: Their codes. *Shape:* ``(candidates,)``
        labels: 1 where the candidate is relevant, else 0. *Shape:* ``(candidates,)``
        query_id: Name of the query; the same in every language.
        passage_ids: Names of the candidates, the same in every language; by default numbers. *Shape:* ``(candidates,)``
    """

    query: str
    query_language: str
    passages: Sequence[str]
    passage_languages: Sequence[str]
    labels: Sequence[int]
    query_id: str = ""
    passage_ids: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not len(self.passage_ids):
            object.__setattr__(self, "passage_ids", tuple(map(str, range(len(self.passages)))))


@dataclass(frozen=True)
class CandidatePools(Sequence[CandidatePool]):
    """Pools, how many queries had nothing to find, and how the pools were made.

    Args:
        pools: The pools themselves; this object is a sequence of them.
        without_candidates: Queries that have no candidate at all.
        without_relevant: Queries that have candidates, but no relevant one.
        signature: What figures on these pools depend on, ``key:value|key:value``.
    """

    pools: tuple[CandidatePool, ...]
    without_candidates: int = 0
    without_relevant: int = 0
    signature: str = ""

    def __len__(self) -> int:
        return len(self.pools)

    def __getitem__(self, place: Any) -> Any:
        return self.pools[place]


def candidate_pools(
    queries: Mapping[str, Sequence[str]],
    passages: Mapping[str, Sequence[str]],
    relevant: Sequence[Collection[int]],
    *,
    candidates: Sequence[Sequence[int]] | None = None,
    query_languages: Iterable[str] | None = None,
    passage_languages: Iterable[str] | None = None,
    query_ids: Sequence[str] | None = None,
    passage_ids: Sequence[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """Make the paper's test sets: each query in a drawn language, its candidates split evenly over the languages.

    For two languages exactly half of the candidates are in the one and half in the other, drawn for each query anew; of
    an odd number, or over more languages, every language has floor or ceil of an even share, chosen by a draw. The
    language of a passage has nothing to do with its relevance. Pools share the passages' strings.

    Args:
        queries: Language → queries, aligned. *Shape:* ``(queries,)`` each
        passages: Language → passages, aligned; of the same languages or others. *Shape:* ``(passages,)`` each
        relevant: Of each query, the numbers of the relevant passages. *Shape:* ``(queries,)``
        candidates: Of each query, the numbers of the passages to rank, once each; by default all are candidates for all
            queries. A relevant passage that is no candidate cannot be found. *Shape:* ``(queries,)``
        query_languages: To draw from; by default all of ``queries``.
        passage_languages: To share the candidates among; by default all of ``passages``.
        query_ids: Names; by default numbers. *Shape:* ``(queries,)``
        passage_ids: The same. *Shape:* ``(passages,)``
        max_candidates: Draw this many candidates for each query where it has more. Relevant ones always stay, so the
            task gets easier; see the signature (``candidates:100+relevant``).
        without_relevant: What becomes of queries without a candidate, or without a relevant one: ``"exclude"``,
            ``"keep"``, ``"error"``. A warning counts them.
        seed: Of all draws.
    Raises:
        ValueError: If there are unanswered queries and these are an error.
    Source:
        IEEE Access 2020, section V-A-2.
    """
    n_queries, n_passages = (len(next(iter(columns.values()))) for columns in (queries, passages))
    rng = np.random.default_rng(seed)
    query_codes = known_languages(query_languages or queries, tuple(queries))
    passage_codes = known_languages(passage_languages or passages, tuple(passages))
    texts = {code: tuple(passages[code]) for code in passage_codes}
    ids = tuple(passage_ids if passage_ids is not None else map(str, range(n_passages)))
    pools: list[CandidatePool] = []
    empty: list[int] = []
    unanswered: list[int] = []
    for query in range(n_queries):
        pool = np.arange(n_passages) if candidates is None else np.asarray(candidates[query], np.int64)
        right = np.intersect1d(np.asarray(list(relevant[query]), np.int64), pool)
        # The order of these draws is what makes the pools of a seed: language, capped candidates, their languages.
        language = query_codes[rng.integers(len(query_codes))]
        if max_candidates is not None and len(pool) > max_candidates:
            chosen = np.isin(pool, right)
            others = np.flatnonzero(~chosen)
            count = min(len(others), max(0, max_candidates - int(chosen.sum())))
            chosen[rng.choice(others, size=count, replace=False)] = True
            pool = pool[chosen]  # in the old order, which tells nothing of relevance
        # Languages by turns from a drawn one on, then shuffled: even shares, and a draw decides who has one more.
        turns = rng.permutation((np.arange(len(pool)) + rng.integers(len(texts))) % len(texts))
        (empty if not len(pool) else unanswered if not len(right) else []).append(query)
        if not len(right) and without_relevant == "exclude":
            continue
        languages = tuple(passage_codes[place] for place in turns.tolist())
        whole = candidates is None and len(pool) == n_passages  # the whole set is not copied
        if whole and len(passage_codes) == 1:
            shown = texts[passage_codes[0]]
        else:
            shown = tuple(texts[code][row] for code, row in zip(languages, pool.tolist()))
        pools.append(
            CandidatePool(
                queries[language][query],
                language,
                shown,
                languages,
                tuple(np.isin(pool, right).astype(int).tolist()),
                str(query if query_ids is None else query_ids[query]),
                ids if whole else tuple(ids[row] for row in pool.tolist()),
            )
        )
    if empty or unanswered:
        counts = (
            f"{len(empty)} of {n_queries} queries have no candidates, {len(unanswered)} no relevant one "
            f"(rows {listed_rows(sorted(empty + unanswered))})"
        )
        if without_relevant == "error":
            raise ValueError(f"{counts}; pass without_relevant='exclude' to leave them out, or 'keep'.")
        logger.warning("%s: %s", counts, "skipped" if without_relevant == "exclude" else "kept")
    origin = "own" if candidates is not None else "all"
    origin = origin if max_candidates is None else f"{max_candidates}+relevant"
    signature = (
        f"queries:{','.join(query_codes)}{'-sampled' * (len(query_codes) > 1)}"
        f"|passages:{','.join(passage_codes)}{'-even' * (len(passage_codes) > 1)}"
        f"|candidates:{origin}|seed:{seed}|without_relevant:{without_relevant}"
    )
    return CandidatePools(tuple(pools), len(empty), len(unanswered), signature)


def pools_of_pairs(
    pairs: AlignedPairs,
    *,
    candidates: Literal["own", "all"] = "own",
    **options: Any,
) -> CandidatePools:
    """Make pools of labeled pairs, as of InsuranceQA: the rows of one query are its pool.

    Rows belong to one query, and show one passage, if their texts have the same leak key in any language. A passage
    that a query has twice is one candidate, relevant if either row is.

    Args:
        pairs: Query-passage pairs with labels.
        candidates: Of a query: ``"own"``, the passages of its rows, or ``"all"`` passages of all rows.
        **options: Languages, ``max_candidates``, ``without_relevant`` and ``seed`` of :func:`candidate_pools`.
    """
    of_queries, of_passages = (same_text_classes(list(columns.values())) for columns in (pairs.queries, pairs.passages))
    # Of each query: passage -> label, in the order of the rows.
    own: list[dict[int, int]] = [{} for _ in range(int(of_queries.max(initial=-1)) + 1)]
    for query, passage, label in zip(of_queries.tolist(), of_passages.tolist(), pairs.labels):
        own[query][passage] = max(label, own[query].get(passage, 0))
    queries, passages = (np.unique(classes, return_index=True)[1].tolist() for classes in (of_queries, of_passages))
    return candidate_pools(
        {code: [pairs.queries[code][row] for row in queries] for code in pairs.languages},
        {code: [pairs.passages[code][row] for row in passages] for code in pairs.languages},
        [[passage for passage, label in pool.items() if label] for pool in own],
        candidates=[list(pool) for pool in own] if candidates == "own" else None,
        **options,
    )


def read_retrieval(
    folder: str | Path,
    *,
    language: str,
    split: str = "test",
    query_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    sample: Sample = Sample(),  # noqa: B008
    seed: int = 0,
) -> CandidatePools:
    """Make every passage a candidate for every query, in every language in which the queries are there.

    No language is drawn: a query that is there in three languages makes three pools.

    Args:
        folder: In a layout of :func:`~st_xling.data.retrieval.read_retrieval_set`: BEIR's, with ``queries.xx.jsonl``
            for each language of the queries, Mr.TyDi's or MIRACL's. A passage's title is put before its text.
        language: Language of the passages, which the files do not name.
        split: Of queries and qrels.
        query_languages: To read; by default all that are there, in the order of their names.
        max_candidates: Draw so many passages for each query where there are more; the relevant ones always stay. The
            signature shows it: ``candidates:100+relevant``.
        without_relevant: What becomes of queries without a relevant passage: ``"exclude"``, ``"keep"`` or ``"error"``.
        sample: Of the queries.
        seed: Of the candidates' draw.
    Raises:
        FileNotFoundError: The folder or one of its files is not there.
        ValueError: Faulty lines; an id that comes twice; a relevant passage that is not in the corpus.
    """
    read = read_retrieval_set(
        folder, language=language, split=split, query_languages=query_languages, keep_unanswered=True
    )
    read = sample_queries(read, sample, str(folder))
    passages, ids = list(read.passages), list(read.passages.ids)
    pools: list[CandidatePool] = []
    empty = unanswered = 0
    signature = ""
    for code, queries in read.queries.items():
        of_language = candidate_pools(
            {code: list(queries.values())},
            {language: passages},
            [sorted(read.passages.ids[name] for name in read.relevant.get(query, ())) for query in queries],
            query_ids=list(queries),
            passage_ids=ids,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
        pools += of_language
        empty, unanswered = empty + of_language.without_candidates, unanswered + of_language.without_relevant
        signature = of_language.signature
    signature = f"queries:{','.join(read.queries)}|{signature.partition('|')[2]}"
    return CandidatePools(tuple(pools), empty, unanswered, signature)


def pool_texts(pools: Iterable[CandidatePool]) -> dict[str, list[str]]:
    """Return ``queries`` and ``relevant passages`` of pools, each text once; a kind of which there is none is missing.

    Candidates that are not relevant are ignored: sets to train and to test on may share them by right.
    """
    queries: dict[str, None] = {}
    passages: dict[str, None] = {}
    for pool in pools:
        queries[pool.query] = None
        passages |= {passage: None for passage, label in zip(pool.passages, pool.labels) if label}
    texts = {"queries": list(queries), "relevant passages": list(passages)}
    return {kind: column for kind, column in texts.items() if column}
