"""Question answering in several languages as re-ranking: every paragraph a candidate for every question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from st_xling.cross_encoder.aligned import AlignedPairs, known_languages
from st_xling.cross_encoder.candidate_pools import WithoutRelevant, candidate_pools
from st_xling.cross_encoder.draw_apart import draw_apart
from st_xling.cross_encoder.pools import CandidatePools
from st_xling.cross_encoder.same_text import same_text_classes
from st_xling.cross_encoder.shares import share_counts

SHARES: Mapping[str, float] = MappingProxyType({"train": 0.7, "dev": 0.1, "test": 0.2})
"""Of the articles, where nothing else is said."""


@dataclass(frozen=True)
class QuestionAnswering:
    """Questions and paragraphs, each in every language; row ``i`` says the same in each.

    Attributes:
        questions: Language → questions. *Shape:* ``(questions,)`` each
        passages: Language → paragraphs, no two alike. *Shape:* ``(passages,)`` each
        question_ids: *Shape:* ``(questions,)``
        question_passages: Number of the paragraph that holds the answer. *Shape:* ``(questions,)``
        passage_ids: Article and number in it, ``Super_Bowl_50/0``. *Shape:* ``(passages,)``
        passage_articles: Number of each paragraph's article. *Shape:* ``(passages,)``
        articles: Titles; ``article 7`` where there is none.
        faults: What was left out, and how often, as ``"zh: answer not in its paragraph"``.
    """

    questions: Mapping[str, Sequence[str]]
    passages: Mapping[str, Sequence[str]]
    question_ids: Sequence[str]
    question_passages: Sequence[int]
    passage_ids: Sequence[str]
    passage_articles: Sequence[int]
    articles: Sequence[str]
    faults: Mapping[str, int] = field(default_factory=dict)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes, in the order of ``questions``."""
        return tuple(self.questions)

    def split(self, shares: Mapping[str, float] = SHARES, *, seed: int = 0) -> dict[str, QuestionAnswering]:
        """Cut by article, so that no paragraph, nor its neighbour, is on two sides.

        Args:
            shares: Name → share of the articles; they sum to 1. Every part gets an article at least. The last parts are
                dealt first: a test share is the same articles, but for rounding, however the rest is cut.
            seed: Of the shuffle.
        Raises:
            ValueError: Shares that do not sum to 1; fewer articles than parts.
        """
        names = list(shares)[::-1]
        counts = share_counts(len(self.articles), [shares[name] for name in names])
        order = np.random.default_rng(seed).permutation(len(self.articles))
        parts = dict(zip(names, np.split(order, np.cumsum(counts)[:-1])))
        return {name: self.only_articles(parts[name].tolist()) for name in shares}

    def split_by_title(
        self, titles: Mapping[str, Iterable[str]], *, rest: str | None = "train"
    ) -> dict[str, QuestionAnswering]:
        """Cut by lists of titles; the articles on no list go to ``rest``, or nowhere if it is ``None``.

        Raises:
            ValueError: A title that is not there, or is on two lists; a part without articles.
        """
        places = {title: number for number, title in enumerate(self.articles)}
        parts = {name: list(dict.fromkeys(listed)) for name, listed in titles.items()}
        taken = [title for listed in parts.values() for title in listed]
        unknown = [title for title in taken if title not in places]
        twice = sorted({title for title in taken if taken.count(title) > 1})
        if unknown or twice or rest in parts:
            raise ValueError(
                f"expected titles of this set, each on one list: got unknown {unknown[:5]}, on two lists {twice[:5]}"
                + (f", and a list for the rest, {rest!r}" if rest in parts else "")
            )
        if rest is not None:
            parts = {rest: [title for title in self.articles if title not in set(taken)], **parts}
        return {name: self.only_articles([places[title] for title in listed]) for name, listed in parts.items()}

    def only_articles(self, numbers: Iterable[int]) -> QuestionAnswering:
        """The questions and paragraphs of some articles; a ``ValueError`` if there is no question among them."""
        chosen = sorted(set(numbers))
        articles = {article: place for place, article in enumerate(chosen)}
        shown = [row for row, article in enumerate(self.passage_articles) if article in articles]
        places = {row: place for place, row in enumerate(shown)}
        asked = [row for row, passage in enumerate(self.question_passages) if passage in places]
        if not asked:
            raise ValueError(f"expected articles with questions: got {len(chosen)} articles without any; take more.")
        return replace(
            self,
            questions={code: [texts[row] for row in asked] for code, texts in self.questions.items()},
            passages={code: [texts[row] for row in shown] for code, texts in self.passages.items()},
            question_ids=[self.question_ids[row] for row in asked],
            question_passages=[places[self.question_passages[row]] for row in asked],
            passage_ids=[self.passage_ids[row] for row in shown],
            passage_articles=[articles[self.passage_articles[row]] for row in shown],
            articles=[self.articles[number] for number in chosen],
        )

    def relevant(self) -> list[list[int]]:
        """The relevant paragraphs of each question: its own, and those of questions that read the same."""
        classes = same_text_classes(list(self.questions.values())).tolist()
        of_class: dict[int, set[int]] = {}
        for asked, passage in zip(classes, self.question_passages):
            of_class.setdefault(asked, set()).add(passage)
        return [sorted(of_class[asked]) for asked in classes]

    def aligned_pairs(self, *, negatives_per_positive: int = 1, hard_negatives: int = 0, seed: int = 0) -> AlignedPairs:
        """Pairs to train on: each question with its own paragraph, label 1, then with drawn ones, label 0.

        Args:
            negatives_per_positive: Paragraphs of this set that do not answer the question; also those that no question
                is about.
            hard_negatives: How many of them come from the same article, as far as it has so many.
            seed: Of the draw.
        Raises:
            ValueError: Too few other paragraphs.
        """
        asked = np.arange(len(self.question_ids))
        own = np.asarray(self.question_passages)
        articles = np.asarray(self.passage_articles)
        forbidden = [(query, passage) for query, passages in enumerate(self.relevant()) for passage in passages]
        drawn = draw_apart(
            asked,
            np.array(forbidden, np.int64).reshape(-1, 2),
            len(self.passage_ids),
            each=negatives_per_positive,
            hard=hard_negatives,
            groups=articles,
            own_groups=articles[own],
            seed=seed,
        )
        queries = np.concatenate([asked, np.repeat(asked, negatives_per_positive)]).tolist()
        passages = np.concatenate([own, drawn.ravel()]).tolist()
        return AlignedPairs(
            {code: [texts[row] for row in queries] for code, texts in self.questions.items()},
            {code: [texts[row] for row in passages] for code, texts in self.passages.items()},
            [1] * len(asked) + [0] * drawn.size,
        )

    def pools(
        self,
        *,
        query_languages: Iterable[str] | None = None,
        passage_languages: Iterable[str] | None = None,
        max_candidates: int | None = None,
        without_relevant: WithoutRelevant = "exclude",
        seed: int = 0,
    ) -> CandidatePools:
        """Pools to test on: all paragraphs of this set for each question.

        Args:
            query_languages: To toss among; by default all.
            passage_languages: To share the candidates among; by default all.
            max_candidates, without_relevant, seed: As :func:`~st_xling.cross_encoder.candidate_pools.candidate_pools`.
        """
        asked = known_languages(query_languages or self.languages, self.languages)
        shown = known_languages(passage_languages or self.languages, self.languages)
        return candidate_pools(
            {code: self.questions[code] for code in asked},
            {code: self.passages[code] for code in shown},
            self.relevant(),
            query_ids=self.question_ids,
            passage_ids=self.passage_ids,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
