"""Recipes → model + loss + data → trainer; loss state saved and resumed."""

from st_xling.models.lora import LoraOptions
from st_xling.training.build import build_loss
from st_xling.training.finite import NotFiniteError
from st_xling.training.recipe import ModelOptions, Recipe, TrainingOptions, load_recipe, recipe_names
from st_xling.training.run import TrainingInterrupted, TrainingResult, train
from st_xling.training.trainer import CrossLingualTrainer

__all__ = [
    "CrossLingualTrainer",
    "LoraOptions",
    "ModelOptions",
    "NotFiniteError",
    "Recipe",
    "TrainingInterrupted",
    "TrainingOptions",
    "TrainingResult",
    "build_loss",
    "load_recipe",
    "recipe_names",
    "train",
]
