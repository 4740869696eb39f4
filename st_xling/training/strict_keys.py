"""Mappings with strict keys: a misspelt key is an error that names the nearest valid one."""

from __future__ import annotations

import copy
import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any


def check_keys(given: Any, known: Iterable[str], where: str) -> None:
    """Raise ``ValueError`` unless ``given`` is a mapping whose keys are all ``known``."""
    known = list(known)
    if not isinstance(given, dict):
        raise ValueError(f"{where} must be a mapping of keys: got {given!r}.")
    for key in given:
        if key not in known:
            raise ValueError(f"{where} has no key {key!r}{nearest(str(key), known)}")


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of an error message: the valid key closest to ``key``, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; it is one of {', '.join(known)}"


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
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise ValueError(f"cannot set {key!r}: {part!r} is no section of the recipe.")
    place[last] = value


def read_options(kind: type, given: Any, where: str) -> Any:
    """An instance of the dataclass ``kind`` with the ``given`` values, types checked; an integer may be a float."""
    given = given or {}
    fields = {entry.name: entry for entry in dataclasses.fields(kind)}
    check_keys(given, fields, where)
    defaults = kind()
    values = {}
    for key, value in given.items():
        expected = type(getattr(defaults, key))
        if expected is float:
            value = _as_float(value)
        optional = expected is type(None)
        if not optional and (not isinstance(value, expected) or (expected is int and isinstance(value, bool))):
            raise ValueError(f"{where}.{key} must be {expected.__name__}: got {value!r}.")
        values[key] = value
    return kind(**values)


def _as_float(value: Any) -> Any:
    # YAML reads 5e-5, without a dot, as text.
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
