"""Comparison of encoders: which is better, for which language, by how much, and is the difference significant?

- ``data``: the texts that all models are compared by
- ``tasks``: the tasks: results of each item, and measures computed from them
- ``statistics``: intervals, paired tests, and the order that they allow
- ``run``: :func:`compare_models`: all tasks of all models, resumed where they were stopped; a table, and a page of HTML
"""

from st_xling.evaluation.compare.data import ComparisonData, load_comparison_data
from st_xling.evaluation.compare.run import ComparisonReport, ModelSpec, compare_models, parse_models

__all__ = ["ComparisonData", "ComparisonReport", "ModelSpec", "compare_models", "load_comparison_data", "parse_models"]
