"""Retrieval by language, as an evaluator of sentence-transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from st_xling.data.retrieval import RetrievalSet
from st_xling.evaluation.retrieval.bias import language_bias
from st_xling.evaluation.retrieval.bm25 import Bm25
from st_xling.evaluation.retrieval.dense import DenseSearch
from st_xling.evaluation.retrieval.measures import MEASURES, Measures, Rankings
from st_xling.evaluation.retrieval.pool import RetrievalPool, mixed_pool, separate_pools
from st_xling.evaluation.retrieval.report import RetrievalReport
from st_xling.evaluation.signed import Figures, SignedEvaluator

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

POOLS = ("separate", "mixed")


class RetrievalEvaluator(SignedEvaluator):
    """MRR@100 and Recall@100 (or other measures) per language, and their macro average.

    Sentence-transformers' ``InformationRetrievalEvaluator`` embeds and ranks, ir_measures counts. Passages are read and
    embedded chunk by chunk: see :class:`DenseSearch`.

    Args:
        sets: Of :func:`~st_xling.data.retrieval.read_retrieval_set`, each with passages of another language.
        pool: ``"separate"``: queries are searched in the passages of their set, and figures are labelled ``fi`` or, for
            queries of another language, ``en-fi``. ``"mixed"``: in the passages of all sets, labelled by the query's
            language, with a figure of language bias (:func:`language_bias`).
        measures: As ir_measures types them, or ``MRR@100`` and ``Recall@100`` as papers print them. One without a
            cutoff sees as many hits as the deepest of the others, at least 100: the signature's ``depth``.
        batch_size: Texts embedded at a time.
        name: Prefix of the metrics and name of the data in the signature.
        show_progress_bar: Whether to show one.
        truncate_dim: Cut embeddings to this many dimensions; the model's own setting by default.
        write_csv: Whether to append ``{name}_results.csv`` under the ``output_path`` of a call.
    Returns:
        From a call, fractions in [0, 1]: ``{name}_{label}_{measure}`` and ``{name}_mean_{measure}``, whose first is the
        primary metric; in a mixed pool ``{name}_bias_own_share`` and so on, where it can be told.
    Raises:
        ValueError: No set, sets of one language, an unknown pool or measure, ir_measures missing; while searching,
            embeddings that are zero or not finite.
    Source:
        Hu et al. 2023, section 5; Zhang et al. 2021 (Mr.TyDi).
    """

    def __init__(
        self,
        sets: Sequence[RetrievalSet],
        *,
        pool: str = "separate",
        measures: Sequence[str] = MEASURES,
        batch_size: int = 64,
        name: str = "retrieval",
        show_progress_bar: bool = False,
        truncate_dim: int | None = None,
        write_csv: bool = True,
    ) -> None:
        if pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(POOLS)}: got {pool!r}.")
        self.measures = Measures(measures)
        super().__init__(
            name=name,
            default_name="retrieval",
            primary=f"mean_{self.measures.names[0]}",
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            truncate_dim=truncate_dim,
            write_csv=write_csv,
        )
        self.pool = pool
        self.sets = tuple(sets)
        self.pools: list[RetrievalPool] = [mixed_pool(sets)] if pool == "mixed" else separate_pools(sets)

    @property
    def languages(self) -> list[str]:
        """Of queries and passages."""
        return sorted({code for found in self.sets for code in (found.language, *found.queries)})

    @property
    def signature(self) -> str:
        """What a figure depends on besides the model; the eight hex digits identify texts and judgements."""
        digest = hashlib.sha256("\n".join(pool.sha256 for pool in self.pools).encode()).hexdigest()[:8]
        return self.sign(
            "retrieval",
            f"passages:{','.join(found.language for found in self.sets)}",
            f"pool:{self.pool}",
            f"measures:{','.join(self.measures.names)}",
            f"depth:{self.measures.cutoff}",
            "ties:id",
            data=f"{self.name}@{digest}",
        )

    def report(self, model: SentenceTransformer) -> RetrievalReport:
        """Figures of an encoder."""
        options: dict[str, Any] = {
            "k": self.measures.cutoff,
            "batch_size": self.batch_size,
            "show_progress_bar": self.show_progress_bar,
            "truncate_dim": self.truncate_dim,
        }
        self.joint_mean = False

        def search(pool: RetrievalPool) -> Rankings:
            dense = DenseSearch(pool, **options)
            rankings = dense.search(model)
            self.joint_mean |= dense.joint_mean
            return rankings

        return self._report(search)

    def bm25_report(self, **options: Any) -> RetrievalReport:
        """Figures of BM25 over the same queries and passages; ``options`` of :class:`Bm25`."""
        cutoff, bar = self.measures.cutoff, self.show_progress_bar
        return self._report(lambda pool: Bm25(pool, show_progress_bar=bar, **options).search(cutoff))

    def figures(self, model: SentenceTransformer) -> Figures:
        """Embed, search and average."""
        report = self.report(model)
        rows = {**report.figures, "mean": report.means}
        metrics = {f"{label}_{measure}": value for label, row in rows.items() for measure, value in row.items()}
        if report.bias is not None:
            metrics |= {f"bias_{key}": value for key, value in report.bias.as_dict().items()}
        table = [[label, *(row[name] for name in self.measures.names)] for label, row in rows.items()]
        return Figures(metrics, ("label", *self.measures.names), table)

    def _report(self, search: Callable[[RetrievalPool], Rankings]) -> RetrievalReport:
        figures: dict[str, dict[str, float]] = {}
        counts: dict[str, int] = {}
        rankings: dict[str, Rankings] = {}
        bias = None
        for pool in self.pools:
            found = rankings[pool.name] = search(pool)
            values = self.measures.per_query(pool.queries, found)
            for label in dict.fromkeys(query.label for query in pool.queries):
                ids = [query.id for query in pool.queries if query.label == label]
                figures[label] = {name: sum(row[each] for each in ids) / len(ids) for name, row in values.items()}
                counts[label] = len(ids)
            if self.pool == "mixed":
                bias = language_bias(pool.queries, found, pool.languages)
        return RetrievalReport(figures, counts, bias, rankings)
