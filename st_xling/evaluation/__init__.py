"""Evaluating encoders and cross-encoders.

- ``tatoeba``: :class:`TatoebaEvaluator`, for ``SentenceTransformerTrainer(evaluator=...)`` or on its own
- ``tatoeba_data``: languages and groups; aligned text with English, checked, or read from what the command line names
- ``precision``: :class:`PrecisionEvaluator`: translations among the N nearest, of any pair of languages
- ``xsim``: errors of similarity search by margin over several languages; xsim++, with hard near-translations
- ``bucc``: :class:`BuccEvaluator`: precision, recall and F1 of mined pairs
- ``mining_scores``: mined pairs compared with gold at a threshold, and where that comes from
- ``alignment``: word alignments against gold: error rate by layer
- ``documents``: aligned documents against gold: strict and lax precision, recall and F1
- ``ranking``: acc@k, MRR, MAP and nDCG; by query and passage language; bootstrap intervals
- ``reranking``: :class:`RerankingEvaluator`: cross-encoders on queries with candidates in several languages
- ``retrieval``: :class:`RetrievalEvaluator`: MRR and Recall by language, mixed pools and their language bias
- ``retrieval_search``: passages for queries, by an encoder or BM25
- ``results``: :class:`EvaluationResult`: metrics, rows and signature; saved in a model's folder
- ``mteb_results``: :func:`to_mteb`: results of Tatoeba and of pairs as mteb's files
- ``postprocessing``: centering, whitening, fewer dimensions and int8, with retrieval before and after
- ``pictures``: token states before and after training; histograms of mining scores
- ``compare``: several encoders by many tasks, with intervals and tested differences
- ``base``: what evaluators share: encoding, signature, card

Evaluators derive from sentence-transformers' base class, which takes seconds to import, so all names are loaded on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.evaluation.alignment import alignment_scores as alignment_scores
    from st_xling.evaluation.alignment import evaluate_alignment as evaluate_alignment
    from st_xling.evaluation.alignment import read_links as read_links
    from st_xling.evaluation.bucc import BuccEvaluator as BuccEvaluator
    from st_xling.evaluation.documents import DocumentScores as DocumentScores
    from st_xling.evaluation.documents import document_scores as document_scores
    from st_xling.evaluation.documents import evaluate_groups as evaluate_groups
    from st_xling.evaluation.documents import read_groups as read_groups
    from st_xling.evaluation.mining_scores import MiningScores as MiningScores
    from st_xling.evaluation.mining_scores import judge_pairs as judge_pairs
    from st_xling.evaluation.mteb_results import to_mteb as to_mteb
    from st_xling.evaluation.postprocessing import PostprocessReport as PostprocessReport
    from st_xling.evaluation.postprocessing import postprocess as postprocess
    from st_xling.evaluation.precision import PrecisionEvaluator as PrecisionEvaluator
    from st_xling.evaluation.ranking import RankingScores as RankingScores
    from st_xling.evaluation.ranking import average_precision as average_precision
    from st_xling.evaluation.ranking import bootstrap_interval as bootstrap_interval
    from st_xling.evaluation.ranking import ranking_matrix as ranking_matrix
    from st_xling.evaluation.ranking import ranking_scores as ranking_scores
    from st_xling.evaluation.ranking import reciprocal_rank as reciprocal_rank
    from st_xling.evaluation.ranking import relevant_ranks as relevant_ranks
    from st_xling.evaluation.reranking import RerankingEvaluator as RerankingEvaluator
    from st_xling.evaluation.reranking import RerankingReport as RerankingReport
    from st_xling.evaluation.results import EvaluationResult as EvaluationResult
    from st_xling.evaluation.results import SavedResults as SavedResults
    from st_xling.evaluation.results import read_saved_results as read_saved_results
    from st_xling.evaluation.results import save_results as save_results
    from st_xling.evaluation.retrieval import RetrievalEvaluator as RetrievalEvaluator
    from st_xling.evaluation.retrieval import RetrievalReport as RetrievalReport
    from st_xling.evaluation.retrieval import retrieval_table as retrieval_table
    from st_xling.evaluation.tatoeba import TatoebaEvaluator as TatoebaEvaluator
    from st_xling.evaluation.tatoeba_data import TATOEBA_GROUPS as TATOEBA_GROUPS
    from st_xling.evaluation.tatoeba_data import resolve_languages as resolve_languages
    from st_xling.evaluation.xsim import XsimPlusPlus as XsimPlusPlus
    from st_xling.evaluation.xsim import xsim_by_language as xsim_by_language
    from st_xling.evaluation.xsim import xsim_plus_plus as xsim_plus_plus
    from st_xling.utils.cosines import nearest as nearest
    from st_xling.utils.cosines import precision_at as precision_at
    from st_xling.utils.cosines import retrieval_accuracy as retrieval_accuracy
    from st_xling.utils.cosines import translation_ranks as translation_ranks
    from st_xling.utils.cosines import weighted_f1 as weighted_f1

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
