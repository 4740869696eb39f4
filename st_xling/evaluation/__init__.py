"""Evaluating encoders and cross-encoders.

- ``tatoeba``: :class:`TatoebaEvaluator`, for ``SentenceTransformerTrainer(evaluator=...)`` or on its own;
  :class:`PrecisionEvaluator`: translations among the N nearest, of any pair of languages
- ``xsim``: errors of similarity search by margin over several languages; xsim++, with hard near-translations
- ``bucc``: :class:`BuccEvaluator`: precision, recall and F1 of mined pairs
- ``alignment``: alignments of words and of documents against gold
- ``reranking``: :class:`RerankingEvaluator`: cross-encoders on queries with candidates in several languages
- ``retrieval``: :class:`RetrievalEvaluator`: MRR and Recall by language, mixed pools and their language bias
- ``retrieval_search``: passages for queries, by an encoder or BM25
- ``measures``: measures without a model: acc@k, MRR, MAP and nDCG; F1 of mined pairs; bootstrap intervals
- ``results``: :class:`EvaluationResult`: metrics, rows and signature; saved in a model's folder, or as mteb's files
- ``postprocessing``: centering, whitening, fewer dimensions and int8, with retrieval before and after
- ``pictures``: token states before and after training; saved results; scores of pairs
- ``compare``: several encoders by many tasks, with intervals and tested differences
- ``new_language``: a language is added to an encoder, and tested with the others before and after
- ``base``: what evaluators share: encoding, signature, card

Evaluators derive from sentence-transformers' base class, which takes seconds to import, so all names are loaded on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.evaluation.alignment import alignment_scores as alignment_scores
    from st_xling.evaluation.alignment import document_scores as document_scores
    from st_xling.evaluation.alignment import evaluate_alignment as evaluate_alignment
    from st_xling.evaluation.alignment import evaluate_groups as evaluate_groups
    from st_xling.evaluation.alignment import read_groups as read_groups
    from st_xling.evaluation.alignment import read_links as read_links
    from st_xling.evaluation.bucc import BuccEvaluator as BuccEvaluator
    from st_xling.evaluation.measures import bootstrap_interval as bootstrap_interval
    from st_xling.evaluation.measures import judge_pairs as judge_pairs
    from st_xling.evaluation.measures import ranking_by_relevant_language as ranking_by_relevant_language
    from st_xling.evaluation.measures import ranking_matrix as ranking_matrix
    from st_xling.evaluation.measures import ranking_scores as ranking_scores
    from st_xling.evaluation.new_language import AddedLanguage as AddedLanguage
    from st_xling.evaluation.new_language import AddingOptions as AddingOptions
    from st_xling.evaluation.new_language import add_language as add_language
    from st_xling.evaluation.postprocessing import postprocess as postprocess
    from st_xling.evaluation.postprocessing import postprocess_table as postprocess_table
    from st_xling.evaluation.reranking import RerankingEvaluator as RerankingEvaluator
    from st_xling.evaluation.results import EvaluationResult as EvaluationResult
    from st_xling.evaluation.results import SavedResults as SavedResults
    from st_xling.evaluation.results import mteb_name as mteb_name
    from st_xling.evaluation.results import read_saved_results as read_saved_results
    from st_xling.evaluation.results import save_results as save_results
    from st_xling.evaluation.results import to_mteb as to_mteb
    from st_xling.evaluation.retrieval import RetrievalEvaluator as RetrievalEvaluator
    from st_xling.evaluation.retrieval import retrieval_table as retrieval_table
    from st_xling.evaluation.tatoeba import TATOEBA_GROUPS as TATOEBA_GROUPS
    from st_xling.evaluation.tatoeba import PrecisionEvaluator as PrecisionEvaluator
    from st_xling.evaluation.tatoeba import TatoebaEvaluator as TatoebaEvaluator
    from st_xling.evaluation.tatoeba import resolve_languages as resolve_languages
    from st_xling.evaluation.xsim import xsim_by_language as xsim_by_language
    from st_xling.evaluation.xsim import xsim_plus_plus as xsim_plus_plus
    from st_xling.utils.cosines import precision_at as precision_at
    from st_xling.utils.cosines import retrieval_accuracy as retrieval_accuracy
    from st_xling.utils.cosines import translation_ranks as translation_ranks
    from st_xling.utils.cosines import weighted_f1 as weighted_f1

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
