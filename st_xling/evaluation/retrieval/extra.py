"""The packages of the extra ``retrieval``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(package: str, purpose: str) -> Any:
    """The package, or ``ValueError`` that says how to get it.

    Args:
        package: Its import name, such as ``"ir_measures"``.
        purpose: What needs it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ValueError(
            f'{purpose} needs {package}, which is not installed: pip install "st-xling[retrieval]".'
        ) from (error)
