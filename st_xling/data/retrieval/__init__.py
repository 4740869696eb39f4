"""Retrieval sets: queries, passages, and which passages answer which query.

``passages``       a corpus in JSON lines, read as it is needed; ids alone are in memory
``queries``        queries by id; Mr.TyDi's form with the passages beside each query too
``qrels``          TREC's and BEIR's judgements
``layouts``        where a folder in the layout of BEIR, Mr.TyDi or MIRACL keeps the three
``retrieval_set``  the three together, checked against each other
``specs``          what the command line's ``--data`` may say
``query_passages`` query-passage pairs to train on; ``others``: text without translations
"""

from st_xling.data.retrieval.others import read_others
from st_xling.data.retrieval.passages import Passages
from st_xling.data.retrieval.qrels import read_qrels
from st_xling.data.retrieval.queries import read_queries
from st_xling.data.retrieval.query_passages import load_query_passage_specs, query_passages
from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set
from st_xling.data.retrieval.specs import load_retrieval_specs

__all__ = [
    "Passages",
    "RetrievalSet",
    "load_query_passage_specs",
    "load_retrieval_specs",
    "query_passages",
    "read_others",
    "read_qrels",
    "read_queries",
    "read_retrieval_set",
]
