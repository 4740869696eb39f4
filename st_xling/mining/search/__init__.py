"""Nearest neighbors of two corpora in each other: exact or by FAISS, in blocks and tasks of bounded memory.

- ``find``: choose a method, and run it here or on a Ray cluster
- ``exact``: all products, block by block
- ``approximate``: candidates of a FAISS index, scored exactly
- ``corpus_matrix``: embeddings as the search reads them
"""
