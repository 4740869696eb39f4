"""Kept figures to rows, task by task."""

from __future__ import annotations

from collections.abc import Callable

from st_xling.evaluation.results import KeptFigures
from st_xling.hub.card.judged import Judged
from st_xling.hub.card.ranking_rows import plain_figures, reranking, retrieval, transfer
from st_xling.hub.card.translation_rows import bucc, precision, tatoeba, xsim

_READERS: dict[str, Callable[[KeptFigures], Judged]] = {
    "tatoeba": tatoeba,
    "bucc": bucc,
    "xsim": xsim,
    "precision": precision,
    "reranking": reranking,
    "retrieval": retrieval,
    **{f"transfer-{task}": transfer for task in ("xnli", "pawsx", "pos", "panx")},
}


def judged(kept: KeptFigures) -> Judged:
    """The rows of kept figures; those that are not of the form of their task, as they are."""
    try:
        return _READERS[kept.task](kept)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return plain_figures(kept)
