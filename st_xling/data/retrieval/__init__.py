"""Retrieval sets: queries, passages, and which passages answer which query.

- ``files``: passages (in Arrow's memory), queries and qrels, of folders in the layouts of BEIR, Mr.TyDi and MIRACL and
  of the Hub
- ``retrieval_set``: the three together, checked against each other, and the specs that name them
- ``training_text``: query-passage pairs to train on
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.data.retrieval.files import Passages as Passages
    from st_xling.data.retrieval.files import read_qrels as read_qrels
    from st_xling.data.retrieval.files import read_queries as read_queries
    from st_xling.data.retrieval.retrieval_set import RetrievalSet as RetrievalSet
    from st_xling.data.retrieval.retrieval_set import load_retrieval_specs as load_retrieval_specs
    from st_xling.data.retrieval.retrieval_set import read_retrieval_set as read_retrieval_set
    from st_xling.data.retrieval.retrieval_set import read_xquad_r as read_xquad_r
    from st_xling.data.retrieval.retrieval_set import sample_queries as sample_queries
    from st_xling.data.retrieval.training_text import load_query_passage_specs as load_query_passage_specs
    from st_xling.data.retrieval.training_text import query_passages as query_passages

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
