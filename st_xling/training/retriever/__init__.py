"""Dense retrievers: English questions, parallel text, and text of other languages → an encoder, or two.

``recipe``    YAML with strict keys: the IR loss, semaCL and langCL with their weights; one encoder or two
``sources``   data of different sizes as one stream, each cycled
``encoders``  one encoder for queries and passages, or the host's ``Router`` over two
``terms``     each term over its own columns, together or one after the other
``trainer``   the gradients of both ways add up in one step
``leaks``     do the sources hold the queries that judge the run?
``run``       a training run
"""

from st_xling.training.retriever.encoders import ROUTES, separate_encoders
from st_xling.training.retriever.recipe import (
    RetrievalOptions,
    RetrievalRecipe,
    is_retrieval_recipe,
    load_retrieval_recipe,
    retrieval_recipe_names,
)
from st_xling.training.retriever.run import train_retrieval
from st_xling.training.retriever.sources import RetrievalSources, join_sources
from st_xling.training.retriever.terms import TermByTermLoss
from st_xling.training.retriever.trainer import RetrievalTrainer

__all__ = [
    "ROUTES",
    "RetrievalOptions",
    "RetrievalRecipe",
    "RetrievalSources",
    "RetrievalTrainer",
    "TermByTermLoss",
    "is_retrieval_recipe",
    "join_sources",
    "load_retrieval_recipe",
    "retrieval_recipe_names",
    "separate_encoders",
    "train_retrieval",
]
