"""Retrieval sets: queries, passages, and which passages answer which query.

- ``files``: passages (in Arrow's memory), queries and qrels, of folders in the layouts of BEIR, Mr.TyDi and MIRACL and
  of the Hub
- ``retrieval_set``: the three together, checked against each other, and the specs that name them
- ``training_text``: query-passage pairs to train on
"""

from st_xling.data.retrieval.files import Passages, read_qrels, read_queries
from st_xling.data.retrieval.retrieval_set import (
    RetrievalSet,
    load_retrieval_specs,
    read_retrieval_set,
    read_xquad_r,
    sample_queries,
)
from st_xling.data.retrieval.training_text import load_query_passage_specs, query_passages

__all__ = [
    "Passages",
    "RetrievalSet",
    "load_query_passage_specs",
    "load_retrieval_specs",
    "query_passages",
    "read_qrels",
    "read_queries",
    "read_retrieval_set",
    "read_xquad_r",
    "sample_queries",
]
