"""Data of cross-encoders: query-passage pairs in several languages to train on, and pools to test on.

- ``pairs``: aligned pairs, which rows of them mean the same, labeled rows as a data set, and negatives: other rows'
  passages, never one of the positive's meaning
- ``strategies``: training data of XPR (merged, cascade, mixed) and of XPI
- ``pools``: queries with candidates, of any of these and of retrieval sets
- ``question_answering``: SQuAD's form in several languages, aligned and divided by article
- ``insurance_qa``: InsuranceQA v2 and its translation
- ``specs``: the specs that ``--data`` takes

The names that are public are those of :mod:`st_xling.reranking`.
"""
