"""Nearest neighbors of two corpora in each other: exact or by FAISS, in blocks and tasks of bounded memory."""
