"""Objectives: a pure tensor function and the module that feeds it, one a file.

``translation_ranking``            TR: which of the batch is the translation?
``representation_translation``     RTL: rebuild the translation from the other side's token states
``translation_language_modeling``  MLM and TLM: guess hidden words
``word_alignment``                 WA: attention between the sentences should agree both ways
``semantic_contrastive``           semaCL: translations against every other sentence
``language_contrastive``           langCL: no other sentence should tell a pair's languages apart
``in_batch_ranking``               IR: which of the batch's passages answers the query?
``siamese_contrastive``            SF: translations near, chosen negatives a margin away
``combined``                       sums of them over one encoder pass
``cached``                         any of them with large batches in small memory
"""

from st_xling.losses.base import CrossLingualLoss
from st_xling.losses.cached import CachedLoss
from st_xling.losses.combined import CombinedLoss
from st_xling.losses.in_batch_ranking import InBatchRankingLoss
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
    "InBatchRankingLoss",
    "LanguageContrastiveLoss",
    "RepresentationTranslationLoss",
    "SemanticContrastiveLoss",
    "SiameseContrastiveLoss",
    "TranslationLanguageModelingLoss",
    "TranslationRankingLoss",
    "WordAlignmentLoss",
    "language_contrastive",
    "semantic_contrastive",
    "siamese_contrastive",
    "translation_ranking",
    "word_alignment",
]
