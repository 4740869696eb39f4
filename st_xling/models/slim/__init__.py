"""A multilingual encoder cut to the tokens of some languages: most of its weights are rows of the word embeddings.

``vocabulary``       a fast tokenizer's pieces, and the ids that it cannot do without
``count_tokens``     how often each token comes in text, in bounded memory
``kept_tokens``      which tokens stay, so that text of such tokens is cut as before
``prune_tokenizer``  the tokenizer under new ids
``cut_weights``      rows of the word embeddings, ids in the configuration
``model_size``       tokens, parameters and bytes
``slim_encoder``     all of it: model and text → :class:`SlimResult`
``set_apart``        rows of a stream kept out of it, and a sample of those that are not
``parity``           is it as good as before? Cosines to the old embeddings, tokens, translation retrieval
``report``           what became of a model, as a table and for its ``results.json``
``write``            its folder, whole or not at all
``slim_model``       from a model and specs of text to that folder

Source: Abdaoui, Pradel and Sigel 2020, "Load What You Need: Smaller Versions of Multilingual BERT"; Ushio, Zhou and
Camacho-Collados 2023, "An Efficient Multilingual Language Model Compression through Vocabulary Trimming".
"""

from st_xling.models.slim.kept_tokens import REASONS, KeptTokens, kept_tokens
from st_xling.models.slim.model_size import ModelSize, model_size
from st_xling.models.slim.parity import Parity, parity
from st_xling.models.slim.report import SlimFigures
from st_xling.models.slim.slim_encoder import SlimReport, SlimResult, slim_encoder
from st_xling.models.slim.slim_model import slim_model

__all__ = [
    "REASONS",
    "KeptTokens",
    "ModelSize",
    "Parity",
    "SlimFigures",
    "SlimReport",
    "SlimResult",
    "kept_tokens",
    "model_size",
    "parity",
    "slim_encoder",
    "slim_model",
]
