"""Objectives: a pure tensor function and the module that feeds it, one a file.

- ``translation_ranking``: TR: which of the batch is the translation?
- ``representation_translation``: RTL: rebuild the translation from the source's token states
- ``translation_language_modeling``: MLM and TLM: guess hidden words
- ``word_alignment``: WA: attention between the sentences should agree both ways
- ``semantic_contrastive``: semaCL: translations against every other sentence
- ``language_contrastive``: langCL: no other sentence should tell a pair's languages apart
- ``cross_unmasking``: guess hidden words with the help of the translation's embedding (MEXMA)
- ``embedding_distance``: translations in the same place
- ``koleo``: every sentence away from its nearest neighbor
- ``in_batch_ranking``: IR: which of the batch's passages answers the query?
- ``siamese_contrastive``: SF: translations near, chosen negatives a margin away
- ``base``: what they have in common; sums of them, and of sentence-transformers' losses, over
  one encoder pass
- ``cached``: any of them with large batches in small memory
- ``gather``: the batch of all processes

A new objective is one file: a subclass of :class:`CrossLingualLoss`, or of :class:`TokenLevelLoss` for means over
tokens, listed in ``__all__``, where recipes and the contract tests find it. :class:`GatheredBatch` gives it the rows of
all processes.
"""

from st_xling.losses.base import CombinedLoss, CrossLingualLoss, Term, TokenLevelLoss, make
from st_xling.losses.cached import CachedLoss
from st_xling.losses.cross_unmasking import CrossUnmaskingLoss
from st_xling.losses.embedding_distance import EmbeddingDistanceLoss, embedding_distance
from st_xling.losses.gather import GatheredBatch
from st_xling.losses.in_batch_ranking import InBatchRankingLoss
from st_xling.losses.koleo import KoleoLoss, koleo
from st_xling.losses.language_contrastive import LanguageContrastiveLoss, language_contrastive
from st_xling.losses.representation_translation import RepresentationTranslationLoss
from st_xling.losses.semantic_contrastive import SemanticContrastiveLoss, semantic_contrastive
from st_xling.losses.siamese_contrastive import SiameseContrastiveLoss, siamese_contrastive
from st_xling.losses.translation_language_modeling import TranslationLanguageModelingLoss
from st_xling.losses.translation_ranking import TranslationRankingLoss, translation_ranking
from st_xling.losses.word_alignment import WordAlignmentLoss, word_alignment

__all__ = [
    "CachedLoss",
    "CombinedLoss",
    "CrossLingualLoss",
    "CrossUnmaskingLoss",
    "EmbeddingDistanceLoss",
    "GatheredBatch",
    "InBatchRankingLoss",
    "KoleoLoss",
    "LanguageContrastiveLoss",
    "RepresentationTranslationLoss",
    "SemanticContrastiveLoss",
    "SiameseContrastiveLoss",
    "Term",
    "TokenLevelLoss",
    "TranslationLanguageModelingLoss",
    "TranslationRankingLoss",
    "WordAlignmentLoss",
    "embedding_distance",
    "koleo",
    "language_contrastive",
    "make",
    "semantic_contrastive",
    "siamese_contrastive",
    "translation_ranking",
    "word_alignment",
]
