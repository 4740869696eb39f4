"""Comparison of encoders: which is better, for which language, by how much, and is the difference significant?

- ``data``: the texts that all models are compared by
- ``tasks``: the tasks: results of each item, and measures computed from them
- ``statistics``: intervals, paired tests, and the order that they allow
- ``axes``: translation, retrieval and old languages before and after a training
- ``front``: the same at several weights between two models, one of which is chosen and saved
- ``run``: :func:`compare_models`: all tasks of all models, resumed where they were stopped; a table, and a page of HTML
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.evaluation.compare.axes import compare_axes as compare_axes
    from st_xling.evaluation.compare.axes import measure_axes as measure_axes
    from st_xling.evaluation.compare.data import ComparisonData as ComparisonData
    from st_xling.evaluation.compare.data import load_comparison_data as load_comparison_data
    from st_xling.evaluation.compare.front import MergeReport as MergeReport
    from st_xling.evaluation.compare.front import merge_models as merge_models
    from st_xling.evaluation.compare.run import ComparisonReport as ComparisonReport
    from st_xling.evaluation.compare.run import ModelSpec as ModelSpec
    from st_xling.evaluation.compare.run import compare_models as compare_models
    from st_xling.evaluation.compare.run import parse_models as parse_models

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
