"""A multilingual encoder cut to the tokens of some languages: most of its weights are rows of the word embeddings.

``vocabulary``       a fast tokenizer's pieces, and the ids that it cannot do without
``count_tokens``     how often each token comes in text, in bounded memory
``kept_tokens``      which tokens stay, so that text of such tokens is cut as before
``prune_tokenizer``  the tokenizer under new ids
``cut_weights``      rows of the word embeddings, ids in the configuration
``model_size``       tokens, parameters and bytes
``slim_encoder``     all of it: model and text → :class:`SlimResult`

Source: Abdaoui, Pradel and Sigel 2020, "Load What You Need: Smaller Versions of Multilingual BERT"; Ushio, Zhou and
Camacho-Collados 2023, "An Efficient Multilingual Language Model Compression through Vocabulary Trimming".
"""

from st_xling.models.slim.kept_tokens import REASONS, KeptTokens, kept_tokens
from st_xling.models.slim.model_size import ModelSize, model_size
from st_xling.models.slim.slim_encoder import SlimReport, SlimResult, slim_encoder

__all__ = [
    "REASONS",
    "KeptTokens",
    "ModelSize",
    "SlimReport",
    "SlimResult",
    "kept_tokens",
    "model_size",
    "slim_encoder",
]
