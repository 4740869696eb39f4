"""Encoders and heads: a tiny encoder, any Hub encoder or a view of it, the vocabulary head and the RTL head."""

from st_xling.models.backbone import Backbone, backbone
from st_xling.models.heads import RepresentationTranslationHead, VocabularyHead
from st_xling.models.tiny import tiny_encoder, train_tokenizer
from st_xling.models.view import load_encoder, view

__all__ = [
    "Backbone",
    "RepresentationTranslationHead",
    "VocabularyHead",
    "backbone",
    "load_encoder",
    "tiny_encoder",
    "train_tokenizer",
    "view",
]
