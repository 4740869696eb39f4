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
        return replace(
            self,
            queries=pick(self.queries, chosen),
            relevant=[self.relevant[row] for row in chosen],
            candidates=None if self.candidates is None else [self.candidates[row] for row in chosen],
        )

    def of_articles(self, numbers: np.ndarray) -> AlignedQuestions:
        """Return the questions and passages of some articles; raise ``ValueError`` if there is no question."""
        assert self.articles is not None
        shown = np.flatnonzero(np.isin(self.articles, numbers)).tolist()
        places = {row: place for place, row in enumerate(shown)}
        questions = [row for row, passages in enumerate(self.relevant) if passages[0] in places]
        if not questions:
            raise ValueError(f"expected articles with questions: got {len(numbers)} articles without any; take more.")
        return replace(
            self.select(questions),
            passages=pick(self.passages, shown),
            relevant=[[places[row] for row in self.relevant[question] if row in places] for question in questions],
            articles=[self.articles[row] for row in shown],
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
            forbidden = [(query, passage) for query, passages in enumerate(self.relevant) for passage in passages]
            met = np.array(forbidden, np.int64).reshape(-1, 2)
            total = len(next(iter(self.passages.values())))
            drawn = draw_apart(np.arange(len(self)), met, total, each=negatives_per_positive, seed=seed)
            rows = [(row, own[0], 1) for row, own in enumerate(self.relevant)]
            rows += [(row, passage, 0) for row, others in enumerate(drawn.tolist()) for passage in others]
        else:
            rng, rows = np.random.default_rng(seed), []
            for row, (truths, pool) in enumerate(zip(self.relevant, self.candidates)):
                right = [passage for passage in pool if passage in truths]
                others = [passage for passage in pool if passage not in truths]
                places = rng.permutation(len(others))[: negatives_per_positive * len(right)].tolist()
                rows += [(row, passage, 1) for passage in right] + [(row, others[place], 0) for place in places]
        queries, passages, labels = map(list, zip(*rows))
        return AlignedPairs(pick(self.queries, queries), pick(self.passages, passages), labels)


def questions_of_pairs(pairs: AlignedPairs) -> AlignedQuestions:
    """Return labeled pairs as questions: the rows of a query are its pool.

    Rows belong to one query, and show one passage, if their texts have the same leak key in any language. A passage
    that a query has twice is one candidate, relevant if either row is. Where most queries have one passage alone,
    which leaves nothing to rank, every passage is a candidate for every query.
    """
    of_queries, of_passages = (same_text_classes(columns.values()) for columns in (pairs.queries, pairs.passages))
    # Of each query: passage → label, in the order of the rows.
    own: list[dict[int, int]] = [{} for _ in range(int(of_queries.max(initial=-1)) + 1)]
    for query, passage, label in zip(of_queries.tolist(), of_passages.tolist(), pairs.labels):
        own[query][passage] = max(label, own[query].get(passage, 0))
    queries, passages = (np.unique(classes, return_index=True)[1].tolist() for classes in (of_queries, of_passages))
    answered = [pool for pool in own if any(pool.values())]
    return AlignedQuestions(
        pick(pairs.queries, queries),
        pick(pairs.passages, passages),
        [[passage for passage, label in pool.items() if label] for pool in own],
        [list(pool) for pool in own] if 2 * sum(len(pool) > 1 for pool in answered) >= len(answered) else None,
    )


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

    def __getitem__(self, place: Any) -> Any:
        return self.pools[place]


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
    query_codes, passage_codes = list(dict.fromkeys(query_languages or data.queries)), list(data.passages)
    if unknown := [code for code in query_codes if code not in data.queries]:
        raise ValueError(f"expected languages out of {', '.join(data.queries)}: got {', '.join(unknown)}.")
    if max_candidates is not None and max_candidates < 1:
        raise ValueError(f"max_candidates must be at least 1: got {max_candidates}; leave it out for all candidates.")
    rng, texts = np.random.default_rng(seed), list(data.passages.values())
    pools: list[CandidatePool] = []
    for query, truths in enumerate(data.relevant):
        pool = np.arange(len(texts[0])) if data.candidates is None else np.asarray(data.candidates[query], np.int64)
        relevant = np.isin(pool, truths)
        # The order of these draws is what makes the pools of a seed: language, capped candidates, their languages.
        language = query_codes[rng.integers(len(query_codes))]
        if max_candidates is not None and len(pool) > max_candidates:
            others = np.flatnonzero(~relevant)
            count = min(len(others), max(0, max_candidates - int(relevant.sum())))
            chosen = relevant.copy()
            chosen[rng.choice(others, size=count, replace=False)] = True
            pool, relevant = pool[chosen], relevant[chosen]  # in the old order, which tells nothing of relevance
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
    origin = "all" if data.candidates is None else "own"
    origin = origin if max_candidates is None else f"{max_candidates}+relevant"
    signature = (
        f"queries:{','.join(query_codes)}{'-sampled' * (len(query_codes) > 1)}"
        f"|passages:{','.join(passage_codes)}{'-even' * (len(passage_codes) > 1)}"
        f"|candidates:{origin}|seed:{seed}|without_relevant:exclude"
    )
    return CandidatePools(tuple(pools), skipped, signature)


def pool_texts(pools: Sequence[CandidatePool]) -> dict[str, list[str]]:
    """Return ``queries`` and ``relevant passages`` of pools, each text once; a kind of which there is none is missing.

    Candidates that are not relevant are ignored: sets to train and to test on may share them by right.
    """
    relevant = (passage for pool in pools for passage, label in zip(pool.passages, pool.labels) if label)
    texts = {"queries": list(dict.fromkeys(pool.query for pool in pools))}
    texts["relevant passages"] = list(dict.fromkeys(relevant))
    return {kind: column for kind, column in texts.items() if column}
