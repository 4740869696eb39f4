"""BM25, the baseline that needs no training: by bm25s."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import RetrievalPool
from st_xling.evaluation.retrieval.words import words
from st_xling.utils.extras import require


class Bm25:
    """An index of a pool's passages; the terms of all passages are in memory, their texts are not.

    Args:
        pool: Queries and passages.
        k1: How soon more of a term adds nothing.
        b: How much long passages are held back; with ``k1`` the defaults of Anserini, whose BM25 Mr.TyDi reports.
        show_progress_bar: Whether to show one.
    Raises:
        ValueError: If bm25s is not installed, or no passage holds a word.
    """

    def __init__(
        self, pool: RetrievalPool, *, k1: float = 0.9, b: float = 0.4, show_progress_bar: bool = False
    ) -> None:
        bm25s = require("bm25s", "BM25")
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells of every step, whatever the level above it
        tokenization = require("bm25s.tokenization", "BM25")
        self.pool = pool
        self.settings = f"bm25s,lucene,k1={k1:g},b={b:g}"
        self.vocabulary: dict[str, int] = {}
        number = self.vocabulary
        passages = tqdm(pool.passages, desc="BM25", unit="passage", disable=not show_progress_bar, leave=False)
        ids = [[number.setdefault(term, len(number)) for term in words(text)] for text in passages]
        if not number:
            raise ValueError(f"BM25 needs passages with words: the {len(ids):,} passages of {pool.name} hold none.")
        self.index: Any = bm25s.BM25(method="lucene", k1=k1, b=b)
        self.index.index(tokenization.Tokenized(ids=ids, vocab=dict(number)), show_progress=False)
        order = sorted(range(len(pool.passage_ids)), key=pool.passage_ids.__getitem__)
        self.places = np.empty(len(order), dtype=np.int64)  # of each passage when ids are in order
        self.places[order] = np.arange(len(order))

    def search(self, k: int = 100) -> Rankings:
        """The best passages of each query that share a term with it, best first; equal scores in the order of ids."""
        return {query.id: self._hits(query.text, k) for query in self.pool.queries}

    def _hits(self, query: str, k: int) -> list[tuple[str, float]]:
        terms = [self.vocabulary[term] for term in words(query) if term in self.vocabulary]
        if not terms:
            return []
        scores = np.asarray(self.index.get_scores_from_ids(terms))
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        best = found[np.lexsort((self.places[found], -scores[found]))][:k]
        return [(self.pool.passage_ids[row], float(scores[row])) for row in best]
