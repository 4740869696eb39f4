"""Cross-lingual passage re-ranking: a query in one language, passages in several, put in order by a cross-encoder.

``records``       queries and passages of a file by id; which passages are ranked for each query
``rerank_files``  files of queries and passages → ranked passages; killed, it goes on
``search_files``  a bi-encoder finds passages in a store, a cross-encoder puts them in order

What training and scoring in memory need can be imported from here too; its modules are
:mod:`st_xling.data.reranking` (pairs, negatives, XPI, pools), :mod:`st_xling.models.cross_encoder`,
:mod:`st_xling.models.pair_scorer` and :mod:`st_xling.training.reranker`.
"""

from importlib import import_module
from typing import Any

# Loaded on use: they need sentence-transformers, slow to import.
_MODULES = {
    "st_xling.data.reranking.insurance_qa": "PooledQuestions read_insurance_qa",
    "st_xling.data.reranking.negatives": "draw_negatives with_negatives",
    "st_xling.data.reranking.pairs": "AlignedPairs PAIR_COLUMNS labelled_dataset",
    "st_xling.data.reranking.pools": "CandidatePool CandidatePools candidate_pools pools_of_pairs read_retrieval",
    "st_xling.data.reranking.question_answering": "QuestionAnswering read_question_answering",
    "st_xling.data.reranking.specs": "PairData load_pair_specs load_pool_specs XpiData load_xpi_specs",
    "st_xling.data.reranking.strategies": "STRATEGIES cascade merged mixed",
    "st_xling.data.reranking.xpi": "parallel_pools xpi_pairs xpi_pairs_from_parallel",
    "st_xling.models.cross_encoder": "cross_encoder tiny_cross_encoder replace_head",
    "st_xling.models.pair_scorer": "PairScorer ScoringCounts RankedPassage rerank score_text_pairs",
    "st_xling.reranking.rerank_files": "rerank_texts",
    "st_xling.reranking.search_files": "search_texts",
    "st_xling.training.ranking_losses": "RankingLoss loss_names",
    "st_xling.training.reranker": "CrossEncoderRecipe CrossEncoderResult cross_encoder_recipe_names "
    "is_cross_encoder_recipe load_cross_encoder_recipe train_cross_encoder",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
