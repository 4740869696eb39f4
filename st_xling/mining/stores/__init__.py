"""Embeddings on disk that read like one array."""
