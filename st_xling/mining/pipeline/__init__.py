"""Text files in, files of scored pairs out; killed at any moment, the same call resumes.

- ``text_mining``: mine two text files, or estimate what that takes
- ``pair_scoring``: score the pairs of a parallel corpus
- ``document_alignment``: align documents with their translations
- ``rescore``: score pairs again with a cross-encoder
- ``work``: steps that they share: keep the work, embed, write pairs
"""
