"""The same query-passage pairs in several languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from st_xling.data.reranking.same_text import same_text_keys

SHOWN = 5
"""How many faulty rows an error message lists; the rest are only counted."""


@dataclass(frozen=True)
class AlignedPairs:
    """M query-passage pairs, each in L languages: row ``i`` says the same in every language.

    The sets :math:`D^{en}` and :math:`D^{zh}` of the paper side by side (or :math:`S^{en}` and :math:`S^{zh}`, where
    query and passage are two sentences), in any number of languages. A query with several passages stands in as many
    rows.

    Args:
        queries: Language → queries. *Shape:* ``(pairs,)`` each
        passages: The same languages → passages. *Shape:* ``(pairs,)`` each
        labels: 1 where the passage is relevant to the query, else 0. *Shape:* ``(pairs,)``
    Raises:
        ValueError: If the languages of the sides differ or there is none; if a list is not as long as the labels (the
            message names language and both lengths); if a label is outside {0, 1} or a text is blank or no text (it
            names the rows, counted from 0).
    Source:
        IEEE Access 2020, "Cross-Lingual Passage Re-Ranking With Alignment Augmented Multilingual BERT", IV-B-2, IV-C-2.
    Example:
        >>> pairs = AlignedPairs({"en": ["Who?"], "zh": ["谁？"]}, {"en": ["He did."], "zh": ["是他。"]}, [1])
        >>> pairs.languages, len(pairs)
        (('en', 'zh'), 1)
    """

    queries: Mapping[str, Sequence[str]]
    passages: Mapping[str, Sequence[str]]
    labels: Sequence[int]

    def __post_init__(self) -> None:
        # Lists, since the texts are picked one by one, which a column of a data set is slow at.
        for side in ("queries", "passages"):
            texts = {language: _as_list(column) for language, column in getattr(self, side).items()}
            object.__setattr__(self, side, texts)
        object.__setattr__(self, "labels", _checked_labels(_as_list(self.labels)))
        _check_sides(self.queries, self.passages, len(self.labels))

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes, in the order of ``queries``."""
        return tuple(self.queries)

    @cached_property
    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Of queries and of passages: numbers shared by those that say the same. *Shape:* ``(pairs,)`` each"""
        queries, passages = (same_text_keys(list(side.values())) for side in (self.queries, self.passages))
        return queries, passages

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Iterable[int]) -> AlignedPairs:
        """The rows of these numbers, in this order."""
        numbers = [int(row) for row in rows]
        return AlignedPairs(
            {language: [column[row] for row in numbers] for language, column in self.queries.items()},
            {language: [column[row] for row in numbers] for language, column in self.passages.items()},
            [self.labels[row] for row in numbers],
        )

    def only(self, languages: Iterable[str]) -> AlignedPairs:
        """The same pairs in some of the languages, in this order."""
        wanted = known_languages(languages, self.languages)
        queries, passages = ({code: side[code] for code in wanted} for side in (self.queries, self.passages))
        return AlignedPairs(queries, passages, self.labels)


def require_languages(pairs: AlignedPairs, what: str, *, least: int = 2) -> None:
    """Refuse pairs in fewer languages than ``what`` mixes, or without rows."""
    if len(pairs.languages) < least:
        raise ValueError(
            f"{what} needs aligned pairs in at least {least} languages: got {len(pairs.languages)} "
            f"({', '.join(pairs.languages)}); add a translation of the same pairs."
        )
    if not len(pairs):
        raise ValueError(f"{what} needs aligned pairs: got none; check the files.")


def known_languages(wanted: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """``wanted`` without repetitions; a ``ValueError`` if one is not among those known, or there is none."""
    languages = tuple(dict.fromkeys([wanted] if isinstance(wanted, str) else wanted))
    unknown = [language for language in languages if language not in known]
    if unknown or not languages:
        raise ValueError(f"expected languages out of {', '.join(known)}: got {', '.join(unknown) or 'none'}.")
    return languages


def check_texts(texts: Sequence[Any], what: str) -> None:
    """Refuse blank texts and what is no text, naming the places, counted from 0."""
    bad = [row for row, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
    if bad:
        raise ValueError(
            f"{what} must all be texts that are not blank: rows {numbered(bad)} are not; leave these rows out of "
            "every language, so that the rest stays aligned."
        )


def numbered(rows: Sequence[int]) -> str:
    """The first few numbers, and how many more there are."""
    return ", ".join(map(str, rows[:SHOWN])) + (f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else "")


def _as_list(column: Any) -> list[Any]:
    return column if isinstance(column, list) else list(column[:])  # a data set's column is slow to walk through


def _checked_labels(labels: Sequence[Any]) -> list[int]:
    bad = [row for row, label in enumerate(labels) if isinstance(label, str) or label not in (0, 1)]
    if bad:
        got = ", ".join(dict.fromkeys(repr(labels[row]) for row in bad[:SHOWN]))
        raise ValueError(
            f"labels must be 0 or 1: got {got} in rows {numbered(bad)}; make graded labels binary first "
            "(relevant or not)."
        )
    return np.asarray(labels, np.int64).tolist()


def _check_sides(queries: Mapping[str, Sequence[str]], passages: Mapping[str, Sequence[str]], rows: int) -> None:
    if not queries or queries.keys() != passages.keys():
        raise ValueError(
            f"queries and passages must be in the same languages: got {', '.join(queries) or 'none'} and "
            f"{', '.join(passages) or 'none'}; pass both sides of every language."
        )
    for language in queries:
        lengths = {"queries": len(queries[language]), "passages": len(passages[language])}
        if lengths["queries"] != lengths["passages"]:
            raise ValueError(
                f"the sides of {language} differ in length: {lengths['queries']} queries, {lengths['passages']} "
                "passages; row i of one must belong to row i of the other."
            )
        if lengths["queries"] != rows:
            raise ValueError(
                f"{language} has {lengths['queries']} pairs for {rows} labels; every language must hold the same pairs "
                "in the same order."
            )
    for side, columns in (("queries", queries), ("passages", passages)):
        for language, column in columns.items():
            check_texts(column, f"{side} in {language}")
