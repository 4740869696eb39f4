"""Options checked by their annotations: a wrong type or an unknown choice is named before anything is computed."""

from __future__ import annotations

import functools
import numbers
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "text"),
    type(None): (type(None), "null (None)"),
}


def check_option(value: Any, hint: Any, name: str) -> None:
    """Raise ``ValueError`` if the annotation ``hint`` excludes the value; see :func:`is_checked`."""
    if expected := _fault(value, hint):
        raise ValueError(f"{name} must be {expected}: got {value!r}.")


def is_checked(hint: Any) -> bool:
    """Return whether an annotation has numbers, booleans, text and ``Literal`` choices only."""
    return all(get_origin(kind) is Literal or kind in _KINDS for kind in kinds_of(hint))


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the hint itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


@functools.cache
def option_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function's options; none where some are names that only a type checker sees."""
    try:
        return get_type_hints(function)
    except NameError:
        return {}


def _fault(value: Any, hint: Any) -> str:
    """Return in words what the annotation takes, if ``value`` is something else."""
    expected = []
    for kind in kinds_of(hint):
        if get_origin(kind) is Literal:
            if any(value == choice and type(value) is type(choice) for choice in get_args(kind)):
                return ""
            expected.append(f"one of {', '.join(map(repr, get_args(kind)))}")
        elif kind not in _KINDS:
            return ""
        else:
            accepted, words = _KINDS[kind]
            if isinstance(value, accepted) and (kind is bool or not isinstance(value, bool)):
                return ""
            expected.append(words)
    return " or ".join(expected)
