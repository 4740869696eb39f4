"""Figures of retrieval, by language, and their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from st_xling.evaluation.retrieval.bias import LanguageBias
from st_xling.evaluation.retrieval.measures import Rankings


@dataclass(frozen=True)
class RetrievalReport:
    """What a system's rankings are worth.

    Attributes:
        figures: Label (``fi``, ``en-fi``) → measure → mean over its queries, in [0, 1].
        n_queries: Label → queries.
        bias: Of a mixed pool, where queries have equally relevant passages in several languages.
        rankings: By pool: query id → hits.
    """

    figures: dict[str, dict[str, float]]
    n_queries: dict[str, int]
    bias: LanguageBias | None = None
    rankings: dict[str, Rankings] = field(default_factory=dict, repr=False, compare=False)

    @property
    def means(self) -> dict[str, float]:
        """Measure → macro average over labels."""
        rows = list(self.figures.values())
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        bias = {} if self.bias is None else {"language_bias": self.bias.as_dict()}
        return {"figures": {**self.figures, "mean": self.means}, "n_queries": self.n_queries, **bias}


def retrieval_table(systems: Mapping[str, RetrievalReport]) -> str:
    """One row a label, then the macro average; for each system a column a measure, percent with one decimal.

    Args:
        systems: Name of the system → its report, all over the same queries.
    Example:
        >>> report = RetrievalReport({"fi": {"MRR@100": 0.5, "Recall@100": 0.875}}, {"fi": 8})
        >>> print(retrieval_table({"BM25": report}))
        language  queries  BM25 MRR@100  BM25 Recall@100
        fi              8          50.0             87.5
        ------------------------------------------------
        mean                       50.0             87.5
    """
    first = next(iter(systems.values()))
    labels = list(first.figures)
    columns = [(name, measure) for name, report in systems.items() for measure in report.means]
    heads = [f"{name} {measure}" for name, measure in columns]
    width = max(len("language"), *map(len, labels))
    lines = ["  ".join([f"{'language':<{width}}", "queries", *heads])]

    def row(label: str, count: str, values: list[float]) -> str:
        cells = [f"{100 * value:{len(head)}.1f}" for value, head in zip(values, heads)]
        return "  ".join([f"{label:<{width}}", f"{count:>7}", *cells])

    for label in labels:
        values = [systems[name].figures[label][measure] for name, measure in columns]
        lines.append(row(label, str(first.n_queries[label]), values))
    lines.append("-" * len(lines[0]))
    lines.append(row("mean", "", [systems[name].means[measure] for name, measure in columns]))
    for name, report in systems.items():
        lines += [] if report.bias is None else ["", _told(name, report.bias)]
    return "\n".join(lines)


def _told(name: str, bias: LanguageBias) -> str:
    return (
        f"{name}, of equally relevant hits in the query's language: {100 * bias.own_share:.1f} % "
        f"(first hit {100 * bias.own_first:.1f} %; without bias {100 * bias.expected:.1f} %; "
        f"{bias.n_queries:,} queries, {bias.n_not_found:,} without a relevant hit)"
    )
