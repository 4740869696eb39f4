"""Sentences of large files: read one after another or by row, surveyed, and each distinct one once."""
