"""Mappings with strict keys: a misspelt key is an error that names the nearest valid one."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from st_xling.utils.options import check_option, kinds_of, option_hints


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


def option_types(owner: Callable[..., Any]) -> dict[str, Any]:
    """The options of a class or function, read off its signature: name → annotation."""
    hints = option_hints(owner.__init__ if inspect.isclass(owner) else owner)
    parameters = inspect.signature(owner).parameters
    return {
        name: hints.get(name, Any) for name, entry in parameters.items() if entry.default is not inspect.Parameter.empty
    }


def read_options(owner: Callable[..., Any], section: Any, where: str) -> dict[str, Any]:
    """A section's options of ``owner``, names and types checked; whole numbers, or text like 5e-5, may be floats."""
    known = option_types(owner)
    section = {} if section is None else section
    check_keys(section, known, where)
    return {key: read_value(value, known[key], f"{where}.{key}") for key, value in section.items()}


def read_value(value: Any, hint: Any, name: str) -> Any:
    """``value`` as the annotation has it, or ``ValueError``; see :func:`~st_xling.utils.options.check_option`."""
    if float in kinds_of(hint):
        value = _as_float(value)
    check_option(value, hint, name)
    return value


def _as_float(value: Any) -> Any:
    # YAML reads 5e-5, without a dot, as text.
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
