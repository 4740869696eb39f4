"""Questions and paragraphs in several languages, cut by article."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from st_xling.data.reranking.shares import share_counts

SHARES: Mapping[str, float] = MappingProxyType({"train": 0.7, "dev": 0.1, "test": 0.2})
"""Of the articles, where nothing else is said."""

Part = TypeVar("Part", bound="ByArticle")


@dataclass(frozen=True)
class ByArticle:
    """Questions and the paragraphs of articles, each in every language; row ``i`` says the same in each.

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

    def split(self: Part, shares: Mapping[str, float] = SHARES, *, seed: int = 0) -> dict[str, Part]:
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
        self: Part, titles: Mapping[str, Iterable[str]], *, rest: str | None = "train"
    ) -> dict[str, Part]:
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

    def only_questions(self: Part, rows: Iterable[int]) -> Part:
        """Some of the questions, by number; every paragraph stays, as a candidate."""
        asked = list(rows)
        return replace(
            self,
            questions={code: [texts[row] for row in asked] for code, texts in self.questions.items()},
            question_ids=[self.question_ids[row] for row in asked],
            question_passages=[self.question_passages[row] for row in asked],
        )

    def only_articles(self: Part, numbers: Iterable[int]) -> Part:
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
