"""The tables of five papers by one command each: their steps, running them, and results next to the paper's own.

- ``paper``, ``paper_files``: the tables as files describe them
- ``run``: run the steps of tables, and resume
- ``reports``: results next to the paper's values
- ``principal_components``, ``step_cost``: figures and tables that are not results of an evaluation
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.reproduce.paper import Paper as Paper
    from st_xling.reproduce.paper import load_paper as load_paper
    from st_xling.reproduce.paper_files import paper_names as paper_names
    from st_xling.reproduce.run import reproduce as reproduce

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
