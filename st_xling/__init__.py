"""Cross-lingual sentence embeddings for the Hugging Face ecosystem.

What most programs need is here and is imported on first use; the rest is in the packages ``st_xling.training``,
``.losses``, ``.mining``, ``.reranking``, ``.evaluation``, ``.data``, ``.models`` and ``.hub``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling._version import __version__
from st_xling.metrics.shims import write_shims
from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.evaluation import (
        BuccEvaluator,
        PrecisionEvaluator,
        RerankingEvaluator,
        RetrievalEvaluator,
        TatoebaEvaluator,
    )
    from st_xling.losses import (
        CachedLoss,
        CombinedLoss,
        InBatchRankingLoss,
        LanguageContrastiveLoss,
        RepresentationTranslationLoss,
        SemanticContrastiveLoss,
        SiameseContrastiveLoss,
        TranslationLanguageModelingLoss,
        TranslationRankingLoss,
        WordAlignmentLoss,
    )
    from st_xling.mining import (
        EmbeddingStore,
        best_threshold,
        calibrate,
        encode,
        mine,
        mine_texts,
        neighbours,
        score_pairs,
        score_texts,
        xsim,
    )
    from st_xling.models import load_encoder, tiny_encoder
    from st_xling.models.pair_scorer import rerank
    from st_xling.reranking import rerank_texts, search_texts
    from st_xling.training import CrossLingualTrainer, load_recipe, recipe_names, train

__all__ = [
    "BuccEvaluator",
    "CachedLoss",
    "CombinedLoss",
    "CrossLingualTrainer",
    "EmbeddingStore",
    "InBatchRankingLoss",
    "LanguageContrastiveLoss",
    "PrecisionEvaluator",
    "RepresentationTranslationLoss",
    "RerankingEvaluator",
    "RetrievalEvaluator",
    "SemanticContrastiveLoss",
    "SiameseContrastiveLoss",
    "TatoebaEvaluator",
    "TranslationLanguageModelingLoss",
    "TranslationRankingLoss",
    "WordAlignmentLoss",
    "__version__",
    "best_threshold",
    "calibrate",
    "encode",
    "load_encoder",
    "load_recipe",
    "mine",
    "mine_texts",
    "neighbours",
    "recipe_names",
    "rerank",
    "rerank_texts",
    "score_pairs",
    "score_texts",
    "search_texts",
    "tiny_encoder",
    "train",
    "xsim",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)

write_shims()
