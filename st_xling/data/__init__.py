"""Parallel text, from wherever it is kept, as ``datasets.Dataset``.

Every dataset has the string columns ``source``, ``target``, ``source_language`` and ``target_language``; where the text
brings hard negatives, also ``negative_1``, ``negative_2``, …

- ``read``: ``load_pairs``, ``load_data_specs``: parallel text of files, folders and the Hub, memory-mapped or streamed
- ``formats``: the file formats, one function each: TSV, CSV, JSON lines, Parquet, TMX, Moses, …
- ``columns``: which columns hold the sentences
- ``check``: faulty lines, named with their numbers all at once, or dropped and listed
- ``sides``: are source and target in the languages that they are said to be in?
- ``test_sets``: Tatoeba and BUCC, for similarity search and bitext mining, in their published layouts
- ``classified_pairs``: XNLI and PAWS-X, sentence pairs with a class, for transfer
- ``tagged_words``: words of treebanks with their tags (CoNLL-U)
- ``spec``: the grammar of data specs: ``de-en=corpus.tsv?size=8000``, ``zh_Hant=texts.txt``, ``phrasebook:de,fr``
- ``sample``: seeded samples of rows
- ``orient``: the pivot language last, whatever the order of a corpus
- ``evaluation_texts``: the texts of evaluation sets, in whatever layout, for checks that only read them
- ``leak``: do the training data hold the text that a model is evaluated by?
- ``holdout``: development pairs that no language trains on
- ``phrasebook``: a built-in corpus: ``st_xling.data.phrasebook.parallel_phrases``
- ``balance``: how often each language comes: ``st_xling.data.balance.language_shares``
- ``samplers``, ``batches``: batches: shuffled, of like length, of one pair, without duplicates
- ``stream_mixture``: the same for streams: ``st_xling.data.stream_mixture.mix_streams``
- ``retrieval``: queries, passages and qrels: BEIR, Mr.TyDi, MIRACL, TREC
- ``reranking``: candidate pools and labeled pairs for cross-encoders
- ``hard_translations``: sentences with one place changed, which say something else, for xsim++

Importing this package does not import ``datasets``; reading does.
"""

from st_xling.data.check import Fault, ParallelTextError
from st_xling.data.evaluation_texts import load_evaluation_specs
from st_xling.data.hard_translations import HARD_CATEGORIES, HardTranslation, hard_languages, hard_translations
from st_xling.data.leak import LeakError, LeakReport, drop_leaks, leaks, refuse_leaks
from st_xling.data.orient import OrientedData, orient
from st_xling.data.pairs import COLUMNS, require_rows
from st_xling.data.read import load_data_specs, load_pairs, parse_data_spec
from st_xling.data.sample import sample_rows
from st_xling.data.spec import DataSpec
from st_xling.data.test_sets import BuccCorpus, read_bucc, read_tatoeba

__all__ = [
    "COLUMNS",
    "HARD_CATEGORIES",
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
    "load_pairs",
    "orient",
    "parse_data_spec",
    "read_bucc",
    "read_tatoeba",
    "refuse_leaks",
    "require_rows",
    "sample_rows",
]
