"""Losses of pairs of sentences: each has a functional form and a module, and modules can be added up.

- ``translation_ranking_loss``: TR: which of the batch is the translation?
- ``representation_translation_loss``: RTL: rebuild the translation from the source's token states
- ``translation_language_modeling_loss``: MLM and TLM: guess hidden words
- ``word_alignment_loss``: WA: attention between the sentences should agree both ways
- ``semantic_contrastive_loss``: semaCL: translations against every other sentence
- ``language_contrastive_loss``: langCL: no other sentence should tell a pair's languages apart
- ``cross_unmasking_loss``: guess hidden words with the help of the translation's embedding (MEXMA)
- ``embedding_distance_loss``: translations in the same place
- ``koleo_loss``: every sentence away from its nearest neighbor
- ``in_batch_ranking_loss``: IR: which of the batch's passages answers the query?
- ``siamese_contrastive_loss``: SF: translations near, chosen negatives a margin away
- ``base``: what they have in common; sums of them, and of sentence-transformers' losses, over
  one encoder pass
- ``cached``: any of them with large batches in small memory
- ``gather``: the batch of all processes
- ``token_inputs``, ``vocabulary_softmax``: inputs of token-level losses, and their cross-entropy in small memory
- ``mini_batches``, ``rows_by_length``: batches in groups of rows of like length, so that little padding is computed

A new objective is one file: a subclass of :class:`CrossLingualLoss`, or of :class:`TokenLevelLoss` for means over
tokens, imported here, where recipes and the contract tests find it. :class:`GatheredBatch` gives it the rows of
all processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.losses.base import CombinedLoss as CombinedLoss
    from st_xling.losses.base import CrossLingualLoss as CrossLingualLoss
    from st_xling.losses.base import Term as Term
    from st_xling.losses.base import TokenLevelLoss as TokenLevelLoss
    from st_xling.losses.base import make as make
    from st_xling.losses.cached import CachedLoss as CachedLoss
    from st_xling.losses.cross_unmasking_loss import CrossUnmaskingLoss as CrossUnmaskingLoss
    from st_xling.losses.embedding_distance_loss import EmbeddingDistanceLoss as EmbeddingDistanceLoss
    from st_xling.losses.embedding_distance_loss import embedding_distance as embedding_distance
    from st_xling.losses.gather import GatheredBatch as GatheredBatch
    from st_xling.losses.in_batch_ranking_loss import InBatchRankingLoss as InBatchRankingLoss
    from st_xling.losses.koleo_loss import KoleoLoss as KoleoLoss
    from st_xling.losses.koleo_loss import koleo as koleo
    from st_xling.losses.language_contrastive_loss import LanguageContrastiveLoss as LanguageContrastiveLoss
    from st_xling.losses.language_contrastive_loss import language_contrastive as language_contrastive
    from st_xling.losses.representation_translation_loss import (
        RepresentationTranslationLoss as RepresentationTranslationLoss,
    )
    from st_xling.losses.semantic_contrastive_loss import SemanticContrastiveLoss as SemanticContrastiveLoss
    from st_xling.losses.semantic_contrastive_loss import semantic_contrastive as semantic_contrastive
    from st_xling.losses.siamese_contrastive_loss import SiameseContrastiveLoss as SiameseContrastiveLoss
    from st_xling.losses.siamese_contrastive_loss import siamese_contrastive as siamese_contrastive
    from st_xling.losses.translation_language_modeling_loss import (
        TranslationLanguageModelingLoss as TranslationLanguageModelingLoss,
    )
    from st_xling.losses.translation_ranking_loss import TranslationRankingLoss as TranslationRankingLoss
    from st_xling.losses.translation_ranking_loss import translation_ranking as translation_ranking
    from st_xling.losses.word_alignment_loss import WordAlignmentLoss as WordAlignmentLoss
    from st_xling.losses.word_alignment_loss import word_alignment as word_alignment

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
