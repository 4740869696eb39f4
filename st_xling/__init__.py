"""Cross-lingual sentence embeddings for the Hugging Face ecosystem.

The packages ``data``, ``models``, ``losses``, ``training``, ``mining``, ``reranking``, ``evaluation``, ``metrics``,
``hub`` and ``reproduce`` are imported on first use. Importing this one registers the metrics with ``evaluate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling._version import __version__ as __version__
from st_xling.metrics import write_shims
from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling import data as data
    from st_xling import evaluation as evaluation
    from st_xling import hub as hub
    from st_xling import losses as losses
    from st_xling import metrics as metrics
    from st_xling import mining as mining
    from st_xling import models as models
    from st_xling import reproduce as reproduce
    from st_xling import reranking as reranking
    from st_xling import training as training

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]

write_shims()
