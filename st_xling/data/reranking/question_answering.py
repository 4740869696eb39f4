"""Question answering in several languages as re-ranking: every paragraph a candidate for every question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from st_xling.data.reranking.aligned import AlignedPairs, known_languages
from st_xling.data.reranking.by_article import ByArticle
from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.candidate_pools import candidate_pools
from st_xling.data.reranking.draw_apart import draw_apart
from st_xling.data.reranking.same_text import same_text_classes


@dataclass(frozen=True)
class QuestionAnswering(ByArticle):
    """Questions, each relevant to one paragraph at least, as pairs to train on and as pools to be tested on.

    Attributes: as :class:`~st_xling.data.reranking.by_article.ByArticle`, which cuts them by article.
    """

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
        **options: Any,
    ) -> CandidatePools:
        """Pools to test on: all paragraphs of this set for each question.

        Args:
            query_languages: To toss among; by default all.
            passage_languages: To share the candidates among; by default all.
            **options: ``max_candidates``, ``without_relevant`` and ``seed`` of
                :func:`~st_xling.data.reranking.candidate_pools.candidate_pools`.
        """
        asked = known_languages(query_languages or self.languages, self.languages)
        shown = known_languages(passage_languages or self.languages, self.languages)
        return candidate_pools(
            {code: self.questions[code] for code in asked},
            {code: self.passages[code] for code in shown},
            self.relevant(),
            query_ids=self.question_ids,
            passage_ids=self.passage_ids,
            **options,
        )
