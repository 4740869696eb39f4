"""A query in one language with its candidate passages in several: what re-ranking is tested on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True)
class CandidatePool:
    """One query and what is to be ranked for it.

    Args:
        query: The query.
        query_language: Its code.
        passages: The candidates. *Shape:* ``(candidates,)``
        passage_languages: Their codes. *Shape:* ``(candidates,)``
        labels: 1 where the candidate is relevant, else 0. *Shape:* ``(candidates,)``
        query_id: Name of the query; the same in every language.
        passage_ids: Names of the candidates, the same in every language; by default numbers. *Shape:* ``(candidates,)``
    Raises:
        ValueError: The lists differ in length; a label is outside {0, 1}.
    """

    query: str
    query_language: str
    passages: Sequence[str]
    passage_languages: Sequence[str]
    labels: Sequence[int]
    query_id: str = ""
    passage_ids: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not len(self.passage_ids):
            object.__setattr__(self, "passage_ids", tuple(map(str, range(len(self.passages)))))
        lengths = [len(x) for x in (self.passages, self.passage_languages, self.labels, self.passage_ids)]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"query {self.query_id!r}: expected one language, label and id for each of {lengths[0]} passages, got "
                f"{lengths[1]}, {lengths[2]} and {lengths[3]}."
            )
        if wrong := set(self.labels) - {0, 1}:
            raise ValueError(f"query {self.query_id!r}: labels must be 0 or 1: got {sorted(map(repr, wrong))}.")


@dataclass(frozen=True)
class CandidatePools(Sequence[CandidatePool]):
    """Pools, how many queries had nothing to find, and how the pools were made.

    Args:
        pools: The pools themselves; this object is a sequence of them.
        without_candidates: Queries that have no candidate at all.
        without_relevant: Queries that have candidates, but no relevant one.
        signature: What figures on these pools depend on, ``key:value|key:value``.
    """

    pools: tuple[CandidatePool, ...]
    without_candidates: int = 0
    without_relevant: int = 0
    signature: str = ""

    def __len__(self) -> int:
        return len(self.pools)

    @overload
    def __getitem__(self, place: int) -> CandidatePool: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[CandidatePool, ...]: ...
    def __getitem__(self, place: int | slice) -> CandidatePool | tuple[CandidatePool, ...]:
        return self.pools[place]

    def __iter__(self) -> Iterator[CandidatePool]:
        return iter(self.pools)


def pool_texts(pools: Iterable[CandidatePool]) -> dict[str, list[str]]:
    """``queries`` and ``relevant passages`` of pools, each text once; a kind of which there is none is not named.

    Candidates that are not relevant are left out: sets to train and to test on may share them by right.
    """
    queries: dict[str, None] = {}
    passages: dict[str, None] = {}
    for pool in pools:
        queries[pool.query] = None
        passages |= {passage: None for passage, label in zip(pool.passages, pool.labels) if label}
    found = {"queries": list(queries), "relevant passages": list(passages)}
    return {what: texts for what, texts in found.items() if texts}


def pools_signature(
    queries: Sequence[str],
    passages: Sequence[str],
    candidates: str,
    seed: int,
    without_relevant: str,
    *,
    tossed: bool = True,
) -> str:
    """What tells pools apart, in one line.

    Example:
        >>> pools_signature(["en", "zh"], ["zh"], "all", 0, "exclude")
        'queries:en,zh-tossed|passages:zh|candidates:all|seed:0|without_relevant:exclude'
    """
    query = ",".join(queries) + "-tossed" * (tossed and len(queries) > 1)
    passage = ",".join(passages) + "-even" * (len(passages) > 1)
    return f"queries:{query}|passages:{passage}|candidates:{candidates}|seed:{seed}|without_relevant:{without_relevant}"
