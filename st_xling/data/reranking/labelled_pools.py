"""Labelled pairs as test pools: the rows of one query are its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from st_xling.data.reranking.aligned import AlignedPairs
from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.candidate_pools import candidate_pools
from st_xling.data.reranking.same_text import same_text_classes


def pools_of_pairs(
    pairs: AlignedPairs,
    *,
    candidates: Literal["own", "all"] = "own",
    query_languages: Sequence[str] | None = None,
    passage_languages: Sequence[str] | None = None,
    **options: Any,
) -> CandidatePools:
    """Pools of labelled pairs, as of InsuranceQA: the rows of one query are its pool.

    Rows belong to one query, and show one passage, if their texts have the same leak key in any language. A passage
    that a query has twice is one candidate, relevant if either row says so.

    Args:
        pairs: Query-passage pairs with labels.
        candidates: Of a query: ``"own"``, the passages of its rows, or ``"all"`` passages of all rows.
        query_languages: To toss among; by default all.
        passage_languages: To share the candidates among; by default all.
        **options: ``max_candidates``, ``without_relevant`` and ``seed`` of :func:`candidate_pools`.
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
        **options,
    )
