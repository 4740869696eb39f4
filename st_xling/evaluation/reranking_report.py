"""What an evaluation of re-ranking found: figures with their intervals, as flat metrics and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from st_xling.evaluation.bootstrap import bootstrap_interval
from st_xling.evaluation.language_matrix import Matrix
from st_xling.evaluation.ranking import RankingScores


@dataclass(frozen=True)
class RankingWithInterval:
    """Ranking measures and how far they might have come out otherwise.

    Attributes:
        scores: Means over queries.
        low: Measure → lower end of its interval.
        high: Measure → upper end.
    """

    scores: RankingScores
    low: dict[str, float]
    high: dict[str, float]

    @classmethod
    def of(cls, scores: RankingScores, **options: Any) -> RankingWithInterval:
        """With the percentile bootstrap of :func:`~st_xling.evaluation.bootstrap_interval`, whose options these are."""
        names = measures(scores)
        ends = bootstrap_interval(scores.per_query, **options)
        low, high = (dict(zip(names, end.tolist())) for end in ends)
        return cls(scores, low, high)

    @property
    def means(self) -> dict[str, float]:
        """Measure → mean."""
        found = self.scores.as_dict()
        return {name: found[name] for name in measures(self.scores)}


@dataclass(frozen=True)
class RerankingReport:
    """Figures of all queries, and of each query language by each passage language.

    Attributes:
        overall: All candidates of a query ranked together.
        matrix: Query language → passage language → the same with only that language's candidates ranked.
        counts: What the figures leave out or count as failed, by name: see
            :class:`~st_xling.evaluation.RerankingEvaluator`.
    """

    overall: RankingWithInterval
    matrix: Mapping[str, Mapping[str, RankingWithInterval]]
    counts: Mapping[str, int]

    @classmethod
    def of(cls, overall: RankingScores, matrix: Matrix, counts: Mapping[str, int], **bootstrap: Any) -> RerankingReport:
        """Add the intervals."""
        cells = {
            language: {other: RankingWithInterval.of(cell, **bootstrap) for other, cell in row.items()}
            for language, row in matrix.items()
        }
        return cls(RankingWithInterval.of(overall, **bootstrap), cells, counts)

    def metrics(self) -> dict[str, float]:
        """Flat: the measures, ``{measure}_low`` and ``_high``, the counts, then ``{query}-{passage}_{measure}``."""
        flat: dict[str, float] = dict(self.overall.means)
        for name in self.overall.means:
            flat |= {f"{name}_low": self.overall.low[name], f"{name}_high": self.overall.high[name]}
        flat |= self.counts
        for language, row in self.matrix.items():
            for other, cell in row.items():
                flat |= {f"{language}-{other}_{name}": value for name, value in cell.means.items()}
        return flat

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON: ``overall``, ``matrix``, ``counts``; a measure is its mean, low and high."""
        matrix = {
            language: {other: _whole(cell) for other, cell in row.items()} for language, row in self.matrix.items()
        }
        return {"overall": _whole(self.overall), "matrix": matrix, "counts": dict(self.counts)}

    def table(self) -> str:
        """The measures in percent with their intervals, a line each; then a matrix of acc@1 and one of MRR."""
        width = max(map(len, self.overall.means))
        lines = [
            f"{name:<{width}}  {100 * mean:5.1f}  ({100 * low:.1f} to {100 * high:.1f})"
            for name, mean, low, high in zip(
                self.overall.means, self.overall.means.values(), self.overall.low.values(), self.overall.high.values()
            )
        ]
        lines += [f"{count:,} {name[2:].replace('_', ' ')}" for name, count in self.counts.items() if count]
        shown = [name for name in ("acc@1", "mrr") if name in self.overall.means and self.matrix]
        return "\n".join(lines + [line for name in shown for line in ["", *self._grid(name)]])

    def _grid(self, name: str) -> list[str]:
        columns = sorted({other for row in self.matrix.values() for other in row})
        head = f"{name} by language of query (down) and passages (across)"
        width, first = max([5, *map(len, columns)]), max([0, *map(len, self.matrix)])
        lines = [head, " " * first + "".join(f"  {other:>{width}}" for other in columns)]
        for language, row in self.matrix.items():
            cells = [f"{100 * row[other].means[name]:.1f}" if other in row else "-" for other in columns]
            lines.append(f"{language:<{first}}" + "".join(f"  {cell:>{width}}" for cell in cells))
        return lines


def measures(scores: RankingScores) -> list[str]:
    """Names of the columns of ``scores.per_query``."""
    return [*(f"acc@{k}" for k in scores.accuracy_at), "mrr", "map"]


def _whole(found: RankingWithInterval) -> dict[str, Any]:
    figures: dict[str, Any] = {
        name: {"mean": mean, "low": found.low[name], "high": found.high[name]} for name, mean in found.means.items()
    }
    return {**figures, "n_queries": found.scores.n_queries, "n_without_relevant": found.scores.n_without_relevant}
