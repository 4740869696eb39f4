"""The packages of extras, ``retrieval`` and ``transfer``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(package: str, purpose: str, *, extra: str = "retrieval") -> Any:
    """The package, or ``ValueError`` that says how to get it.

    Args:
        package: Its import name, such as ``"ir_measures"``.
        purpose: What needs it.
        extra: Of ours that brings it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ValueError(f'{purpose} needs {package}, which is not installed: pip install "st-xling[{extra}]".') from (
            error
        )
