"""An embedded corpus: a small grammar of everyday sentences in six languages, with alignments and clean splits.

Sentences are rendered from meanings, small trees of concepts, and every language says every meaning in its own grammar:
agreement, case, classifiers, word order. There is nothing to download, and as much of it as one asks for.
"""

from st_xling.data.phrasebook.corpora import (
    LANGUAGES,
    MiningSet,
    PhrasePassages,
    mining_phrases,
    parallel_phrases,
    phrase_passages,
    render,
)
from st_xling.data.phrasebook.grammar import Phrase, align
from st_xling.data.phrasebook.meanings import MANY, Clause, Meaning, NounPhrase
from st_xling.data.phrasebook.sampler import SPLITS, draw_meanings, split_of

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
