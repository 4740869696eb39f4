"""Encoders: a tiny one, any Hub encoder, the vocabulary and RTL heads; post-processing; word alignment."""

from st_xling.models.align import align_words, split_words, word_similarities
from st_xling.models.backbone import Backbone, backbone
from st_xling.models.heads import RepresentationTranslationHead, VocabularyHead
from st_xling.models.normalization import Postprocessing, fit_postprocessing
from st_xling.models.tiny import tiny_encoder, train_tokenizer
from st_xling.models.view import load_encoder

__all__ = [
    "Backbone",
    "Postprocessing",
    "RepresentationTranslationHead",
    "VocabularyHead",
    "align_words",
    "backbone",
    "fit_postprocessing",
    "load_encoder",
    "split_words",
    "tiny_encoder",
    "train_tokenizer",
    "word_similarities",
]
