"""Parallel text, from wherever it is kept, as ``datasets.Dataset``.

Every dataset has the string columns ``source``, ``target``, ``source_language`` and ``target_language``; where the text
brings hard negatives, also ``negative_1``, ``negative_2``, …

- ``spec``: the grammar of data specs: ``de-en=corpus.tsv?size=8000``, ``zh_Hant=texts.txt``, ``phrasebook:de,fr``
- ``read``: ``load_pairs``, ``load_data_specs``: parallel text of files, folders and the Hub, memory-mapped or streamed
- ``locations``: what a location may be, one function each: two files, a folder, an archive, a file, a set of the Hub
- ``pair_source``: pairs that were found, and how they are read
- ``formats``: the file formats, one function each: TSV, CSV, JSON lines, Parquet, TMX, Moses, …
- ``tmx``, ``xliff``, ``po``: translation memories, and finished translations of translation tools
- ``documents``: EPUB, DOCX, ODT, HTML and subtitles, each in a file of its own: ``epub``, ``docx``, …
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

All names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.data.check import Fault as Fault
    from st_xling.data.check import ParallelTextError as ParallelTextError
    from st_xling.data.documents import Document as Document
    from st_xling.data.documents import read_document as read_document
    from st_xling.data.hard_translation_sets import HARD_CATEGORIES as HARD_CATEGORIES
    from st_xling.data.hard_translation_sets import HardTranslation as HardTranslation
    from st_xling.data.hard_translation_sets import hard_translations as hard_translations
    from st_xling.data.holdout import hold_out as hold_out
    from st_xling.data.leak import LeakError as LeakError
    from st_xling.data.leak import LeakReport as LeakReport
    from st_xling.data.leak import drop_leaks as drop_leaks
    from st_xling.data.leak import leaks as leaks
    from st_xling.data.leak import load_evaluation_specs as load_evaluation_specs
    from st_xling.data.leak import refuse_leaks as refuse_leaks
    from st_xling.data.pairs import COLUMNS as COLUMNS
    from st_xling.data.pairs import sample_rows as sample_rows
    from st_xling.data.read import load_data_specs as load_data_specs
    from st_xling.data.read import load_pairs as load_pairs
    from st_xling.data.sides import orient as orient
    from st_xling.data.spec import DataSpec as DataSpec
    from st_xling.data.spec import parse_data_spec as parse_data_spec
    from st_xling.data.test_sets import BuccCorpus as BuccCorpus
    from st_xling.data.test_sets import read_bucc as read_bucc
    from st_xling.data.test_sets import read_tatoeba as read_tatoeba
    from st_xling.data.texts_by_language import load_texts as load_texts

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
