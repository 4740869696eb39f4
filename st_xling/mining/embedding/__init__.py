"""Sentences to vectors: in this process, in several, and into a store."""
