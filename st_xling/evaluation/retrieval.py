"""Retrieval by language as an evaluator of sentence-transformers, next to BM25; the language bias of a mixed pool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.retrieval import RetrievalSet
from st_xling.evaluation.base import NO_MODEL, EvaluatorOptions, ModelUse, SignedEvaluator, sign_use
from st_xling.evaluation.results import EvaluationResult
from st_xling.evaluation.retrieval_search import (
    PoolQuery,
    Rankings,
    RetrievalPool,
    bm25_search,
    dense_search,
    retrieval_pools,
    without_queries,
)
from st_xling.utils.io import write_atomic
from st_xling.utils.options import check_choice, check_listed, require
from st_xling.utils.tables import Column, Row, format_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

POOLS = ("separate", "mixed")
#: Measures that the papers of dense multilingual retrieval print.
MEASURES = ("MRR@100", "Recall@100")

_PRINTED = {"RR": "MRR", "R": "Recall", "AP": "MAP", "P": "Precision"}


def parse_measures(names: Sequence[str]) -> dict[str, Any]:
    """Return measures of ir_measures by the names that papers print.

    Args:
        names: As ir_measures types them (``nDCG@10``, ``R@20``), or as papers do (``MRR@100``, ``Recall@100``).

    Raises:
        ValueError: If ir_measures is not installed or knows no such measure.
    """
    library: Any = require("ir_measures", "evaluating retrieval")
    try:
        return {_printed_name(measure): measure for measure in map(library.parse_measure, names)}
    except (NameError, ValueError, SyntaxError) as error:
        raise ValueError(f"measures are those of ir_measures, such as MRR@100, R@20, nDCG@10: {error}.") from error


def _printed_name(measure: Any) -> str:
    """Return the name of a measure of ir_measures as papers print it."""
    name, at, cutoff = str(measure).partition("@")
    return _PRINTED.get(name, name) + at + cutoff


@dataclass(frozen=True)
class LanguageBias:
    """Means over queries that have equally relevant passages in their own and in other languages.

    Attributes:
        own_share: Share of hits in the query's language among as many relevant hits as it has relevant passages in its
            language: 1 if all of these come before any other relevant hit. In [0, 1].
        own_first: Share of queries whose best-ranked relevant passage is in their language.
        expected: Value of both without bias: the share of the query's language among its relevant passages.
        n_queries: Number of queries that count.
        n_not_found: Number of these without a relevant hit; they are ignored in ``own_share`` and ``own_first``.
    """

    own_share: float
    own_first: float
    expected: float
    n_queries: int
    n_not_found: int


def language_bias(
    queries: Sequence[PoolQuery], rankings: Rankings, languages: Mapping[str, str]
) -> LanguageBias | None:
    """Compute the language bias: the extent to which rankings from a mixed pool favor the query's language.

    Of a query with relevant passages of several grades, only the highest grade counts: the others are not equally
    relevant. Irrelevant passages do not count, so a language whose passages are all ranked high gains nothing.

    Args:
        queries: Queries of a mixed pool.
        rankings: Query id → hits, best first.
        languages: Passage id → language.

    Returns:
        ``None`` where no query has equally relevant passages in its own language and another.
    """
    # Own share, own first and expected of each query.
    shares: list[tuple[float, float, float]] = []
    not_found = 0
    for query in queries:
        if not query.relevant:
            continue
        # Only passages of one grade are equally relevant.
        best = max(query.relevant.values())
        equal = {name for name, grade in query.relevant.items() if grade == best}
        own_language = {name for name in equal if languages[name] == query.language}
        if not own_language or len(own_language) == len(equal):
            continue
        hits = [name for name, _ in rankings.get(query.id, ()) if name in equal]
        if not hits:
            not_found += 1
            continue
        # Only so many hits could all be in the query's language: among more of them 1 could not be reached.
        first_hits = hits[: len(own_language)]
        share = sum(name in own_language for name in first_hits) / len(first_hits)
        is_own_first = float(hits[0] in own_language)
        shares.append((share, is_own_first, len(own_language) / len(equal)))
    if not shares and not not_found:
        return None
    means = [sum(column) / len(shares) for column in zip(*shares)] or [0.0, 0.0, 0.0]
    own_share, own_first, expected = means
    return LanguageBias(own_share, own_first, expected, len(shares) + not_found, not_found)


@dataclass(frozen=True)
class RetrievalReport:
    """Measures of a system's rankings.

    Attributes:
        figures: Label (``fi``, ``en-fi``) → measure → mean over its queries, in [0, 1].
        n_queries: Label → number of queries.
        bias: Language bias of a mixed pool, where queries have equally relevant passages in several languages.
        rankings: Name of the pool → query id → hits.
        signature: Everything that the measures depend on besides the system.
    """

    figures: dict[str, dict[str, float]]
    n_queries: dict[str, int]
    bias: LanguageBias | None = None
    rankings: dict[str, Rankings] = field(default_factory=dict, repr=False, compare=False)
    signature: str = ""

    @property
    def means(self) -> dict[str, float]:
        """Measure → macro average over labels."""
        rows = list(self.figures.values())
        means: dict[str, float] = {}
        for measure in rows[0]:
            means[measure] = sum(row[measure] for row in rows) / len(rows)
        return means

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        bias = {} if self.bias is None else {"language_bias": asdict(self.bias)}
        return {"figures": {**self.figures, "mean": self.means}, "n_queries": self.n_queries, **bias}


class RetrievalEvaluator(SignedEvaluator):
    """MRR@100 and Recall@100 (or other measures) per language, and their macro average.

    Passages are read, embedded and ranked chunk by chunk, see :func:`dense_search`; ir_measures counts.

    Args:
        sets: Results of :func:`~st_xling.data.retrieval.read_retrieval_set`, each with passages of another language.
        pool: ``"separate"``: queries are searched in the passages of their set, and results are labeled ``fi`` or, for
            queries of another language, ``en-fi``. ``"mixed"``: in the passages of all sets, labeled by the query's
            language, with the language bias (:func:`language_bias`).
        measures: As ir_measures types them, or ``MRR@100`` and ``Recall@100`` as papers print them. One without a
            cutoff sees as many hits as the deepest of the others, at least 100: the signature's ``depth``.
        options: Options of every evaluator, such as ``batch_size``: see
            :class:`~st_xling.evaluation.base.SignedEvaluator`.

    Returns:
        From a call, fractions in [0, 1]: ``{name}_{label}_{measure}`` and ``{name}_mean_{measure}``, whose first is the
        primary metric; in a mixed pool ``{name}_bias_own_share`` and so on, where it can be measured.

    Raises:
        ValueError: No set, sets of one language, an unknown pool or measure, ir_measures missing; while searching,
            embeddings that are zero or not finite.
    Source:
        Hu et al. 2023, section 5; Zhang et al. 2021 (Mr.TyDi).
    """

    task = "retrieval"
    title = "Passage Retrieval"

    def __init__(
        self,
        sets: Sequence[RetrievalSet],
        *,
        pool: str = "separate",
        measures: Sequence[str] = MEASURES,
        **options: Unpack[EvaluatorOptions],
    ) -> None:
        if isinstance(sets, RetrievalSet):
            raise TypeError("sets must be a list: got one RetrievalSet; pass [retrieval_set].")
        check_listed("sets", sets, RetrievalSet, "[read_retrieval_set(folder, language='de')]")
        check_choice("pool", pool, POOLS)
        self.measures = parse_measures(measures)
        self.cutoff = max([100, *(measure.params.get("cutoff", 100) for measure in self.measures.values())])
        super().__init__(f"mean_{next(iter(self.measures))}", **options)
        self.pool = pool
        self.sets = tuple(sets)
        self.pools = retrieval_pools(sets, mixed=pool == "mixed")

    @property
    def languages(self) -> list[str]:
        """Languages of queries and passages."""
        codes: set[str] = set()
        for retrieval_set in self.sets:
            codes |= {retrieval_set.language, *retrieval_set.queries}
        return sorted(codes)

    def sign(self, use: ModelUse) -> str:
        """Return the signature; its eight hex digits identify texts and judgments."""
        digest = hashlib.sha256("\n".join(pool.sha256 for pool in self.pools).encode()).hexdigest()[:8]
        queries = chain.from_iterable(pool.queries for pool in self.pools)
        query_itself = "ignored" if any(query.itself for query in queries) else None
        return sign_use(
            "retrieval",
            passages=[retrieval_set.language for retrieval_set in self.sets],
            pool=self.pool,
            measures=list(self.measures),
            depth=self.cutoff,
            ties="id",
            query_itself=query_itself,
            data=f"{self.data_name}@{digest}",
            use=use,
        )

    def report(self, model: SentenceTransformer | None) -> RetrievalReport:
        """Compute the measures of an encoder, or for ``None`` of BM25."""
        use = NO_MODEL if model is None else ModelUse.of(model, self.languages, retrieval=True)
        figures: dict[str, dict[str, float]] = {}
        counts: dict[str, int] = {}
        rankings: dict[str, Rankings] = {}
        bias = None
        for pool in self.pools:
            depth = self.cutoff + max(len(query.itself) for query in pool.queries)
            if model is None:
                ranked = bm25_search(pool, k=depth, show_progress_bar=self.show_progress_bar)
            else:
                ranked = dense_search(
                    pool, model, k=depth, batch_size=self.batch_size, show_progress_bar=self.show_progress_bar
                )
            ranked = without_queries(pool.queries, ranked, k=self.cutoff)
            rankings[pool.name] = ranked
            values = self.per_query(pool.queries, ranked)
            for label in dict.fromkeys(query.label for query in pool.queries):
                ids = [query.id for query in pool.queries if query.label == label]
                figures[label] = {}
                for measure, value_by_id in values.items():
                    figures[label][measure] = sum(value_by_id[query_id] for query_id in ids) / len(ids)
                counts[label] = len(ids)
            if self.pool == "mixed":
                bias = language_bias(pool.queries, ranked, pool.languages)
        return RetrievalReport(figures, counts, bias, rankings, self.sign(use))

    def bm25_report(self) -> RetrievalReport:
        """Compute the measures of BM25 over the same queries and passages."""
        return self.report(None)

    def measure(self, model: SentenceTransformer) -> EvaluationResult:
        """Embed, search and average."""
        report = self.report(model)
        metrics: dict[str, float] = {}
        for label, figures in {**report.figures, "mean": report.means}.items():
            metrics |= {f"{label}_{measure}": value for measure, value in figures.items()}
        if report.bias is not None:
            metrics |= {f"bias_{key}": value for key, value in asdict(report.bias).items()}
        return EvaluationResult(metrics, *retrieval_rows({self.name: report}), report.signature)

    def per_query(self, queries: Sequence[PoolQuery], rankings: Rankings) -> dict[str, dict[str, float]]:
        """Compute measure → query id → value in [0, 1]; a query without hits, or without a relevant passage, has 0.

        Args:
            queries: Queries with their relevant passages.
            rankings: Their rankings, whose order counts and not their scores, which ir_measures would sort again.
        """
        relevant = {query.id: query.relevant for query in queries}
        ranked: dict[str, dict[str, float]] = {}
        for query in queries:
            hits = rankings.get(query.id, ())
            ranked[query.id] = {name: -float(rank) for rank, (name, _) in enumerate(hits)}
        # ir_measures leaves out queries without a relevant passage.
        values = {name: dict.fromkeys(relevant, 0.0) for name in self.measures}
        library: Any = require("ir_measures", "evaluating retrieval")
        for value in library.iter_calc(list(self.measures.values()), relevant, ranked):
            values[_printed_name(value.measure)][value.query_id] = float(value.value)
        return values


def retrieval_rows(systems: Mapping[str, RetrievalReport]) -> tuple[list[Column], list[Row]]:
    """Return columns and rows of the first system; those of others, as BM25, are next to it, and have names.

    Args:
        systems: Name of the system → its report, all over the same queries.
    """
    first = next(iter(systems))
    measures = list(systems[first].means)
    columns: list[Column] = []
    for name in systems:
        for measure in measures:
            is_main = measure == measures[0]
            if name == first and name != "BM25":
                metric = measure.lower().replace("@", "_at_")
                columns.append(Column(measure, metric, picture=is_main))
            else:
                columns.append(Column(f"{name} {measure}", picture=is_main))

    figures_of_systems = [{**report.figures, "mean": report.means} for report in systems.values()]
    n_queries = systems[first].n_queries
    rows: list[Row] = []
    for label in figures_of_systems[0]:
        values: list[float | None] = []
        for figures in figures_of_systems:
            values += [figures[label][measure] for measure in measures]
        arguments = {"queries": n_queries[label]} if label in n_queries else {}
        rows.append(Row(label, values, average=label == "mean", arguments=arguments))
    return columns, rows


def retrieval_table(systems: Mapping[str, RetrievalReport]) -> str:
    """Format the rows of :func:`retrieval_rows`, and the language bias of each system.

    Args:
        systems: Name of the system → its report, all over the same queries.

    Example:
        >>> report = RetrievalReport({"fi": {"MRR@100": 0.5, "Recall@100": 0.875}}, {"fi": 8})
        >>> print(retrieval_table({"BM25": report}))
        language  BM25 MRR@100  BM25 Recall@100
        fi                50.0             87.5
        ---------------------------------------
        mean              50.0             87.5
    """
    lines = [format_rows("language", *retrieval_rows(systems))]
    for name, report in systems.items():
        if (bias := report.bias) is not None:
            lines += [
                "",
                f"{name}, of equally relevant hits in the query's language: {100 * bias.own_share:.1f} % "
                f"(first hit {100 * bias.own_first:.1f} %; without bias {100 * bias.expected:.1f} %; "
                f"{bias.n_queries:,} queries, {bias.n_not_found:,} without a relevant hit)",
            ]
    return "\n".join(lines)


def check_run_ids(pools: Iterable[RetrievalPool]) -> None:
    """Check that a TREC run can hold the ids of queries and passages.

    Raises:
        ValueError: For an id with a space, as some of BEIR's have: spaces divide the columns of a run.
    """
    for pool in pools:
        for name in chain((query.id for query in pool.queries), pool.passage_ids):
            if len(name.split()) != 1:
                raise ValueError(
                    f"a TREC run cannot hold ids with spaces, which divide its columns: got {name!r}; rename them in "
                    "the data, or leave out --runs."
                )


def write_run(path: str | Path, rankings: Rankings, *, tag: str) -> None:
    """Write a TREC run: ``query Q0 passage rank score tag`` lines.

    Scores fall strictly, by as little as float32 can hold where hits are equal: trec_eval and its relatives do not read
    the ranks, sort by scores in float32, and break ties by the passage's id, so that they would measure another ranking
    than ours.

    Args:
        path: File to write, in a folder that is created if it is missing.
        rankings: Query id → hits, best first. Ids are written as in the data, without the language before them.
        tag: Name of the system.
    """
    lines = []
    for query, hits in rankings.items():
        names = [name for name, _ in hits]
        scores = strictly_falling([score for _, score in hits])
        for rank, (name, score) in enumerate(zip(names, scores), 1):
            lines.append(f"{query.partition(':')[2]} Q0 {name} {rank} {score:.9g} {tag}\n")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(lines).encode("utf-8"))


def write_judgments(path: str | Path, queries: Iterable[PoolQuery], passage_ids: Sequence[str]) -> None:
    """Write TREC judgments, ``query 0 passage grade`` lines, with the ids of :func:`write_run`.

    In a mixed pool these are not those of the data, and XQuAD-R and the phrasebook have no file of judgments.

    Args:
        path: File to write, in a folder that is created if it is missing.
        queries: Queries of a label.
        passage_ids: Ids of all passages of the pool.
    """
    lines = []
    for query in queries:
        # Grades of 0 are not kept; a query that has no others counts as 0 only if it has a line.
        grades = query.relevant or {passage_ids[0]: 0}
        lines += [f"{query.id.partition(':')[2]} 0 {name} {grade}\n" for name, grade in grades.items()]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(lines).encode("utf-8"))


def strictly_falling(scores: Sequence[float]) -> list[float]:
    """Return scores in float32, each below the one before it: equal ones by the least step that float32 has.

    Args:
        scores: Scores of a ranking, best first.

    Example:
        >>> first, second = strictly_falling([0.5, 0.5])
        >>> first, first > second > 0.4999999
        (0.5, True)
    """
    falling: list[float] = []
    limit = np.float32(np.inf)
    for score in np.asarray(scores, dtype=np.float32):
        limit = min(score, np.nextafter(limit, np.float32(-np.inf)))
        falling.append(float(limit))
    return falling
