"""Retrieval sets, with queries in several languages, as test pools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from st_xling.data.reranking.candidate_pool import CandidatePool, CandidatePools, pools_signature
from st_xling.data.reranking.candidate_pools import WithoutRelevant, candidate_pools
from st_xling.data.retrieval import read_retrieval_set, sample_queries
from st_xling.data.spec_options import Sample


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
    """Every passage a candidate for every query, in every language in which the queries are there.

    Nothing is tossed: a query that is there in three languages makes three pools.

    Args:
        folder: In a layout of :func:`~st_xling.data.retrieval.read_retrieval_set`: BEIR's, with ``queries.xx.jsonl``
            for each language of the queries, Mr.TyDi's or MIRACL's. A passage's title is put before its text.
        language: Of the passages, which the files do not say.
        split: Of queries and qrels.
        query_languages: To read; by default all that are there, in the order of their names.
        max_candidates: Draw so many passages for each query where there are more; the relevant ones always stay. The
            signature says so: ``candidates:100+relevant``.
        without_relevant: What becomes of queries without a relevant passage: ``"exclude"``, ``"keep"`` or ``"error"``.
        sample: Of the queries.
        seed: Of the candidates' draw.
    Raises:
        FileNotFoundError: The folder or one of its files is not there.
        ValueError: Faulty lines; an id that comes twice; a relevant passage that is not in the corpus.
    """
    found = read_retrieval_set(
        folder, language=language, split=split, query_languages=query_languages, keep_unanswered=True
    )
    found = sample_queries(found, sample, str(folder))
    passages, ids = list(found.passages), list(found.passages.ids)
    pools: list[CandidatePool] = []
    empty = unanswered = 0
    for asked, queries in found.queries.items():
        made = candidate_pools(
            {asked: list(queries.values())},
            {language: passages},
            [sorted(found.passages.ids[name] for name in found.relevant.get(query, ())) for query in queries],
            query_ids=list(queries),
            passage_ids=ids,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
        pools += made
        empty, unanswered = empty + made.without_candidates, unanswered + made.without_relevant
    candidates = "all" if max_candidates is None else f"{max_candidates}+relevant"
    signature = pools_signature(list(found.queries), [language], candidates, seed, without_relevant, tossed=False)
    return CandidatePools(tuple(pools), empty, unanswered, signature)
