"""Evaluating encoders and cross-encoders.

``tatoeba``        :class:`TatoebaEvaluator`, for ``SentenceTransformerTrainer(evaluator=...)`` or on its own
``tatoeba_data``   languages and groups; aligned text with English, checked, or read from what the command line names
``precision``      :class:`PrecisionEvaluator`: translations among the N nearest, of any pair of languages
``matching``       P@N, and the weighted F1 that mteb reports for Tatoeba
``xsim``           errors of similarity search by margin over several languages
``bucc``           :class:`BuccEvaluator`: precision, recall and F1 of mined pairs
``mining_scores``  mined pairs compared with gold at a threshold, and where that comes from
``ranking``        acc@k, MRR and MAP; by query and passage language; bootstrap intervals
``reranking``      :class:`RerankingEvaluator`: cross-encoders on queries with candidates in several languages
``retrieval``      :class:`RetrievalEvaluator`: MRR and Recall by language, BM25, mixed pools and their language bias
``results``        evaluations saved in a model's folder, their rows and tables
``pictures``       token states before and after training; histograms of mining scores
``base``           what evaluators share: encoding, signature, CSV, card

Evaluators derive from sentence-transformers' base class, which takes seconds to import, so all names are loaded on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.evaluation.bucc import BuccEvaluator
    from st_xling.evaluation.matching import precision_at, translation_ranks, weighted_f1
    from st_xling.evaluation.mining_scores import MiningScores, judge_pairs
    from st_xling.evaluation.precision import PrecisionEvaluator
    from st_xling.evaluation.ranking import (
        RankingScores,
        average_precision,
        bootstrap_interval,
        ranking_matrix,
        ranking_scores,
        reciprocal_rank,
        relevant_ranks,
    )
    from st_xling.evaluation.reranking import RerankingEvaluator, RerankingReport
    from st_xling.evaluation.results import (
        KeptFigures,
        TatoebaResult,
        bucc_table,
        keep_figures,
        read_kept_figures,
        tatoeba_results,
        tatoeba_table,
    )
    from st_xling.evaluation.retrieval import RetrievalEvaluator, RetrievalReport, retrieval_table
    from st_xling.evaluation.tatoeba import TatoebaEvaluator
    from st_xling.evaluation.tatoeba_data import TATOEBA_GROUPS, resolve_languages
    from st_xling.evaluation.xsim import XsimReport, xsim_by_language
    from st_xling.utils.nearest import nearest, retrieval_accuracy

__all__ = [
    "TATOEBA_GROUPS",
    "BuccEvaluator",
    "KeptFigures",
    "MiningScores",
    "PrecisionEvaluator",
    "RankingScores",
    "RerankingEvaluator",
    "RerankingReport",
    "RetrievalEvaluator",
    "RetrievalReport",
    "TatoebaEvaluator",
    "TatoebaResult",
    "XsimReport",
    "average_precision",
    "bootstrap_interval",
    "bucc_table",
    "judge_pairs",
    "keep_figures",
    "nearest",
    "precision_at",
    "ranking_matrix",
    "ranking_scores",
    "read_kept_figures",
    "reciprocal_rank",
    "relevant_ranks",
    "resolve_languages",
    "retrieval_accuracy",
    "retrieval_table",
    "tatoeba_results",
    "tatoeba_table",
    "translation_ranks",
    "weighted_f1",
    "xsim_by_language",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
