"""Data of cross-encoders: query-passage pairs in several languages to train on, and pools to test on.

- ``pairs``: aligned pairs, which rows of them say the same, and labeled rows as a data set
- ``negatives``: other rows' passages, never one of the positive's meaning
- ``strategies``, ``xpi``: training data of XPR (merged, cascade, mixed) and of XPI
- ``pools``: queries with candidates, of any of these and of retrieval sets
- ``question_answering``: SQuAD's form in several languages, aligned and cut by article
- ``insurance_qa``: InsuranceQA v2 and its translation
- ``specs``: what ``--data`` may say

The names that are public are those of :mod:`st_xling.reranking`.
"""
