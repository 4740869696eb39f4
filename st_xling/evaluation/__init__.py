"""Judging encoders: Tatoeba similarity search and the exact nearest-neighbour search beneath it.

``cosines``        cosines that do not depend on blocks, order or machine
``nearest``        1-nearest neighbours and retrieval accuracy
``languages``      Tatoeba language codes and named groups
``tatoeba``        :class:`TatoebaEvaluator`, for ``SentenceTransformerTrainer(evaluator=...)`` or on its own
``tatoeba_pairs``  its inputs, checked
``tatoeba_table``  its metrics as a plain-text table

Evaluators derive from sentence-transformers' base class, which takes seconds to import, so they are loaded on first
use: ``st_xling.mining``, which needs only the cosines, stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from st_xling.evaluation.languages import TATOEBA_GROUPS, resolve_languages
from st_xling.evaluation.nearest import nearest, retrieval_accuracy
from st_xling.evaluation.tatoeba_table import TatoebaResult, tatoeba_results, tatoeba_table

if TYPE_CHECKING:
    from st_xling.evaluation.tatoeba import TatoebaEvaluator

__all__ = [
    "TATOEBA_GROUPS",
    "TatoebaEvaluator",
    "TatoebaResult",
    "nearest",
    "resolve_languages",
    "retrieval_accuracy",
    "tatoeba_results",
    "tatoeba_table",
]

_LOADED_ON_USE = {"TatoebaEvaluator": "tatoeba"}


def __getattr__(name: str) -> Any:
    if name in _LOADED_ON_USE:
        return getattr(import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
