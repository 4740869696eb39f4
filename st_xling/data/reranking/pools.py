"""Aligned questions as pairs to train on, and as queries with candidate passages to be tested on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from st_xling.data.reranking.pairs import AlignedPairs, draw_apart, pick, same_text_classes

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AlignedQuestions:
    """Questions and the passages that answer them; row ``i`` has the same meaning in every language.

    Attributes:
        queries: Language → questions. *Shape:* ``(questions,)`` each
        passages: Language → passages. *Shape:* ``(passages,)`` each
        relevant: Numbers of the passages that answer each question, its own first. *Shape:* ``(questions,)``
        candidates: Numbers of the passages in each question's own pool, which may lack relevant ones; ``None``: all
            passages for every question. *Shape:* ``(questions,)``
        articles: Number of each passage's article, by which the questions are divided; ``None``: question by question.
            *Shape:* ``(passages,)``
    """

    queries: Mapping[str, Sequence[str]]
    passages: Mapping[str, Sequence[str]]
    relevant: Sequence[Sequence[int]]
    candidates: Sequence[Sequence[int]] | None = None
    articles: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.relevant)

    def select(self, rows: Iterable[int]) -> AlignedQuestions:
        """Return the questions of these numbers, in this order; every passage stays, as a candidate."""
        chosen = list(rows)
        candidates = None
        if self.candidates is not None:
            candidates = [self.candidates[row] for row in chosen]
        return replace(
            self,
            queries=pick(self.queries, chosen),
            relevant=[self.relevant[row] for row in chosen],
            candidates=candidates,
        )

    def of_articles(self, numbers: np.ndarray) -> AlignedQuestions:
        """Return the questions and passages of some articles; raise ``ValueError`` if there is no question."""
        assert self.articles is not None
        passages = np.flatnonzero(np.isin(self.articles, numbers)).tolist()
        new_numbers = {passage: number for number, passage in enumerate(passages)}
        questions = [row for row, relevant in enumerate(self.relevant) if relevant[0] in new_numbers]
        if not questions:
            raise ValueError(f"expected articles with questions: got {len(numbers)} articles without any; take more.")
        relevant_passages = []
        for row in questions:
            relevant_passages.append([new_numbers[passage] for passage in self.relevant[row] if passage in new_numbers])
        return replace(
            self.select(questions),
            passages=pick(self.passages, passages),
            relevant=relevant_passages,
            articles=[self.articles[passage] for passage in passages],
        )

    def aligned_pairs(self, *, negatives_per_positive: int = 1, seed: int = 0) -> AlignedPairs:
        """Make pairs to train on: questions with relevant passages, label 1, and with drawn ones, label 0.

        Without pools of their own, the questions come with their own passage first, then with passages of all that do
        not answer them. In its own pool a question comes with each relevant passage, then with others, as far as the
        pool reaches; one whose pool has no relevant passage is skipped, as the paper does.

        Args:
            negatives_per_positive: Drawn for each relevant passage.
            seed: Seed of the draw.

        Raises:
            ValueError: If there are too few other passages.
        """
        if self.candidates is None:
            rows = self._rows_from_all_passages(negatives_per_positive, seed)
        else:
            rows = self._rows_from_pools(self.candidates, negatives_per_positive, seed)
        queries = [query for query, _, _ in rows]
        passages = [passage for _, passage, _ in rows]
        labels = [label for _, _, label in rows]
        return AlignedPairs(pick(self.queries, queries), pick(self.passages, passages), labels)

    def _rows_from_all_passages(self, negatives_per_positive: int, seed: int) -> list[tuple[int, int, int]]:
        """Return query, passage and label of each pair to train on, with negatives drawn among all passages."""
        forbidden = []
        for query, relevant in enumerate(self.relevant):
            forbidden += [(query, passage) for passage in relevant]
        total = len(next(iter(self.passages.values())))
        drawn = draw_apart(
            np.arange(len(self)),
            np.array(forbidden, np.int64).reshape(-1, 2),
            total,
            count=negatives_per_positive,
            seed=seed,
        )
        rows = [(query, relevant[0], 1) for query, relevant in enumerate(self.relevant)]
        for query, negatives in enumerate(drawn.tolist()):
            rows += [(query, passage, 0) for passage in negatives]
        return rows

    def _rows_from_pools(
        self, pools: Sequence[Sequence[int]], negatives_per_positive: int, seed: int
    ) -> list[tuple[int, int, int]]:
        """Return query, passage and label of each pair to train on, with negatives drawn in the query's own pool."""
        rng = np.random.default_rng(seed)
        rows = []
        for query, (relevant, pool) in enumerate(zip(self.relevant, pools)):
            positives = [passage for passage in pool if passage in relevant]
            others = [passage for passage in pool if passage not in relevant]
            chosen = rng.permutation(len(others))[: negatives_per_positive * len(positives)].tolist()
            rows += [(query, passage, 1) for passage in positives]
            rows += [(query, others[index], 0) for index in chosen]
        return rows


def questions_of_pairs(pairs: AlignedPairs) -> AlignedQuestions:
    """Return labeled pairs as questions: the rows of a query are its pool.

    Rows belong to one query, and show one passage, if their texts have the same leak key in any language. A passage
    that a query has twice is one candidate, relevant if either row is. Where most queries have one passage alone,
    which leaves nothing to rank, every passage is a candidate for every query.
    """
    query_classes = same_text_classes(pairs.queries.values())
    passage_classes = same_text_classes(pairs.passages.values())
    # For each query: passage → label, in the order of the rows.
    pools: list[dict[int, int]] = [{} for _ in range(int(query_classes.max(initial=-1)) + 1)]
    for query, passage, label in zip(query_classes.tolist(), passage_classes.tolist(), pairs.labels):
        pools[query][passage] = max(label, pools[query].get(passage, 0))
    relevant = []
    for pool in pools:
        relevant.append([passage for passage, label in pool.items() if label])

    answered = [pool for pool in pools if any(pool.values())]
    with_choice = [pool for pool in answered if len(pool) > 1]
    candidates = None
    if 2 * len(with_choice) >= len(answered):
        candidates = [list(pool) for pool in pools]
    query_rows = np.unique(query_classes, return_index=True)[1].tolist()
    passage_rows = np.unique(passage_classes, return_index=True)[1].tolist()
    return AlignedQuestions(pick(pairs.queries, query_rows), pick(pairs.passages, passage_rows), relevant, candidates)


@dataclass(frozen=True)
class CandidatePool:
    """One query and what is to be ranked for it.

    Args:
        query: The query.
        query_language: Its code.
        passages: The candidates. *Shape:* ``(candidates,)``
        passage_languages: Their codes. *Shape:* ``(candidates,)``
        labels: 1 where the candidate is relevant, else 0. *Shape:* ``(candidates,)``
    """

    query: str
    query_language: str
    passages: Sequence[str]
    passage_languages: Sequence[str]
    labels: Sequence[int]


@dataclass(frozen=True)
class CandidatePools(Sequence[CandidatePool]):
    """Pools, how many queries had nothing to find, and how the pools were made.

    Args:
        pools: The pools themselves; this object is a sequence of them.
        without_relevant: Queries that were skipped, as they have no relevant candidate.
        signature: What figures on these pools depend on, ``key:value|key:value``.
    """

    pools: tuple[CandidatePool, ...]
    without_relevant: int = 0
    signature: str = ""

    def __len__(self) -> int:
        return len(self.pools)

    def __getitem__(self, index: Any) -> Any:
        return self.pools[index]


def candidate_pools(
    data: AlignedQuestions,
    *,
    query_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    seed: int = 0,
) -> CandidatePools:
    """Make the paper's test sets: each query in a drawn language, its candidates split evenly over the languages.

    For two languages exactly half of the candidates are in the one and half in the other, drawn for each query anew; of
    an odd number, or over more languages, every language has floor or ceil of an even share, chosen by a draw. The
    language of a passage has nothing to do with its relevance. Queries without a relevant candidate are skipped; a
    warning counts them.

    Args:
        data: Questions, passages, and which of them belong together.
        query_languages: Languages to draw from; by default all of ``data.queries``.
        max_candidates: Draw this many candidates for each query where it has more. Relevant ones always stay, so the
            task gets easier; see the signature (``candidates:100+relevant``).
        seed: Seed of all draws.

    Raises:
        ValueError: For a language in which there are no queries, or ``max_candidates`` below 1, which would leave the
            relevant ones alone.
    Source:
        IEEE Access 2020, section V-A-2.
    """
    query_codes = list(dict.fromkeys(query_languages or data.queries))
    passage_codes = list(data.passages)
    if unknown := [code for code in query_codes if code not in data.queries]:
        raise ValueError(f"expected languages out of {', '.join(data.queries)}: got {', '.join(unknown)}.")
    if max_candidates is not None and max_candidates < 1:
        raise ValueError(f"max_candidates must be at least 1: got {max_candidates}; leave it out for all candidates.")
    rng = np.random.default_rng(seed)
    texts = list(data.passages.values())
    pools: list[CandidatePool] = []
    for query, relevant_passages in enumerate(data.relevant):
        if data.candidates is None:
            pool = np.arange(len(texts[0]))
        else:
            pool = np.asarray(data.candidates[query], np.int64)
        relevant = np.isin(pool, relevant_passages)
        # The order of these draws is what makes the pools of a seed: language, capped candidates, their languages.
        language = query_codes[rng.integers(len(query_codes))]
        if max_candidates is not None and len(pool) > max_candidates:
            others = np.flatnonzero(~relevant)
            count = min(len(others), max(0, max_candidates - int(relevant.sum())))
            chosen = relevant.copy()
            chosen[rng.choice(others, size=count, replace=False)] = True
            # In the old order, which tells nothing of relevance.
            pool = pool[chosen]
            relevant = relevant[chosen]
        # Languages by turns from a drawn one on, then shuffled: even shares, and a draw decides who has one more.
        turns = rng.permutation((np.arange(len(pool)) + rng.integers(len(texts))) % len(texts)).tolist()
        if relevant.any():
            passages = [texts[turn][row] for turn, row in zip(turns, pool.tolist())]
            languages = [passage_codes[turn] for turn in turns]
            labels = relevant.astype(int).tolist()
            pools.append(CandidatePool(data.queries[language][query], language, passages, languages, labels))
    skipped = len(data) - len(pools)
    if skipped:
        logger.warning("%d of %d queries have no relevant candidate: skipped", skipped, len(data))
    if max_candidates is not None:
        candidates = f"{max_candidates}+relevant"
    else:
        candidates = "all" if data.candidates is None else "own"
    sampled = "-sampled" if len(query_codes) > 1 else ""
    even = "-even" if len(passage_codes) > 1 else ""
    signature = (
        f"queries:{','.join(query_codes)}{sampled}|passages:{','.join(passage_codes)}{even}"
        f"|candidates:{candidates}|seed:{seed}|without_relevant:exclude"
    )
    return CandidatePools(tuple(pools), skipped, signature)


def pool_texts(pools: Sequence[CandidatePool]) -> dict[str, list[str]]:
    """Return ``queries`` and ``relevant passages`` of pools, each text once; a kind of which there is none is missing.

    Candidates that are not relevant are ignored: sets to train and to test on may share them by right.
    """
    queries = dict.fromkeys(pool.query for pool in pools)
    relevant: dict[str, None] = {}
    for pool in pools:
        relevant.update((passage, None) for passage, label in zip(pool.passages, pool.labels) if label)
    texts = {"queries": list(queries), "relevant passages": list(relevant)}
    return {kind: column for kind, column in texts.items() if column}
