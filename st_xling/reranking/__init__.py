"""Cross-lingual passage re-ranking: a query in one language, passages in several, put in order by a cross-encoder.

``text_records``  queries or passages of a file by id; ``candidates``: which passages are ranked for each query
``rerank_files``  files of queries and passages → ranked passages; killed, it goes on; ``rerank_report``: its figures
``search_files``  a bi-encoder finds passages in a store, a cross-encoder puts them in order

What training and scoring in memory take is named here too; it stands with the encoders' of the same stage:
:mod:`st_xling.data.reranking` (pairs, negatives, XPI, pools), :mod:`st_xling.models.cross_encoder`,
:mod:`st_xling.models.scoring` and :mod:`st_xling.training.reranker`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.data.reranking.aligned import AlignedPairs
    from st_xling.data.reranking.candidate_pool import CandidatePool, CandidatePools
    from st_xling.data.reranking.candidate_pools import candidate_pools
    from st_xling.data.reranking.insurance_qa import PooledQuestions, read_insurance_qa
    from st_xling.data.reranking.labelled import PAIR_COLUMNS, labelled_dataset
    from st_xling.data.reranking.labelled_pools import pools_of_pairs
    from st_xling.data.reranking.negatives import draw_negatives, with_negatives
    from st_xling.data.reranking.pair_specs import PairData, load_pair_specs
    from st_xling.data.reranking.parallel_pools import parallel_pools
    from st_xling.data.reranking.pool_specs import load_pool_specs
    from st_xling.data.reranking.question_answering import QuestionAnswering
    from st_xling.data.reranking.question_files import read_question_answering
    from st_xling.data.reranking.retrieval_files import read_retrieval
    from st_xling.data.reranking.strategies import STRATEGIES, cascade, merged, mixed
    from st_xling.data.reranking.xpi import xpi_pairs, xpi_pairs_from_parallel
    from st_xling.data.reranking.xpi_specs import XpiData, load_xpi_specs
    from st_xling.models.cross_encoder import cross_encoder, tiny_cross_encoder
    from st_xling.models.cross_encoder_heads import replace_head
    from st_xling.models.scoring.pair_scorer import PairScorer, ScoringCounts
    from st_xling.models.scoring.ranking import RankedPassage, rerank, score_text_pairs
    from st_xling.reranking.rerank_files import rerank_texts
    from st_xling.reranking.search_files import search_texts
    from st_xling.training.ranking_losses import RankingLoss, loss_names
    from st_xling.training.reranker import (
        CrossEncoderRecipe,
        CrossEncoderResult,
        cross_encoder_recipe_names,
        is_cross_encoder_recipe,
        load_cross_encoder_recipe,
        train_cross_encoder,
    )

__all__ = [
    "PAIR_COLUMNS",
    "STRATEGIES",
    "AlignedPairs",
    "CandidatePool",
    "CandidatePools",
    "CrossEncoderRecipe",
    "CrossEncoderResult",
    "PairData",
    "PairScorer",
    "PooledQuestions",
    "QuestionAnswering",
    "RankedPassage",
    "RankingLoss",
    "ScoringCounts",
    "XpiData",
    "candidate_pools",
    "cascade",
    "cross_encoder",
    "cross_encoder_recipe_names",
    "draw_negatives",
    "is_cross_encoder_recipe",
    "labelled_dataset",
    "load_cross_encoder_recipe",
    "load_pair_specs",
    "load_pool_specs",
    "load_xpi_specs",
    "loss_names",
    "merged",
    "mixed",
    "parallel_pools",
    "pools_of_pairs",
    "read_insurance_qa",
    "read_question_answering",
    "read_retrieval",
    "replace_head",
    "rerank",
    "rerank_texts",
    "score_text_pairs",
    "search_texts",
    "tiny_cross_encoder",
    "train_cross_encoder",
    "with_negatives",
    "xpi_pairs",
    "xpi_pairs_from_parallel",
]

_MODULES = {
    "st_xling.data.reranking.aligned": ("AlignedPairs",),
    "st_xling.data.reranking.candidate_pool": (
        "CandidatePool",
        "CandidatePools",
    ),
    "st_xling.data.reranking.candidate_pools": ("candidate_pools",),
    "st_xling.data.reranking.insurance_qa": (
        "PooledQuestions",
        "read_insurance_qa",
    ),
    "st_xling.data.reranking.labelled": (
        "PAIR_COLUMNS",
        "labelled_dataset",
    ),
    "st_xling.data.reranking.labelled_pools": ("pools_of_pairs",),
    "st_xling.data.reranking.negatives": (
        "draw_negatives",
        "with_negatives",
    ),
    "st_xling.data.reranking.pair_specs": (
        "PairData",
        "load_pair_specs",
    ),
    "st_xling.data.reranking.parallel_pools": ("parallel_pools",),
    "st_xling.data.reranking.pool_specs": ("load_pool_specs",),
    "st_xling.data.reranking.question_answering": ("QuestionAnswering",),
    "st_xling.data.reranking.question_files": ("read_question_answering",),
    "st_xling.data.reranking.retrieval_files": ("read_retrieval",),
    "st_xling.data.reranking.strategies": (
        "STRATEGIES",
        "cascade",
        "merged",
        "mixed",
    ),
    "st_xling.data.reranking.xpi": (
        "xpi_pairs",
        "xpi_pairs_from_parallel",
    ),
    "st_xling.data.reranking.xpi_specs": (
        "XpiData",
        "load_xpi_specs",
    ),
    "st_xling.models.cross_encoder": (
        "cross_encoder",
        "tiny_cross_encoder",
    ),
    "st_xling.models.cross_encoder_heads": ("replace_head",),
    "st_xling.models.scoring.pair_scorer": (
        "PairScorer",
        "ScoringCounts",
    ),
    "st_xling.models.scoring.ranking": (
        "RankedPassage",
        "rerank",
        "score_text_pairs",
    ),
    "st_xling.reranking.rerank_files": ("rerank_texts",),
    "st_xling.reranking.search_files": ("search_texts",),
    "st_xling.training.ranking_losses": (
        "RankingLoss",
        "loss_names",
    ),
    "st_xling.training.reranker": (
        "CrossEncoderRecipe",
        "CrossEncoderResult",
        "cross_encoder_recipe_names",
        "is_cross_encoder_recipe",
        "load_cross_encoder_recipe",
        "train_cross_encoder",
    ),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
