"""A multilingual encoder cut to the tokens of some languages: most of its weights are rows of the word embeddings.

- ``vocabulary``: a fast tokenizer's pieces, how often text uses each, and which stay
- ``prune``: tokenizer and word embeddings under new ids
- ``slim_model``: from a model and specs of text to a folder, whole or not at all; parity of both models

Source: Abdaoui, Pradel and Sigel 2020, "Load What You Need: Smaller Versions of Multilingual BERT"; Ushio, Zhou and
Camacho-Collados 2023, "An Efficient Multilingual Language Model Compression through Vocabulary Trimming".
"""

from st_xling.models.slim.prune import model_size, slim_encoder
from st_xling.models.slim.slim_model import SlimReport, parity, slim_model

__all__ = [
    "SlimReport",
    "model_size",
    "parity",
    "slim_encoder",
    "slim_model",
]
