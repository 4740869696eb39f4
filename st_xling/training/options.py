"""Mappings with strict keys: a misspelt key is an error that names the nearest valid one."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", NoneType: "null"}


def check_keys(section: Any, known: Iterable[str], where: str) -> None:
    """Raise ``ValueError`` unless ``section`` is a mapping whose keys are all ``known``."""
    known = list(known)
    if not isinstance(section, dict):
        raise ValueError(f"{where} must be a mapping of keys: got {section!r}.")
    for key in section:
        if key not in known:
            raise ValueError(f"{where} has no key {key!r}{nearest(str(key), known)}")


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of an error message: the valid key closest to ``key``, or all of them (the first thirty)."""
    known = list(known)
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    shown = known if len(known) <= 30 else [*known[:30], "…"]
    return f"; did you mean {close[0]!r}?" if close else f"; it is one of {', '.join(shown)}"


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of ``base`` in which ``changes`` win, section by section."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def set_key(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted ``key`` in place, making sections as needed."""
    *path, last = key.split(".")
    place = raw
    for part in path:
        if place.get(part) is None:  # missing, or a section left empty
            place[part] = {}
        place = place[part]
        if not isinstance(place, dict):
            raise ValueError(f"cannot set {key!r}: {part!r} is no section of the recipe.")
    place[last] = value


def option_types(owner: Callable[..., Any]) -> dict[str, tuple[type, ...]]:
    """The options of a class or function, read off its signature: name → types it takes; none: not checked here."""
    hints = get_type_hints(owner.__init__ if inspect.isclass(owner) else owner)
    parameters = inspect.signature(owner).parameters
    defaults = {name for name, entry in parameters.items() if entry.default is not inspect.Parameter.empty}
    return {name: value_types(hints[name]) for name in parameters if name in defaults}


def read_options(owner: Callable[..., Any], section: Any, where: str) -> dict[str, Any]:
    """A section's options of ``owner``, names and types checked; whole numbers, or text like 5e-5, may be floats."""
    known = option_types(owner)
    section = {} if section is None else section
    check_keys(section, known, where)
    return {key: read_value(value, known[key], f"{where}.{key}") for key, value in section.items()}


def read_value(value: Any, types: tuple[type, ...], name: str) -> Any:
    """``value`` as one of ``types``, or ``ValueError``."""
    if float in types:
        value = _as_float(value)
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if types and not fits:
        raise ValueError(f"{name} must be {' or '.join(_WORDS[kind] for kind in types)}: got {value!r}.")
    return value


def value_types(hint: Any) -> tuple[type, ...]:
    """The plain types that a type hint allows; none where it allows others too, which are not checked."""
    if get_origin(hint) is Literal:
        return tuple(dict.fromkeys(type(value) for value in get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        parts = [value_types(part) for part in get_args(hint)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    return (hint,) if hint in _WORDS else ()


def _as_float(value: Any) -> Any:
    # YAML reads 5e-5, without a dot, as text.
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
