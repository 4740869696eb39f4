"""Parallel text, from wherever it is kept, as ``datasets.Dataset``.

Every dataset has the string columns ``source``, ``target``, ``source_language`` and ``target_language``; where the text
brings hard negatives, also ``negative_1``, ``negative_2``, …

- ``spec``: the grammar of data specs: ``de-en=corpus.tsv?size=8000``, ``zh_Hant=texts.txt``, ``phrasebook:de,fr``
- ``read``: ``load_pairs``, ``load_data_specs``: parallel text of files, folders and the Hub, memory-mapped or streamed
- ``formats``: the file formats, one function each: TSV, CSV, JSON lines, Parquet, TMX, Moses, …
- ``columns``: which columns hold the sentences
- ``check``: faulty lines, named with their numbers all at once, or dropped and listed
- ``pairs``: data sets of sentence pairs, their languages, and seeded samples
- ``sides``: the pivot language last, and a check that both sides are in the languages named for them
- ``texts_by_language``: text of one language
- ``test_sets``: Tatoeba and BUCC in their published layouts, and test sets of the Hub
- ``leak``: do the training data hold the text that a model is evaluated by?
- ``holdout``: development pairs that no language trains on
- ``batches``, ``samplers``: batches in the shares of the languages, of like length, without duplicates; of streams too
- ``phrasebook``: a built-in corpus: ``st_xling.data.phrasebook.parallel_phrases``
- ``hard_translation_sets``: English sentences with one place changed, so that they mean something else, for xsim++
- ``transfer_sets``: XNLI, PAWS-X and treebanks
- ``retrieval``: queries, passages and qrels: BEIR, Mr.TyDi, MIRACL, TREC
- ``reranking``: candidate pools and labeled pairs for cross-encoders

Importing this package does not import ``datasets``; reading does.
"""

from st_xling.data.check import Fault, ParallelTextError
from st_xling.data.hard_translation_sets import HARD_CATEGORIES, HardTranslation, hard_translations
from st_xling.data.holdout import hold_out
from st_xling.data.leak import LeakError, LeakReport, drop_leaks, leaks, load_evaluation_specs, refuse_leaks
from st_xling.data.pairs import COLUMNS, sample_rows
from st_xling.data.read import load_data_specs, load_pairs, parse_data_spec
from st_xling.data.sides import orient
from st_xling.data.spec import DataSpec
from st_xling.data.test_sets import BuccCorpus, read_bucc, read_tatoeba
from st_xling.data.texts_by_language import load_texts

__all__ = [
    "COLUMNS",
    "HARD_CATEGORIES",
    "BuccCorpus",
    "DataSpec",
    "Fault",
    "HardTranslation",
    "LeakError",
    "LeakReport",
    "ParallelTextError",
    "drop_leaks",
    "hard_translations",
    "hold_out",
    "leaks",
    "load_data_specs",
    "load_evaluation_specs",
    "load_pairs",
    "load_texts",
    "orient",
    "parse_data_spec",
    "read_bucc",
    "read_tatoeba",
    "refuse_leaks",
    "sample_rows",
]
