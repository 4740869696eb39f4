"""A multilingual encoder cut to the tokens of some languages: most of its weights are rows of the word embeddings.

- ``vocabulary``: a fast tokenizer's pieces, how often text uses each, and which stay
- ``prune``: tokenizer and word embeddings under new ids
- ``parity``: cosines between the old embeddings and the new ones
- ``slim_model``: from a model and specs of text to a folder, whole or not at all, with the report

Source: Abdaoui, Pradel and Sigel 2020, "Load What You Need: Smaller Versions of Multilingual BERT"; Ushio, Zhou and
Camacho-Collados 2023, "An Efficient Multilingual Language Model Compression through Vocabulary Trimming".
"""

from st_xling.models.slim.parity import parity
from st_xling.models.slim.prune import model_size, slim_encoder
from st_xling.models.slim.slim_model import SlimReport, slim_model

__all__ = [
    "SlimReport",
    "model_size",
    "parity",
    "slim_encoder",
    "slim_model",
]
