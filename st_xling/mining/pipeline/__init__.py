"""Text files in, files of scored pairs out; killed at any moment, the same call resumes.

- ``text_mining``: mine two text files, or estimate what that takes
- ``pair_scoring``: score the pairs of a parallel corpus
- ``document_lines``: read documents of any format
- ``document_alignment``: align documents with their translations
- ``document_matching``: find which documents belong together
- ``first_stage``: choose the sentences to embed by a static encoder
- ``rescore``: score pairs again with a cross-encoder
- ``work``: steps that they share: keep the work, embed, write pairs
"""
