"""What files of aligned pairs hold, cut into parts and made into pools, whichever of the forms it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from st_xling.data.reranking.aligned import AlignedPairs, known_languages
from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.labelled_pools import pools_of_pairs
from st_xling.data.reranking.pair_forms import Pairs
from st_xling.data.reranking.question_answering import QuestionAnswering
from st_xling.data.reranking.same_text import same_text_classes
from st_xling.data.reranking.shares import share_counts


def cut_pairs(data: Pairs, dev_share: float, test_share: float, seed: int) -> Mapping[str, Pairs]:
    """Training, development and test part, by article or by query; those of a share above 0.

    Args:
        data: What the files hold.
        dev_share: Of the articles, or of the queries that read alike in no language.
        test_share: The same; dealt first, so that it stays what it is however the rest is cut.
        seed: Of the shuffle.
    Raises:
        ValueError: Shares below 0, or that leave nothing to train on; fewer articles or queries than parts.
    """
    shares = {"train": 1 - dev_share - test_share, "dev": dev_share, "test": test_share}
    if min(shares.values()) < 0 or shares["train"] < 1e-9:
        raise ValueError(
            f"dev_share and test_share must be 0 or more and leave something: got {dev_share} and {test_share}."
        )
    shares = {name: share for name, share in shares.items() if share > 0}
    if isinstance(data, QuestionAnswering):
        return data.split(shares, seed=seed)
    classes = same_text_classes(list(data.queries.values()))
    names = list(shares)[::-1]
    counts = share_counts(len(np.unique(classes)), [shares[name] for name in names])
    order = np.random.default_rng(seed).permutation(sum(counts))
    dealt = dict(zip(names, np.split(order, np.cumsum(counts)[:-1])))
    return {name: data.select(np.flatnonzero(np.isin(classes, dealt[name]))) for name in shares}


def pools_of(
    data: Pairs,
    *,
    query_languages: Iterable[str] | None = None,
    passage_languages: Iterable[str] | None = None,
    **options: Any,
) -> CandidatePools:
    """Pools of all that there is.

    Args:
        data: What the files hold, or a part of it.
        query_languages: To toss among; by default all.
        passage_languages: To share the candidates among; by default all.
        **options: ``max_candidates``, ``without_relevant`` and ``seed`` of
            :func:`~st_xling.data.reranking.candidate_pools.candidate_pools`.
    """
    for name, wanted in (("query_languages", query_languages), ("passage_languages", passage_languages)):
        options[name] = None if wanted is None else known_languages(wanted, data.languages)
    if not isinstance(data, AlignedPairs):
        return data.pools(**options)
    pools = pools_of_pairs(data, candidates="own", **options)
    # Rows that are no candidate lists (one passage a query) leave nothing to rank: then every passage is a candidate.
    if 2 * sum(len(pool.passages) > 1 for pool in pools) < len(pools):
        pools = pools_of_pairs(data, candidates="all", **options)
    return pools
