"""A page of HTML to look at pairs: both texts side by side, doubtful pairs marked, in one file that needs no other.

The page steps through doubtful pairs by keyboard, and shows them in the order of the documents or by score. It has
styles and a short script of its own, and loads nothing from elsewhere. Texts are escaped, and each is written in its
own direction.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from st_xling._version import __version__
from st_xling.data.scored import read_scored
from st_xling.utils.languages import UNKNOWN, hub_language, language_name

_TEMPLATE = Path(__file__).with_name("pair_page.html")

#: Maximum number of pairs, and of sentences without a partner, on a page: more make a browser slow.
MOST_GROUPS = 5_000

#: Share of the scores that are called doubtful where no score is given.
DOUBTFUL_SHARE = 0.1


class PageLine(NamedTuple):
    """A sentence on a page.

    Attributes:
        id: Its number in the document, or its id; empty if it has none.
        text: The sentence.
    """

    id: str
    text: str


class PageGroup(NamedTuple):
    """Sentences that belong together, or a sentence without a partner.

    Attributes:
        source: Source sentences.
        target: Target sentences.
        score: Score of the pair; ``None`` without a partner.
        problem: Why the group is not among the pairs, such as ``"copy"``; ``None`` if it is.
    """

    source: Sequence[PageLine]
    target: Sequence[PageLine]
    score: float | None = None
    problem: str | None = None


@dataclass
class PairPage:
    """Groups of one or more documents, as a page shows them.

    Attributes:
        title: Title of the page.
        languages: Languages of source and target, ``None`` for an unknown one.
        doubtful_below: Score below which a pair is doubtful; by default the one that a tenth of the pairs is below.
        signature: Signature of the command that made the pairs.
        most: Maximum number of groups. Others are only counted.
        omitted: Number of groups that were not added because of it.
        documents: Name and groups of each document.

    Example:
        >>> page = PairPage("book", ("de", "en"))
        >>> page.add("book.de", [PageGroup([PageLine("1", "Es regnet.")], [PageLine("1", "It rains.")], 0.9)])
        >>> "Es regnet." in page.render()
        True
    """

    title: str
    languages: tuple[str | None, str | None] = (None, None)
    doubtful_below: float | None = None
    signature: str = ""
    most: int = MOST_GROUPS
    omitted: int = 0
    documents: list[tuple[str, list[PageGroup]]] = field(default_factory=list)

    def add(self, name: str, groups: Iterable[PageGroup]) -> None:
        """Add the groups of a document, as many as the page has room for."""
        remaining = iter(groups)
        room = self.most - sum(len(shown) for _, shown in self.documents)
        shown = list(islice(remaining, room))
        self.omitted += sum(1 for _ in remaining)
        if shown:
            self.documents.append((name, shown))

    def render(self) -> str:
        """Render the page."""
        from jinja2 import Environment

        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
        groups = [group for _, shown in self.documents for group in shown]
        scores = sorted(group.score for group in groups if group.score is not None and math.isfinite(group.score))
        doubtful_below = self.doubtful_below
        if doubtful_below is None:
            doubtful_below = _doubtful_below(scores)
        lowest = scores[0] if scores else 0.0
        highest = scores[-1] if scores else 1.0
        return template.render(
            page=self,
            language_tags=[_language_tag(code) for code in self.languages],
            side_names=[_side_name(code, side) for code, side in zip(self.languages, ("Source", "Target"))],
            doubtful_below=doubtful_below,
            pairs=sum(group.problem is None for group in groups),
            share=lambda score: (score - lowest) / ((highest - lowest) or 1.0) if math.isfinite(score) else 0.0,
            version=__version__,
        )


def _doubtful_below(scores: Sequence[float]) -> float:
    """Return the score that a tenth of the scores, in ascending order, is below; rounded as the page shows it."""
    if not scores:
        return 0.0
    return round(scores[int(DOUBTFUL_SHARE * len(scores))], 4)


def _language_tag(code: str | None) -> str:
    """Return the tag of a language for HTML, by which a browser chooses a font; empty for an unknown language."""
    return "" if code is None or code == UNKNOWN else hub_language(code)


def _side_name(code: str | None, side: str) -> str:
    """Return the heading of a side: its language, if that is known."""
    return side if code is None or code == UNKNOWN else f"{side}: {language_name(code)}"


def page_of_scored(path: str | Path, *, around: float | None = None, size: int = MOST_GROUPS) -> PairPage:
    """Return a page of the scored pairs of a file, best first; memory grows by 24 bytes a pair.

    Args:
        path: File that :func:`~st_xling.data.scored.read_scored` reads, which is read twice.
        around: A score; pairs below it are doubtful.
        size: Maximum number of pairs. Of more, those nearest to ``around`` are shown, or if there is no such score,
            some that are spread evenly over all scores.

    Raises:
        ParallelTextError: If the pairs have no scores, or for all faulty lines together.
    """
    scores = np.array(array("d", (pair.score for pair in read_scored(path))))
    best_first = np.argsort(-scores, kind="stable")  # NaN comes last
    shown = best_first
    if len(scores) > size:
        if around is None:
            shown = best_first[np.arange(size) * len(scores) // size]
        else:
            nearest = np.argsort(np.abs(scores - around), kind="stable")[:size]
            shown = best_first[np.isin(best_first, nearest)]
    rank_of_row = {row: rank for rank, row in enumerate(shown.tolist())}
    groups: list[PageGroup] = [PageGroup([], [])] * len(shown)
    for row, pair in enumerate(read_scored(path)):
        if row in rank_of_row:
            source = PageLine("", pair.source)
            target = PageLine("", pair.target)
            groups[rank_of_row[row]] = PageGroup([source], [target], pair.score)
    page = PairPage(Path(path).name, doubtful_below=around, most=size, omitted=len(scores) - len(shown))
    page.add("", groups)
    return page
