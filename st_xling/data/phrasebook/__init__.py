"""An embedded corpus: a small grammar of everyday sentences in six languages, with alignments and clean splits.

Sentences are rendered from meanings, small trees of concepts, and every language says every meaning in its own grammar:
agreement, case, classifiers, word order. There is nothing to download, and as much of it as one asks for.
"""

from st_xling.data.phrasebook.corpus import parallel_phrases
from st_xling.data.phrasebook.meanings import MANY, Clause, Meaning, NounPhrase
from st_xling.data.phrasebook.mining import MiningSet, mining_phrases
from st_xling.data.phrasebook.passages import PhrasePassages, phrase_passages
from st_xling.data.phrasebook.render import LANGUAGES, render
from st_xling.data.phrasebook.splits import SPLITS, draw_meanings, split_of
from st_xling.data.phrasebook.surface import Phrase, align

__all__ = [
    "LANGUAGES",
    "MANY",
    "SPLITS",
    "Clause",
    "Meaning",
    "MiningSet",
    "NounPhrase",
    "Phrase",
    "PhrasePassages",
    "align",
    "draw_meanings",
    "mining_phrases",
    "parallel_phrases",
    "phrase_passages",
    "render",
    "split_of",
]
