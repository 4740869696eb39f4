"""Judging encoders: Tatoeba similarity search, BUCC mining, xsim, ranking, and what they are made of.

``nearest``        1-nearest neighbours and retrieval accuracy
``languages``      Tatoeba language codes and named groups
``tatoeba``        :class:`TatoebaEvaluator`, for ``SentenceTransformerTrainer(evaluator=...)`` or on its own
``tatoeba_pairs``  its inputs, checked
``precision``      :class:`PrecisionEvaluator`: translations among the N nearest (``precision_at``)
``weighted_f1``    the figure that mteb reports for Tatoeba
``xsim_report``    errors of similarity search by margin over several languages
``bucc``           :class:`BuccEvaluator`: precision, recall and F1 of mined pairs
``bucc_corpora``   its inputs, checked
``mining_scores``  mined pairs judged at a threshold; ``mining_thresholds``: where that comes from
``ranking``        acc@k, MRR and MAP; ``language_matrix``: by query and passage language
``bootstrap``      how far such means might have come out otherwise
``reranking``      :class:`RerankingEvaluator`: cross-encoders on queries with candidates in several languages
``reranking_report``  its figures, their intervals and its table
``transfer``       zero-shot transfer: XNLI, PAWS-X, POS after English fine-tuning
``retrieval``      MRR and Recall of retrievers by language, BM25, mixed pools and their language bias
``results``        evaluations saved in a model's folder, their rows and tables; ``bucc_thresholds``: those to publish
``pictures``       token states before and after training; histograms of mining scores
``signed``         what evaluators share: encoding, signature, CSV, card
``encode_once``    embeddings, each distinct text encoded once
``signatures``     short names for data in signatures

Evaluators derive from sentence-transformers' base class, which takes seconds to import, so they are loaded on first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from st_xling.evaluation.bootstrap import bootstrap_interval
from st_xling.evaluation.language_matrix import ranking_matrix
from st_xling.evaluation.languages import TATOEBA_GROUPS, resolve_languages
from st_xling.evaluation.precision_at import precision_at, translation_ranks
from st_xling.evaluation.ranking import (
    RankingScores,
    average_precision,
    ranking_scores,
    reciprocal_rank,
    relevant_ranks,
)
from st_xling.evaluation.results import (
    KeptFigures,
    TatoebaResult,
    bucc_table,
    keep_figures,
    read_kept_figures,
    tatoeba_results,
    tatoeba_table,
)
from st_xling.evaluation.weighted_f1 import weighted_f1
from st_xling.utils.nearest import nearest, retrieval_accuracy

if TYPE_CHECKING:
    from st_xling.evaluation.bucc import BuccEvaluator
    from st_xling.evaluation.mining_scores import MiningScores, judge_pairs
    from st_xling.evaluation.precision import PrecisionEvaluator
    from st_xling.evaluation.reranking import RerankingEvaluator
    from st_xling.evaluation.reranking_report import RerankingReport
    from st_xling.evaluation.tatoeba import TatoebaEvaluator
    from st_xling.evaluation.xsim_report import XsimReport, xsim_by_language

__all__ = [
    "TATOEBA_GROUPS",
    "BuccEvaluator",
    "KeptFigures",
    "MiningScores",
    "PrecisionEvaluator",
    "RankingScores",
    "RerankingEvaluator",
    "RerankingReport",
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
    "tatoeba_results",
    "tatoeba_table",
    "translation_ranks",
    "weighted_f1",
    "xsim_by_language",
]

_LOADED_ON_USE = {
    "BuccEvaluator": "bucc",
    "MiningScores": "mining_scores",
    "PrecisionEvaluator": "precision",
    "RerankingEvaluator": "reranking",
    "RerankingReport": "reranking_report",
    "TatoebaEvaluator": "tatoeba",
    "XsimReport": "xsim_report",
    "judge_pairs": "mining_scores",
    "xsim_by_language": "xsim_report",
}


def __getattr__(name: str) -> Any:
    if name in _LOADED_ON_USE:
        return getattr(import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
