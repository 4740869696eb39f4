"""Cross-lingual passage re-ranking: a query in one language, passages in several, put in order by a cross-encoder.

- ``records``: queries and passages of a file by id; which passages are ranked for each query
- ``rerank_files``: files of queries and passages → ranked passages; resumes when killed
- ``search_files``: a bi-encoder finds passages in a store, a cross-encoder puts them in order

What training and scoring in memory need can be imported from here too; its modules are
:mod:`st_xling.data.reranking` (pairs, negatives, XPI, pools), :mod:`st_xling.models.cross_encoder`,
:mod:`st_xling.models.pair_scorer` and :mod:`st_xling.training.reranker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

# Loaded on use: they need sentence-transformers, slow to import.
if TYPE_CHECKING:
    from st_xling.data.reranking.insurance_qa import PooledQuestions as PooledQuestions
    from st_xling.data.reranking.insurance_qa import read_insurance_qa as read_insurance_qa
    from st_xling.data.reranking.negatives import draw_negatives as draw_negatives
    from st_xling.data.reranking.negatives import with_negatives as with_negatives
    from st_xling.data.reranking.pairs import PAIR_COLUMNS as PAIR_COLUMNS
    from st_xling.data.reranking.pairs import AlignedPairs as AlignedPairs
    from st_xling.data.reranking.pairs import labeled_dataset as labeled_dataset
    from st_xling.data.reranking.pools import CandidatePool as CandidatePool
    from st_xling.data.reranking.pools import CandidatePools as CandidatePools
    from st_xling.data.reranking.pools import candidate_pools as candidate_pools
    from st_xling.data.reranking.pools import pools_of_pairs as pools_of_pairs
    from st_xling.data.reranking.pools import read_retrieval as read_retrieval
    from st_xling.data.reranking.question_answering import QuestionAnswering as QuestionAnswering
    from st_xling.data.reranking.question_answering import read_question_answering as read_question_answering
    from st_xling.data.reranking.specs import PairData as PairData
    from st_xling.data.reranking.specs import XpiData as XpiData
    from st_xling.data.reranking.specs import load_pair_specs as load_pair_specs
    from st_xling.data.reranking.specs import load_pool_specs as load_pool_specs
    from st_xling.data.reranking.specs import load_xpi_specs as load_xpi_specs
    from st_xling.data.reranking.strategies import STRATEGIES as STRATEGIES
    from st_xling.data.reranking.strategies import cascade as cascade
    from st_xling.data.reranking.strategies import merged as merged
    from st_xling.data.reranking.strategies import mixed as mixed
    from st_xling.data.reranking.xpi import parallel_pools as parallel_pools
    from st_xling.data.reranking.xpi import xpi_pairs as xpi_pairs
    from st_xling.data.reranking.xpi import xpi_pairs_from_parallel as xpi_pairs_from_parallel
    from st_xling.models.cross_encoder import cross_encoder as cross_encoder
    from st_xling.models.cross_encoder import replace_head as replace_head
    from st_xling.models.cross_encoder import tiny_cross_encoder as tiny_cross_encoder
    from st_xling.models.pair_scorer import PairScorer as PairScorer
    from st_xling.models.pair_scorer import RankedPassage as RankedPassage
    from st_xling.models.pair_scorer import ScoringCounts as ScoringCounts
    from st_xling.models.pair_scorer import rerank as rerank
    from st_xling.models.pair_scorer import score_text_pairs as score_text_pairs
    from st_xling.reranking.rerank_files import rerank_texts as rerank_texts
    from st_xling.reranking.search_files import search_texts as search_texts
    from st_xling.training.ranking_losses import RankingLoss as RankingLoss
    from st_xling.training.ranking_losses import loss_names as loss_names
    from st_xling.training.reranker import CrossEncoderRecipe as CrossEncoderRecipe
    from st_xling.training.reranker import load_cross_encoder_recipe as load_cross_encoder_recipe
    from st_xling.training.reranker import train_cross_encoder as train_cross_encoder

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
