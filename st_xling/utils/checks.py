"""Checks with their errors: a choice of an option; a package of the extras ``retrieval`` and ``transfer``."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar, cast, get_args

Function = TypeVar("Function", bound=Callable[..., Any])


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``, a ``Literal`` type or a collection."""
    choices = get_args(choices) or choices
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}: got {value!r}.")


def nearest_name(key: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the valid key closest to ``key``, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; it is one of {', '.join(known)}"


def helpful_arguments(function: Function) -> Function:
    """Let a wrong keyword, and positional arguments that are to be named, raise ``TypeError`` with the right name."""
    parameters = inspect.signature(function).parameters
    first = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - parameters.keys():
            raise TypeError(f"{function.__name__}() has no argument {name!r}{nearest_name(name, parameters)}")
        if len(args) > len(first):
            named = next(name for name in parameters if name not in first)
            raise TypeError(
                f"{function.__name__}() takes {', '.join(first)}; pass other arguments by name, such as {named}=..."
            )
        return function(*args, **kwargs)

    return cast(Function, checked)


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
