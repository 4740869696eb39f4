"""Retrieval by language: MRR and Recall, beside BM25, from one language's passages or a mixed pool.

- ``pool``: queries and the passages they are searched in: a set's own, or those of several languages mixed
- ``search``: dense search over a corpus that is read as it is embedded; BM25, in scripts without spaces too
- ``measures``: rankings → measures of each query, by ir_measures; rankings as TREC run files
- ``evaluator``: :class:`RetrievalEvaluator`, its report and table; do equally relevant passages rank alike whatever
  their language?
"""

from st_xling.evaluation.retrieval.evaluator import (
    LanguageBias,
    RetrievalEvaluator,
    RetrievalReport,
    language_bias,
    retrieval_table,
)
from st_xling.evaluation.retrieval.measures import Rankings, write_run
from st_xling.evaluation.retrieval.pool import PoolQuery, RetrievalPool, mixed_pool, separate_pools
from st_xling.evaluation.retrieval.search import Bm25

__all__ = [
    "Bm25",
    "LanguageBias",
    "PoolQuery",
    "Rankings",
    "RetrievalEvaluator",
    "RetrievalPool",
    "RetrievalReport",
    "language_bias",
    "mixed_pool",
    "retrieval_table",
    "separate_pools",
    "write_run",
]
