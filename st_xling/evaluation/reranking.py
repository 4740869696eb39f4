"""Cross-lingual passage re-ranking: does a cross-encoder put the relevant passage first, in whatever language it is?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.reranking.pools import CandidatePool
from st_xling.evaluation.base import ModelUse, SignedEvaluator, sign_use
from st_xling.evaluation.measures import (
    RankingScores,
    bootstrap_interval,
    ranking_by_relevant_language,
    ranking_matrix,
    ranking_scores,
)
from st_xling.evaluation.results import EvaluationResult
from st_xling.models.pair_scorer import PairScorer
from st_xling.models.view import model_options
from st_xling.utils.options import Autocast, check_listed
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row, format_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import CrossEncoder


@dataclass(frozen=True)
class RerankingReport:
    """Measures of all queries, and of each query language by each passage language.

    Attributes:
        overall: Measure → ``mean``, ``low`` and ``high`` end of its interval, and ``chance``, the mean of a random
            order, with all candidates of a query ranked together; and ``n_queries``, ``n_without_relevant`` and
            ``n_candidates``, the mean number of candidates of a query.
        matrix: Query language → passage language → the same, with only the candidates of that language ranked.
        by_relevant: Query language → language of the relevant passages → the same, with all candidates of a query
            ranked together.
        counts: Number of queries and passages that the measures skip or count as failed, by name: see
            :class:`~st_xling.evaluation.RerankingEvaluator`.
        examples: Queries with their best passages, numbered from 1, as :func:`examples_text` takes them.
        signature: Everything that the measures depend on besides the model.
    """

    overall: dict[str, Any]
    matrix: dict[str, dict[str, dict[str, Any]]]
    by_relevant: dict[str, dict[str, dict[str, Any]]]
    counts: dict[str, int]
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    signature: str = ""

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return [name for name in self.overall if not name.startswith("n_")]

    def metrics(self) -> dict[str, float]:
        """Return all flat: ``{measure}``, ``_low`` and ``_high``, the counts, ``{query}-{passage}_{measure}``."""
        flat = {name: self.overall[name]["mean"] for name in self.names}
        for name in self.names:
            flat[f"{name}_low"] = self.overall[name]["low"]
            flat[f"{name}_high"] = self.overall[name]["high"]
        flat |= self.counts
        for query_language, cells in self.matrix.items():
            for passage_language, cell in cells.items():
                pair = f"{query_language}-{passage_language}"
                flat |= {f"{pair}_{name}": cell[name]["mean"] for name in self.names}
        return flat

    def rows(self) -> tuple[list[Column], list[Row]]:
        """Return a column for each measure, and rows: all queries with intervals, then each pair of languages."""
        columns = []
        for name in self.names:
            title = name if name.startswith("acc") else name.upper()
            columns.append(Column(title, name.replace("acc@", "accuracy_at_"), picture=name == "acc@1"))
        measures = [self.overall[name] for name in self.names]
        means = [measure["mean"] for measure in measures]
        intervals = [[measure["low"], measure["high"]] for measure in measures]
        rows = [Row("all", means, average=True, intervals=intervals)]
        for query_language, cells in self.matrix.items():
            for passage_language, cell in cells.items():
                means = [cell[name]["mean"] for name in self.names]
                rows.append(Row(f"{query_language} → {passage_language}", means))
        return columns, rows

    def as_dict(self) -> dict[str, Any]:
        """Return ``overall``, ``matrix``, ``by_relevant``, ``counts``, and ``examples`` if there are any, for JSON."""
        content = {
            "overall": self.overall,
            "matrix": self.matrix,
            "by_relevant": self.by_relevant,
            "counts": self.counts,
        }
        if self.examples:
            content["examples"] = self.examples
        return content

    def table(self) -> str:
        """Format the measures in percent with their intervals, then by pair of languages; examples."""
        width = max(map(len, self.names))
        means: dict[str, str] = {}
        for name in self.names:
            measure = self.overall[name]
            interval = f"({100 * measure['low']:.1f} to {100 * measure['high']:.1f})"
            means[name] = f"{name:<{width}}  {100 * measure['mean']:5.1f}  {interval}"
        means_width = max(map(len, means.values()))
        lines = []
        for name, mean in means.items():
            lines.append(f"{mean:<{means_width}}  by chance {100 * self.overall[name]['chance']:5.1f}")
        lines.append(f"{self.overall['n_candidates']:,.0f} candidates a query on average")
        for name, count in self.counts.items():
            if count:
                what = name.removeprefix("n_").replace("_", " ")
                lines.append(f"{count:,} {what}")
        lines += ["", self._table_by_language()]
        if self.examples:
            lines += ["", examples_text({"best": self.examples})]
        return "\n".join(lines)

    def _table_by_language(self) -> str:
        """Format the measures by query and passage language, with the sizes that decide how easy a cell is.

        Few candidates of a language make it easy: any model finds one of ten among the first ten.
        """
        columns, rows = self.rows()
        counts = [Column(name, percent=False, decimals=0) for name in ("queries", "candidates")]
        counted = []
        chances: dict[str, list[float]] = {name: [] for name in self.names}
        cells: list[dict[str, Any]] = []
        for cells_of_query_language in self.matrix.values():
            cells += cells_of_query_language.values()
        for row, cell in zip(rows[1:], cells, strict=True):
            n_counted = cell["n_queries"] - cell["n_without_relevant"]
            counted.append(Row(row.label, [n_counted, cell["n_candidates"], *row.values]))
            if n_counted:
                for name, values in chances.items():
                    values.append(100 * cell[name]["chance"])
        table = format_rows("query → passages", [*counts, *columns], counted)
        parts = []
        for name, values in chances.items():
            if name.startswith("acc@") and values:
                ends = sorted({f"{end:.1f}" for end in (min(values), max(values))}, key=float)
                parts.append(f"{name} {' to '.join(ends)}")
        return f"{table}\nby chance: {', '.join(parts)}" if parts else table


def with_intervals(scores: RankingScores, *, samples: int = 1000, seed: int = 0) -> dict[str, Any]:
    """Return the measures, each with the ends of its bootstrap interval and its chance, and the counts, for JSON."""
    lows, highs = bootstrap_interval(scores.per_query, samples=samples, seed=seed)
    content = {**scores.as_dict(), "n_candidates": scores.n_candidates}
    for (name, mean), low, high in zip(scores.means.items(), lows.tolist(), highs.tolist()):
        content[name] = {"mean": mean, "low": low, "high": high, "chance": scores.chance[name]}
    return content


def examples_text(examples: Mapping[str, Mapping[str, Mapping[str, Any]]], *, width: int = 100) -> str:
    """Format each query with its best passages by one or several models, the relevant ones marked (XPR, table 5).

    Args:
        examples: Label of a model → number of the query → ``query``, ``language``, ``rank`` of the first relevant
            passage (``None``: there is none), and ``passages``: ``text``, ``language``, ``relevant``, best first.
        width: Characters that are shown of a passage.
    """
    lines = []
    for number, first in next(iter(examples.values())).items():
        lines.append(f"{number}. {first['language']}: {' '.join(first['query'].split())}")
        for label, of_model in examples.items():
            lines.append(f"   {label} (relevant: {of_model[number]['rank'] or 'none'})")
            for rank, passage in enumerate(of_model[number]["passages"], 1):
                text = " ".join(passage["text"].split())
                if len(text) > width:
                    text = f"{text[: width - 1]}…"
                mark = "*" if passage["relevant"] else " "
                lines.append(f"   {mark} {rank}. {passage['language']}: {text}")
    return "\n".join(lines)


class RerankingEvaluator(SignedEvaluator):
    """acc@k, MRR, MAP and nDCG@10 of queries that each have their own candidates, overall and by language.

    Candidates are ranked by raw scores, before an activation could round two into one; equal ones count against the
    model. A passage is cut where a pair is too long for the model, a query never: one that leaves no room for a passage
    has no scores, which counts as all of them equal.

    Args:
        pools: Queries with candidates: :class:`~st_xling.data.reranking.pools.CandidatePool` each, such as
            :class:`~st_xling.data.reranking.pools.CandidatePools`.
        samples: Bootstrap samples for the intervals, see :func:`~st_xling.evaluation.bootstrap_interval`.
        seed: Seed of the draw.
        token_budget: Tokens scored at a time, see :class:`~st_xling.models.pair_scorer.PairScorer`.
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in.
        examples: Queries, drawn by chance, whose three best passages the report has.
        name: Prefix of the metrics.
        data_name: Name of the data in the signature; by default ``name``.
        show_progress_bar: Whether to show one while scoring.

    Returns:
        From a call ``{name}_acc@1`` (primary), ``_acc@10``, ``_mrr``, ``_map``, ``_ndcg@10``, each also with ``_low``
        and ``_high``; ``_n_queries``, ``_n_without_relevant``, ``_n_cut_passages`` (pairs) and ``_n_long_queries``;
        and the means of ``{name}_{query language}-{passage language}_acc@1``, ….

    Raises:
        ValueError: Without pools, or on options out of range; from a call as
            :class:`~st_xling.models.pair_scorer.PairScorer`.
    Source:
        Chen et al. 2020 (XPR), section V-A.

    Example:
        >>> from st_xling.data.reranking.pools import CandidatePool
        >>> pool = CandidatePool("Wer?", "de", ["He.", "There."], ["en", "en"], [1, 0])
        >>> RerankingEvaluator([pool], name="dev").primary_metric
        'dev_acc@1'
    """

    task = "reranking"
    title = "Passage Re-ranking"

    def __init__(
        self,
        pools: Sequence[CandidatePool],
        *,
        samples: int = 1000,
        seed: int = 0,
        token_budget: int | None = None,
        autocast: Autocast | None = None,
        examples: int = 0,
        name: str = "",
        data_name: str | None = None,
        show_progress_bar: bool = False,
    ) -> None:
        check_listed("pools", pools, CandidatePool, "candidate_pools(questions), or pools of your own")
        if not len(pools):
            raise ValueError("expected at least one query with candidates: got none; check the data and its languages.")
        super().__init__("acc@1", name=name, data_name=data_name, show_progress_bar=show_progress_bar)
        self.pools = pools
        self.n_examples = examples
        self.samples = samples
        self.seed = seed
        self.token_budget = token_budget
        self.autocast: Autocast | None = autocast

    @cached_property
    def _digest(self) -> str:  # cached: it reads all text
        # Each text once: the same few hundred passages are candidates of every query.
        passage_rows: dict[str, int] = {}
        content: list[list[Any]] = []
        for pool in self.pools:
            passages = [passage_rows.setdefault(passage, len(passage_rows)) for passage in pool.passages]
            labels = [int(label) for label in pool.labels]
            content.append([pool.query, pool.query_language, passages, list(pool.passage_languages), labels])
        return sha8([content, list(passage_rows)])

    def sign(self, use: ModelUse) -> str:
        """Return the signature; its eight hex digits identify texts, languages and labels."""
        # Pools that were made from questions know how; others are described by their languages.
        described = getattr(self.pools, "signature", "")
        if not described:
            query_languages = {pool.query_language for pool in self.pools}
            passage_languages: set[str] = set()
            for pool in self.pools:
                passage_languages.update(pool.passage_languages)
            described = f"queries:{','.join(sorted(query_languages))}|passages:{','.join(sorted(passage_languages))}"
        return sign_use(
            "reranking",
            f"n:{len(self.pools)}",
            described,
            cutoff="none",
            ties="pessimistic",
            no_relevant="skip",
            interval=f"95%,samples={self.samples},seed={self.seed}",
            autocast=self.autocast,
            data=f"{self.data_name}@{self._digest}",
            use=use,
        )

    def measure(self, model: CrossEncoder) -> EvaluationResult:
        """Score, rank and average."""
        report = self.report(model)
        return EvaluationResult(report.metrics(), *report.rows(), report.signature)

    def report(self, model: CrossEncoder) -> RerankingReport:
        """Compute the measures with all their intervals, without storing them anywhere."""
        scorer = PairScorer(
            model,
            long_queries="lowest",
            progress=self.show_progress_bar,
            token_budget=self.token_budget,
            autocast=self.autocast,
        )
        pairs: list[tuple[str, str]] = []
        for pool in self.pools:
            pairs += [(pool.query, passage) for passage in pool.passages]
        # Scores come flat, pool after pool.
        ends = np.cumsum([len(pool.passages) for pool in self.pools])
        scores = np.split(scorer.score(pairs, raw=True), ends[:-1])

        labels = [pool.labels for pool in self.pools]
        overall = ranking_scores(scores, labels)
        query_languages = [pool.query_language for pool in self.pools]
        passage_languages = [pool.passage_languages for pool in self.pools]
        matrix = ranking_matrix(scores, labels, query_languages, passage_languages)
        by_relevant = ranking_by_relevant_language(scores, labels, query_languages, passage_languages)
        counts = {
            "n_queries": overall.n_queries,
            # Where pools leave such queries out, they still know how many.
            "n_without_relevant": max(overall.n_without_relevant, getattr(self.pools, "without_relevant", 0)),
            "n_cut_passages": scorer.cut_passages,
            "n_long_queries": sum(len(row) > 0 and bool(np.isneginf(row).all()) for row in scores),
        }
        drawn = np.random.default_rng(self.seed).permutation(len(self.pools))[: self.n_examples]
        examples: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(drawn.tolist(), 1):
            examples[str(number)] = self._describe_example(self.pools[row], scores[row])
        return RerankingReport(
            overall=with_intervals(overall, samples=self.samples, seed=self.seed),
            matrix=self._cells_with_intervals(matrix),
            by_relevant=self._cells_with_intervals(by_relevant),
            counts=counts,
            examples=examples,
            signature=self.sign(ModelUse(options=model_options(model))),
        )

    def _cells_with_intervals(
        self, cells: Mapping[str, Mapping[str, RankingScores]]
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the measures of each pair of languages with their intervals."""
        content: dict[str, dict[str, dict[str, Any]]] = {}
        for language, row in cells.items():
            content[language] = {}
            for other_language, scores in row.items():
                content[language][other_language] = with_intervals(scores, samples=self.samples, seed=self.seed)
        return content

    def _describe_example(self, pool: CandidatePool, scores: NDArray[np.float64]) -> dict[str, Any]:
        """Return the best passages of a query, equal ones in the order in which they are ranked."""
        labels = np.asarray(pool.labels)
        order = np.lexsort((labels, -scores))
        relevant = np.flatnonzero(labels[order])
        passages = [
            {"text": pool.passages[i], "language": pool.passage_languages[i], "relevant": bool(labels[i])}
            for i in order[:3].tolist()
        ]
        return {
            "query": pool.query,
            "language": pool.query_language,
            "rank": int(relevant[0]) + 1 if len(relevant) else None,
            "passages": passages,
        }
