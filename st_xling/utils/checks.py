"""Checks with their errors: a choice of an option; a package of the extras ``retrieval`` and ``transfer``."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``, a ``Literal`` type or a collection."""
    choices = get_args(choices) or choices
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}: got {value!r}.")


def require(package: str, purpose: str, *, extra: str = "retrieval") -> Any:
    """The package, or ``ValueError`` that tells how to install it.

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
