"""Cross-lingual passage re-ranking: a query in one language, passages in several, put in order by a cross-encoder.

- ``rerank_files``: files of queries and passages by id → ranked passages; resumes when killed
- ``search_files``: a bi-encoder finds passages in a store, a cross-encoder puts them in order

What training and scoring in memory need can be imported from here too; its modules are
:mod:`st_xling.data.reranking` (pairs, negatives, XPI, pools), :mod:`st_xling.models.cross_encoders`,
:mod:`st_xling.models.pair_scorer` and :mod:`st_xling.training.reranker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

# Loaded on use: they need sentence-transformers, slow to import.
if TYPE_CHECKING:
    from st_xling.data.reranking.filter_pairs import filter_pairs_from_parallel as filter_pairs_from_parallel
    from st_xling.data.reranking.insurance_qa import read_insurance_qa as read_insurance_qa
    from st_xling.data.reranking.pairs import AlignedPairs as AlignedPairs
    from st_xling.data.reranking.pairs import with_negatives as with_negatives
    from st_xling.data.reranking.pools import AlignedQuestions as AlignedQuestions
    from st_xling.data.reranking.pools import CandidatePool as CandidatePool
    from st_xling.data.reranking.pools import CandidatePools as CandidatePools
    from st_xling.data.reranking.pools import candidate_pools as candidate_pools
    from st_xling.data.reranking.question_answering import read_question_answering as read_question_answering
    from st_xling.data.reranking.specs import load_pair_specs as load_pair_specs
    from st_xling.data.reranking.specs import load_pool_specs as load_pool_specs
    from st_xling.data.reranking.specs import load_xpi_specs as load_xpi_specs
    from st_xling.data.reranking.strategies import cascade as cascade
    from st_xling.data.reranking.strategies import merged as merged
    from st_xling.data.reranking.strategies import mixed as mixed
    from st_xling.data.reranking.strategies import parallel_pools as parallel_pools
    from st_xling.data.reranking.strategies import xpi_pairs_from_parallel as xpi_pairs_from_parallel
    from st_xling.models.cross_encoders import cross_encoder as cross_encoder
    from st_xling.models.cross_encoders import tiny_cross_encoder as tiny_cross_encoder
    from st_xling.models.pair_filter import PairFilter as PairFilter
    from st_xling.models.pair_filter import load_pair_filter as load_pair_filter
    from st_xling.models.pair_scorer import PairScorer as PairScorer
    from st_xling.models.pair_scorer import rerank as rerank
    from st_xling.reranking.rerank_files import rerank_texts as rerank_texts
    from st_xling.reranking.search_files import search_texts as search_texts
    from st_xling.training.reranker import load_cross_encoder_recipe as load_cross_encoder_recipe
    from st_xling.training.reranker import train_cross_encoder as train_cross_encoder

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
