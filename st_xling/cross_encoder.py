"""Moved: an import of the old name says where to."""

raise ImportError("st_xling.cross_encoder is now st_xling.reranking: import the same names from there.")
