"""Data of cross-encoders: query-passage pairs in several languages to train on, and pools to test on.

- ``pairs``: aligned pairs, which rows of them mean the same, labeled rows as a data set, and negatives: other rows'
  passages, never one of the positive's meaning
- ``pools``: aligned questions, pairs to train on made of them, and queries with candidates
- ``question_answering``: SQuAD's form in several languages, and the phrasebook's questions
- ``insurance_qa``: InsuranceQA v2 and its translation
- ``strategies``: training data of XPR (merged, cascade, mixed) and of XPI
- ``specs``: the specs that ``--data`` takes, and files of labeled pairs

The names that are public are those of :mod:`st_xling.reranking`.
"""
