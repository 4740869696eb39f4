"""Dense retrieval judged: MRR and Recall by language, beside BM25, from one language's passages or a mixed pool.

``pool``       queries and the passages they are searched in: a set's own, or those of several languages mixed
``dense``      the host's ``InformationRetrievalEvaluator`` over a corpus that is read as it is embedded
``bm25``       the baseline, by bm25s
``words``      what BM25 counts as words, in scripts without spaces too
``measures``   rankings → figures of each query, by ir_measures
``bias``       do equally relevant passages rank alike whatever their language?
``evaluator``  :class:`RetrievalEvaluator`, for training or on its own; ``report``: its figures and table
``run_files``  rankings as TREC run files
``extra``      the packages that this room asks for
"""

from st_xling.evaluation.retrieval.bias import LanguageBias, language_bias
from st_xling.evaluation.retrieval.bm25 import Bm25
from st_xling.evaluation.retrieval.evaluator import RetrievalEvaluator
from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import PoolQuery, RetrievalPool, mixed_pool, separate_pools
from st_xling.evaluation.retrieval.report import RetrievalReport, retrieval_table
from st_xling.evaluation.retrieval.run_files import write_run

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
