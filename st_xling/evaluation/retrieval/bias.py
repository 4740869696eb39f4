"""Language bias: of equally relevant passages in several languages, do those in the query's own come first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import PoolQuery


@dataclass(frozen=True)
class LanguageBias:
    """Means over queries that have equally relevant passages in their own and in other languages.

    Attributes:
        own_share: Share of hits in the query's language among as many relevant hits as it has relevant passages in its
            language: 1 where all of these come before any other, whatever lies between. In [0, 1].
        own_first: Share of queries whose best-ranked relevant passage is in their language.
        expected: What both would be without bias: the share of the query's language among its relevant passages.
        n_queries: Queries that count.
        n_not_found: Those of them without a relevant hit; they are left out of ``own_share`` and ``own_first``.
    """

    own_share: float
    own_first: float
    expected: float
    n_queries: int
    n_not_found: int

    def as_dict(self) -> dict[str, float]:
        return {
            "own_share": self.own_share,
            "own_first": self.own_first,
            "expected": self.expected,
            "n_queries": self.n_queries,
            "n_not_found": self.n_not_found,
        }


def language_bias(
    queries: Sequence[PoolQuery], rankings: Rankings, languages: Mapping[str, str]
) -> LanguageBias | None:
    """How much rankings from a mixed pool favour the query's language.

    A query with relevant passages of several grades is looked at by its highest grade alone: the others are not equally
    relevant. Irrelevant passages do not count, so a language whose passages are all ranked high gains nothing.

    Args:
        queries: Of a mixed pool.
        rankings: Query id → hits, best first.
        languages: Passage id → language.
    Returns:
        ``None`` where no query has equally relevant passages in its own language and another.
    """
    shares: list[float] = []
    firsts: list[float] = []
    expected: list[float] = []
    not_found = 0
    for query in queries:
        best = max(query.relevant.values())
        equal = {name for name, grade in query.relevant.items() if grade == best}
        own = {name for name in equal if languages[name] == query.language}
        if not own or len(own) == len(equal):
            continue
        hits = [name for name, _ in rankings.get(query.id, ()) if name in equal]
        if not hits:
            not_found += 1
            continue
        expected.append(len(own) / len(equal))
        shown = hits[: len(own)]
        shares.append(sum(name in own for name in shown) / len(shown))
        firsts.append(float(hits[0] in own))
    count = len(shares)
    if not count:
        return None if not not_found else LanguageBias(0.0, 0.0, 0.0, not_found, not_found)
    return LanguageBias(sum(shares) / count, sum(firsts) / count, sum(expected) / count, count + not_found, not_found)
