"""Parallel text, from wherever it is kept, as ``datasets.Dataset``.

Every dataset has the string columns ``source``, ``target``, ``source_language`` and ``target_language``; where the text
brings hard negatives, also ``negative_1``, ``negative_2``, …

- ``parallel``: ``read_parallel``, ``stream_parallel``: all that follows, by file ending or Hub id
- ``tables``: tab- and comma-separated lines, JSON lines, Parquet, data sets of the Hub; their columns
- ``moses``: two line-aligned files, ``corpus.de`` and ``corpus.en``; the same in a zip archive of OPUS
- ``sides``: are source and target in the languages that they are said to be in?
- ``test_sets``: Tatoeba and BUCC, for similarity search and bitext mining, in their published layouts
- ``classified_pairs``: XNLI and PAWS-X, sentence pairs with a class, for transfer
- ``tagged_words``: words of treebanks with their tags (CoNLL-U), and with entities (PAN-X)
- ``spec``: the grammar of data specs: ``de-en=corpus.tsv?size=8000``, ``zh_Hant=texts.txt``, ``phrasebook:de,fr``
- ``specs``: the parallel text that specs name
- ``sample``: seeded samples of rows
- ``orient``: the pivot language last, whatever the order of a corpus
- ``evaluation_texts``: the texts of evaluation sets, in whatever layout, for checks that only read them
- ``leak``: do the training data hold the text that a model is evaluated by?
- ``holdout``: development pairs that no language trains on
- ``phrasebook``: an embedded corpus: ``st_xling.data.phrasebook.parallel_phrases``
- ``balance``: how often each language comes: ``st_xling.data.balance.language_shares``
- ``samplers``, ``batches``: batches: shuffled, of like length, of one pair, without duplicates
- ``stream_mixture``: the same for streams: ``st_xling.data.stream_mixture.mix_streams``
- ``retrieval``: queries, passages and qrels: BEIR, Mr.TyDi, MIRACL, TREC
- ``reranking``: candidate pools and labelled pairs for cross-encoders
- ``hard_translations``: sentences with one place changed, which say something else, for xsim++
- ``perturbations``: sentences written otherwise, which say the same: typing errors, case, numerals
- ``faults``: what is wrong with a file: gathered over all lines, reported together

Importing this package does not import ``datasets``; reading does.
"""

from st_xling.data.evaluation_texts import load_evaluation_specs
from st_xling.data.faults import Fault, ParallelTextError
from st_xling.data.hard_translations import HARD_CATEGORIES, HardTranslation, hard_languages, hard_translations
from st_xling.data.leak import LeakError, LeakReport, drop_leaks, leaks, refuse_leaks
from st_xling.data.orient import OrientedData, orient
from st_xling.data.pairs import COLUMNS, require_rows
from st_xling.data.parallel import (
    read_csv,
    read_hub,
    read_jsonl,
    read_moses,
    read_parallel,
    read_parquet,
    read_tsv,
    stream_parallel,
)
from st_xling.data.perturbations import PERTURBATIONS, perturb
from st_xling.data.sample import sample_rows
from st_xling.data.spec import DataSpec
from st_xling.data.specs import load_data_specs, parse_data_spec
from st_xling.data.test_sets import BuccCorpus, read_bucc, read_tatoeba

__all__ = [
    "COLUMNS",
    "HARD_CATEGORIES",
    "PERTURBATIONS",
    "BuccCorpus",
    "DataSpec",
    "Fault",
    "HardTranslation",
    "LeakError",
    "LeakReport",
    "OrientedData",
    "ParallelTextError",
    "drop_leaks",
    "hard_languages",
    "hard_translations",
    "leaks",
    "load_data_specs",
    "load_evaluation_specs",
    "orient",
    "parse_data_spec",
    "perturb",
    "read_bucc",
    "read_csv",
    "read_hub",
    "read_jsonl",
    "read_moses",
    "read_parallel",
    "read_parquet",
    "read_tatoeba",
    "read_tsv",
    "refuse_leaks",
    "require_rows",
    "sample_rows",
    "stream_parallel",
]
