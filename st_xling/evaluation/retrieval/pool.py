"""Queries, and the passages that each of them is searched in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from st_xling.data.retrieval import RetrievalSet


class PoolQuery(NamedTuple):
    """One query.

    Attributes:
        id: Unique in its pool.
        text: The query itself.
        language: Of the text.
        label: Under which its measures are averaged: its language, or ``en-fi`` for English over Finnish passages.
        relevant: Passage id → grade above 0.
    """

    id: str
    text: str
    language: str
    label: str
    relevant: dict[str, int]


@dataclass(frozen=True)
class RetrievalPool:
    """Passages of one set or of several, and the queries over all of them.

    Attributes:
        name: The passages' languages.
        queries: Grouped by label.
        passages: Texts in order, read from the disk whenever they are gone through.
        passage_ids: Unique in the pool: ``fi:12`` where languages are mixed.
        languages: Passage id → language.
        sha256: Of queries, passages and judgements.
    """

    name: str
    queries: tuple[PoolQuery, ...] = field(repr=False)
    passages: Iterable[str] = field(repr=False)
    passage_ids: list[str] = field(repr=False)
    languages: dict[str, str] = field(repr=False)
    sha256: str


def separate_pools(sets: Sequence[RetrievalSet]) -> list[RetrievalPool]:
    """A pool for each set: its queries, over its passages.

    Raises:
        ValueError: No set, or two of one language, whose measures would have the same label.
    """
    _check_languages(sets)
    pools = []
    for part in sets:
        queries = tuple(
            PoolQuery(f"{code}:{name}", text, code, _label(code, part.language), part.relevant[name])
            for code, named in part.queries.items()
            for name, text in named.items()
        )
        names = list(part.passages.ids)
        languages = dict.fromkeys(names, part.language)
        pools.append(RetrievalPool(part.language, queries, part.passages, names, languages, part.sha256))
    return pools


def mixed_pool(sets: Sequence[RetrievalSet]) -> RetrievalPool:
    """One pool of all passages of all sets, in which every query is searched.

    A query that several sets have in the same language, under the same id, is one query: what is relevant in any of
    them is relevant.

    Raises:
        ValueError: No set, or two of one language; a query id that two sets use for different texts of one language.
    """
    _check_languages(sets)
    texts: dict[tuple[str, str], str] = {}
    relevant: dict[tuple[str, str], dict[str, int]] = {}
    unlike = []
    for part in sets:
        for code, named in part.queries.items():
            for name, text in named.items():
                if texts.setdefault((code, name), text) != text:
                    unlike.append(f"{code} {name}")
                grades = {f"{part.language}:{passage}": grade for passage, grade in part.relevant[name].items()}
                relevant.setdefault((code, name), {}).update(grades)
    if unlike:
        shown = ", ".join(unlike[:5])
        raise ValueError(
            f"an id must mean one query in all sets of a mixed pool: {len(unlike)} differ in their text, such as "
            f"{shown}; give them other ids, or keep the sets apart."
        )
    ordered = sorted(texts, key=lambda key: key[0])
    queries = tuple(
        PoolQuery(f"{code}:{name}", texts[code, name], code, code, relevant[code, name]) for code, name in ordered
    )
    names = [f"{part.language}:{name}" for part in sets for name in part.passages.ids]
    languages = {f"{part.language}:{name}": part.language for part in sets for name in part.passages.ids}
    digest = hashlib.sha256("\n".join(part.sha256 for part in sets).encode()).hexdigest()
    passages = _Joined([part.passages for part in sets])
    return RetrievalPool("+".join(part.language for part in sets), queries, passages, names, languages, digest)


def _label(query_language: str, passage_language: str) -> str:
    return query_language if query_language == passage_language else f"{query_language}-{passage_language}"


def _check_languages(sets: Sequence[RetrievalSet]) -> None:
    codes = [part.language for part in sets]
    twice = sorted({code for code in codes if codes.count(code) > 1})
    if not sets:
        raise ValueError("retrieval needs at least one set of queries, passages and qrels: got none.")
    if twice:
        raise ValueError(
            f"sets must have passages of different languages: got {', '.join(twice)} twice; leave one out."
        )


class _Joined:
    """Several corpora as one, read one after another whenever its texts are gone through."""

    def __init__(self, parts: Sequence[Iterable[str]]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)
