"""Recipes → model + loss + data → trainer; loss state saved and resumed.

``recipe``, ``arguments``  YAML → losses, model options, training arguments
``run``                    one run, with hooks that ``encoder``, ``retriever``, ``adapter`` and ``reranker`` fill in
``trainer``                trainers that stop at NaN, save the loss's own parameters and train in several processes
``run_folder``, ``checkpoint``  what is written, so that a killed run can go on
``transfer``               fine-tuning on English labels, tested in other languages
"""

from st_xling.models.lora import LoraOptions
from st_xling.training.arguments import TrainingOptions
from st_xling.training.encoder import build_loss, train
from st_xling.training.recipe import ModelOptions, Recipe, load_recipe, recipe_names
from st_xling.training.retriever import RetrievalSources, load_retrieval_recipe, train_retrieval
from st_xling.training.run import TrainingInterrupted, TrainingResult
from st_xling.training.trainer import CrossLingualTrainer, NotFiniteError

__all__ = [
    "CrossLingualTrainer",
    "LoraOptions",
    "ModelOptions",
    "NotFiniteError",
    "Recipe",
    "RetrievalSources",
    "TrainingInterrupted",
    "TrainingOptions",
    "TrainingResult",
    "build_loss",
    "load_recipe",
    "load_retrieval_recipe",
    "recipe_names",
    "train",
    "train_retrieval",
]
