"""Two-stage search: passages found by a bi-encoder or given as candidates, put in order by a cross-encoder.

``text_records``  queries or passages of a file by id; ``candidates``: which passages are ranked for each query
``rerank_texts``  files of queries and passages → ranked passages; killed, it goes on; ``rerank_report``: its figures
``search_texts``  a bi-encoder finds passages in a store, a cross-encoder puts them in order
``reranker``      the cross-encoder, loaded
"""
