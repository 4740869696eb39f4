"""Rankings: their measures for each query, by ir_measures, and their files, in TREC's run format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from st_xling.evaluation.retrieval.pool import PoolQuery
from st_xling.utils.checks import require
from st_xling.utils.io import write_atomic

Rankings = dict[str, list[tuple[str, float]]]
"""Query id → ids and scores of passages, best first."""

MEASURES = ("MRR@100", "Recall@100")
"""What the papers of dense multilingual retrieval print."""

_PRINTED = {"RR": "MRR", "R": "Recall", "AP": "MAP", "P": "Precision"}


class Measures:
    """Measures by name.

    Args:
        names: As ir_measures types them (``nDCG@10``, ``R@20``), or as papers do (``MRR@100``, ``Recall@100``).
    Raises:
        ValueError: If ir_measures is not installed or knows no such measure, or one is named twice.

    Attributes:
        names: As papers print them.
        cutoff: The deepest rank that a measure looks at; at least 100.
    """

    def __init__(self, names: Sequence[str] = MEASURES) -> None:
        self.library: Any = require("ir_measures", "evaluating retrieval")
        self.measures = [self._parse(name) for name in names]
        self.names = [_printed(measure) for measure in self.measures]
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"measures must be one or more different ones: got {', '.join(names) or 'none'}.")
        self.cutoff = max([100, *(measure.params.get("cutoff", 100) for measure in self.measures)])

    def per_query(self, queries: Sequence[PoolQuery], rankings: Rankings) -> dict[str, dict[str, float]]:
        """Measure → query id → value in [0, 1]; a query without hits has 0.

        Args:
            queries: With what is relevant to them.
            rankings: Of these queries. Their order counts and their scores do not, which ir_measures would sort again.
        """
        qrel, scored = self.library.Qrel, self.library.ScoredDoc
        relevant = [qrel(query.id, name, grade) for query in queries for name, grade in query.relevant.items()]
        ranked = [
            scored(query.id, name, -float(rank))
            for query in queries
            for rank, (name, _) in enumerate(rankings.get(query.id, ()))
        ]
        values: dict[str, dict[str, float]] = {name: {} for name in self.names}
        for value in self.library.iter_calc(self.measures, relevant, ranked):
            values[_printed(value.measure)][value.query_id] = float(value.value)
        return values

    def _parse(self, name: str) -> Any:
        plain = {printed: typed for typed, printed in _PRINTED.items()}
        head, at, rest = name.partition("@")
        try:
            return self.library.parse_measure(plain.get(head, head) + at + rest)
        except (NameError, ValueError, SyntaxError) as error:
            raise ValueError(f"no measure is called {name!r}: {error}; MRR@100, R@20 or nDCG@10 are some.") from error


def _printed(measure: Any) -> str:
    head, at, rest = str(measure).partition("@")
    return _PRINTED.get(head, head) + at + rest


def write_run(path: str | Path, rankings: Rankings, *, tag: str, names: Mapping[str, str] | None = None) -> None:
    """Write ``query Q0 passage rank score tag`` lines, beside ``path`` first.

    Args:
        path: Where to; its folder is made where it is missing.
        rankings: Query id → hits, best first.
        tag: Of the system.
        names: Other ids for the queries.
    Raises:
        ValueError: An id with white space, which the format cannot hold.
    """
    lines = []
    for query, hits in rankings.items():
        shown = query if names is None else names[query]
        for rank, (name, score) in enumerate(hits, 1):
            if any(len(part.split()) != 1 for part in (shown, name)):
                raise ValueError(f"a TREC run divides its columns by spaces: got the ids {shown!r} and {name!r}.")
            lines.append(f"{shown} Q0 {name} {rank} {score:.9g} {tag}\n")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(lines).encode("utf-8"))
