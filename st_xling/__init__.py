"""Cross-lingual sentence embeddings for the Hugging Face ecosystem.

What most programs need is here and is imported on first use, like the packages themselves: ``st_xling.data``,
``.models``, ``.losses``, ``.training``, ``.mining``, ``.reranking``, ``.evaluation``, ``.metrics``, ``.hub`` and
``.reproduce``, which have the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling._version import __version__ as __version__
from st_xling.metrics import write_shims
from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling import data as data
    from st_xling import evaluation as evaluation
    from st_xling import hub as hub
    from st_xling import losses as losses
    from st_xling import metrics as metrics
    from st_xling import mining as mining
    from st_xling import models as models
    from st_xling import reproduce as reproduce
    from st_xling import reranking as reranking
    from st_xling import training as training
    from st_xling.data import load_pairs as load_pairs
    from st_xling.data.phrasebook import parallel_phrases as parallel_phrases
    from st_xling.evaluation import BuccEvaluator as BuccEvaluator
    from st_xling.evaluation import PrecisionEvaluator as PrecisionEvaluator
    from st_xling.evaluation import RerankingEvaluator as RerankingEvaluator
    from st_xling.evaluation import RetrievalEvaluator as RetrievalEvaluator
    from st_xling.evaluation import TatoebaEvaluator as TatoebaEvaluator
    from st_xling.evaluation import evaluate_alignment as evaluate_alignment
    from st_xling.evaluation import xsim_by_language as xsim_by_language
    from st_xling.hub import push_model as push_model
    from st_xling.hub import write_card as write_card
    from st_xling.losses import CachedLoss as CachedLoss
    from st_xling.losses import CombinedLoss as CombinedLoss
    from st_xling.losses import CrossLingualLoss as CrossLingualLoss
    from st_xling.losses import CrossUnmaskingLoss as CrossUnmaskingLoss
    from st_xling.losses import EmbeddingDistanceLoss as EmbeddingDistanceLoss
    from st_xling.losses import InBatchRankingLoss as InBatchRankingLoss
    from st_xling.losses import KoleoLoss as KoleoLoss
    from st_xling.losses import LanguageContrastiveLoss as LanguageContrastiveLoss
    from st_xling.losses import RepresentationTranslationLoss as RepresentationTranslationLoss
    from st_xling.losses import SemanticContrastiveLoss as SemanticContrastiveLoss
    from st_xling.losses import SiameseContrastiveLoss as SiameseContrastiveLoss
    from st_xling.losses import TranslationLanguageModelingLoss as TranslationLanguageModelingLoss
    from st_xling.losses import TranslationRankingLoss as TranslationRankingLoss
    from st_xling.losses import WordAlignmentLoss as WordAlignmentLoss
    from st_xling.mining import EmbeddingStore as EmbeddingStore
    from st_xling.mining import FilterOptions as FilterOptions
    from st_xling.mining import best_threshold as best_threshold
    from st_xling.mining import calibrate as calibrate
    from st_xling.mining import encode as encode
    from st_xling.mining import find_neighbors as find_neighbors
    from st_xling.mining import mine as mine
    from st_xling.mining import mine_texts as mine_texts
    from st_xling.mining import plan_mining as plan_mining
    from st_xling.mining import score_pairs as score_pairs
    from st_xling.mining import score_texts as score_texts
    from st_xling.mining import write_store as write_store
    from st_xling.mining import xsim as xsim
    from st_xling.models import align_words as align_words
    from st_xling.models import load_encoder as load_encoder
    from st_xling.models import tiny_encoder as tiny_encoder
    from st_xling.models.slim import slim_model as slim_model
    from st_xling.reranking import PairScorer as PairScorer
    from st_xling.reranking import load_cross_encoder_recipe as load_cross_encoder_recipe
    from st_xling.reranking import rerank as rerank
    from st_xling.reranking import rerank_texts as rerank_texts
    from st_xling.reranking import search_texts as search_texts
    from st_xling.reranking import train_cross_encoder as train_cross_encoder
    from st_xling.training import CrossLingualTrainer as CrossLingualTrainer
    from st_xling.training import load_adapter_recipe as load_adapter_recipe
    from st_xling.training import load_recipe as load_recipe
    from st_xling.training import load_retrieval_recipe as load_retrieval_recipe
    from st_xling.training import recipe_names as recipe_names
    from st_xling.training import train as train
    from st_xling.training import train_adapter as train_adapter
    from st_xling.training import train_retrieval as train_retrieval

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]

write_shims()
