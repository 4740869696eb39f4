"""Parallel text as test pools: which of these sentences is the translation?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.reranking.candidate_pool import CandidatePool, CandidatePools
from st_xling.data.reranking.candidate_pools import candidate_pools
from st_xling.data.reranking.language_pairs import by_language_pair
from st_xling.data.reranking.same_text import same_text_classes

if TYPE_CHECKING:
    from datasets import Dataset


def parallel_pools(
    data: Mapping[str, Dataset], *, queries: int = 500, candidates: int = 100, seed: int = 0
) -> CandidatePools:
    """A development set for XPI, so that its best checkpoint can be chosen by acc@1 too.

    A sentence of either side, a coin tossed which, is asked for its translation among sentences of the *other*
    language: itself is never a candidate. Rows that share a text on either side count as one meaning. This is ours;
    the paper does not say what it tests XPI on.

    Args:
        data: Name → parallel text, as :func:`~st_xling.data.reranking.language_pairs.by_language_pair` takes it.
        queries: At most so many, in even shares for each pair of languages.
        candidates: Sentences to choose from, at most; drawn for each query, with the translation.
        seed: Of all draws.
    Raises:
        ValueError: As :func:`~st_xling.data.reranking.language_pairs.by_language_pair`; no query or no candidates.
    """
    if queries < 1 or candidates < 1:
        raise ValueError(f"queries and candidates must be 1 or more: got {queries} and {candidates}.")
    groups = by_language_pair(data)
    pools: list[CandidatePool] = []
    for number, (codes, sides) in enumerate(groups.items()):
        rng = np.random.default_rng([seed, number])
        rows = np.unique(same_text_classes(sides), return_index=True)[1]
        asked = rng.permutation(len(rows))[: max(1, queries // len(groups))]
        heads = rng.random(len(asked)) < 0.5
        texts = {code: [column[row] for row in rows.tolist()] for code, column in zip(codes, sides)}
        for (source, target), chosen in ((codes, asked[heads]), (codes[::-1], asked[~heads])):
            pools += candidate_pools(
                {source: [texts[source][row] for row in chosen.tolist()]},
                {target: texts[target]},
                [[row] for row in chosen.tolist()],
                query_ids=[f"{source}-{target}/{row}" for row in rows[chosen].tolist()],
                passage_ids=list(map(str, rows.tolist())),
                max_candidates=candidates,
                seed=seed,
            )
    names = ",".join("-".join(codes) for codes in groups)
    return CandidatePools(
        tuple(pools), signature=f"translations:{names}|queries:{len(pools)}|candidates:{candidates}|seed:{seed}"
    )
