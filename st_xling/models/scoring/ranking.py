"""Scores of text pairs, and passages in the order of their scores."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.models.scoring.pair_scorer import PairScorer

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankedPassage:
    """A passage where its score puts it.

    Attributes:
        index: Its place among the passages given, from 0.
        score: As ``CrossEncoder.predict`` scores it.
    """

    index: int
    score: float


def score_text_pairs(model: CrossEncoder, pairs: Iterable[tuple[str, str]], **options: Any) -> np.ndarray:
    """How relevant the second text of each pair is to the first, as ``CrossEncoder.predict`` scores it.

    Only the second text is cut where a pair is longer than the model; a warning says how often that was.

    Args:
        model: A cross-encoder of one label.
        pairs: Query and passage each; also an iterator, which is not held in memory.
        options: Of :class:`~st_xling.models.scoring.pair_scorer.PairScorer`, such as ``token_budget``, ``activation``,
            ``autocast``, ``long_queries`` and ``progress``.
    Returns:
        Scores in the order of the pairs, float32. *Shape:* ``(pairs,)``
    Raises:
        ValueError: As :class:`~st_xling.models.scoring.pair_scorer.PairScorer`; for a query that leaves no room for a
            passage.
    Example:
        >>> score_text_pairs(model, [("Who?", "He."), ("Who?", "There.")])                  # doctest: +SKIP
        array([0.93, 0.02], dtype=float32)
    """
    scorer = PairScorer(model, **options)
    scores = scorer.score(pairs)
    if scorer.counts.cut_passages:
        logger.warning(
            "%d of %d pairs were longer than the model: their passages were cut.",
            scorer.counts.cut_passages,
            scorer.counts.pairs,
        )
    return scores


def rerank(
    model: CrossEncoder, query: str, passages: Sequence[str], *, top_k: int | None = None, **options: Any
) -> list[RankedPassage]:
    """The passages of a query, best first; of equal ones the first given.

    Args:
        model: A cross-encoder of one label.
        query: In any language that the model knows.
        passages: Also in several languages.
        top_k: Passages returned at most; all by default.
        options: Of :class:`~st_xling.models.scoring.pair_scorer.PairScorer`.
    Raises:
        ValueError: For ``top_k`` below 1, or as :func:`score_text_pairs`.
    Example:
        >>> rerank(model, "Wer?", ["There.", "He."], top_k=1)                               # doctest: +SKIP
        [RankedPassage(index=1, score=0.93)]
    """
    check_top_k(top_k)
    scorer = PairScorer(model, **options)
    logits = scorer.score([(query, passage) for passage in passages], raw=True)
    return ranked(scorer, logits, top_k)


def ranked(scorer: PairScorer, logits: np.ndarray, top_k: int | None) -> list[RankedPassage]:
    """Passages in the order of their raw scores, with the scores that the model gives.

    A sigmoid takes all logits above 17 for 1: only before it is the order whole.

    Args:
        scorer: Made ``logits``.
        logits: Raw scores of one query's passages. *Shape:* ``(passages,)``
        top_k: Passages returned at most.
    """
    order = np.argsort(-logits, kind="stable")[:top_k]
    scores = scorer.activate(logits[order]).tolist()
    return [RankedPassage(index, score) for index, score in zip(order.tolist(), scores)]


def check_top_k(top_k: int | None) -> None:
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more: got {top_k}; leave it out for all passages.")
