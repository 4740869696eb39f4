"""Adapters on a frozen encoder's layer (mBERT-SF): cached vectors → a small network → stock modules.

``recipe``         YAML with strict keys: layer, network, loss, training
``layer_vectors``  sentence vectors of any layers from one pass
``vector_cache``   the same on disk, by the model's fingerprint and the text's hash
``network``        linear, tanh, ReLU, two layers; normalise–centre–normalise; as stock modules
``fit``            training on vectors
``sweep``          layer by layer: as they are, centred, trained
``run``            all of it, and the saved model
"""

from st_xling.training.adapter.fit import Fit, fit_adapter
from st_xling.training.adapter.layer_vectors import Column, layer_vectors
from st_xling.training.adapter.network import Adapter, FittedAdapter, centred
from st_xling.training.adapter.recipe import (
    AdapterOptions,
    AdapterRecipe,
    SiameseOptions,
    adapter_recipe_names,
    is_adapter_recipe,
    load_adapter_recipe,
)
from st_xling.training.adapter.run import AdapterResult, stock_model, train_adapter
from st_xling.training.adapter.sweep import LayerResult, LayerRow, layer_table, sweep_rows
from st_xling.training.adapter.vector_cache import VectorCache, default_cache

__all__ = [
    "Adapter",
    "AdapterOptions",
    "AdapterRecipe",
    "AdapterResult",
    "Column",
    "Fit",
    "FittedAdapter",
    "LayerResult",
    "LayerRow",
    "SiameseOptions",
    "VectorCache",
    "adapter_recipe_names",
    "centred",
    "default_cache",
    "fit_adapter",
    "is_adapter_recipe",
    "layer_table",
    "layer_vectors",
    "load_adapter_recipe",
    "stock_model",
    "sweep_rows",
    "train_adapter",
]
