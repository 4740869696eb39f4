"""Encoders: load, make, grow and merge them; heads, post-processing and word alignment.

- ``load``, ``view``: load an encoder as it was saved, or with another layer, pooling, prompt or type
- ``tiny``, ``static``: small encoders built from text, a transformer and a table of vectors
- ``encoding``: sentences to vectors, the one way in which mining, evaluation and training encode
- ``normalization``: center, whiten and reduce sentence vectors
- ``align``: align the words of translations
- ``backbones``, ``heads``: the parts of an encoder that token-level objectives use, and what they add to it
- ``cross_encoders``, ``pair_scorer``: build a cross-encoder, and score many pairs with it
- ``slim``, ``vocabulary``, ``token_rows``: cut a vocabulary to some languages
- ``grow``, ``new_rows``, ``tokenization``: add the pieces of a language, and look whether it needs any
- ``lora``: adapters that are trained, saved and merged
- ``merge``: the weights of two encoders mixed
- ``training_dtype``, ``fast_linear``: types of weights, and faster products on some processors
- ``sidecar``: the files next to a model's weights
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.models.align import align_words as align_words
    from st_xling.models.align import split_words as split_words
    from st_xling.models.align import word_similarities as word_similarities
    from st_xling.models.backbones import Backbone as Backbone
    from st_xling.models.backbones import backbone as backbone
    from st_xling.models.grow import Growth as Growth
    from st_xling.models.grow import grow_vocabulary as grow_vocabulary
    from st_xling.models.heads import RepresentationTranslationHead as RepresentationTranslationHead
    from st_xling.models.heads import VocabularyHead as VocabularyHead
    from st_xling.models.merge import merge_encoders as merge_encoders
    from st_xling.models.normalization import Postprocessing as Postprocessing
    from st_xling.models.normalization import fit_postprocessing as fit_postprocessing
    from st_xling.models.slim import SlimReport as SlimReport
    from st_xling.models.slim import slim_model as slim_model
    from st_xling.models.static import static_encoder as static_encoder
    from st_xling.models.static import train_static_tokenizer as train_static_tokenizer
    from st_xling.models.tiny import tiny_encoder as tiny_encoder
    from st_xling.models.tiny import train_tokenizer as train_tokenizer
    from st_xling.models.tokenization import TokenizationReport as TokenizationReport
    from st_xling.models.tokenization import compare_tokenization as compare_tokenization
    from st_xling.models.view import load_encoder as load_encoder
    from st_xling.models.vocabulary import slim_encoder as slim_encoder

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
