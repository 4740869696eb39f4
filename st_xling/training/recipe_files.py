"""Files of recipes, by name or path, as mappings with strict keys; nothing here needs torch."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from st_xling.utils.file_endings import YAML_ENDINGS
from st_xling.utils.options import check_number, check_option, kinds_of, nearest_name, option_hints
from st_xling.utils.signature import sha8

_FOLDER = resources.files("st_xling.training") / "recipes"
_KEYS_OF_KINDS = {"adapter": "adapter", "retrieval": "retriever", "strategy": "cross-encoder"}
"""The key that recognizes a recipe → its kind; without one it is an encoder's."""


def recipe_names(kind: str | None = "encoder") -> list[str]:
    """Names of the recipes that come with the package.

    Args:
        kind: ``"encoder"``, ``"retriever"``, ``"adapter"`` or ``"cross-encoder"``; ``None``: all of them.

    Example:
        >>> recipe_names("retriever")
        ['ir', 'ir-langcl', 'ir-semacl', 'ir-semacl-langcl']
    """
    return [name for name, kind_of_recipe in _shipped().items() if kind in (None, kind_of_recipe)]


def recipe_kind(name_or_path: str) -> str:
    """The kind of a recipe, by its name or by the keys of its file.

    Raises:
        ValueError: No such recipe; the nearest name is given.
    """
    return _kind_of(read_recipe(name_or_path))


def _kind_of(raw: dict[str, Any]) -> str:
    return next((kind for key, kind in _KEYS_OF_KINDS.items() if key in raw), "encoder")


@functools.cache
def _shipped() -> dict[str, str]:
    """Name → kind of the recipes in the package, in alphabetical order."""
    names = sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir() if entry.name.endswith(".yaml"))
    return {name: _kind_of(read_recipe(name, names)) for name in names}


def read_recipe(name_or_path: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The keys of a recipe, unchecked.

    Args:
        name_or_path: One of ``names``, or a path that ends in ``.yaml``.
        names: Names of recipes in the package; ``None``: all.

    Raises:
        ValueError: No such recipe (the nearest name is given), or no YAML mapping.
    """
    raw = read_yaml(recipe_text(name_or_path, names), name_or_path)
    if not isinstance(raw, dict):
        raise ValueError(f"a recipe is a mapping of keys: {name_or_path} holds {type(raw).__name__}.")
    return raw


def recipe_fingerprint(name_or_path: str) -> str:
    """Hash the values of a recipe: eight digits that change with them, not with its comments or summary.

    Example:
        >>> len(recipe_fingerprint("dap"))
        8
    """
    values = read_recipe(name_or_path)
    values.pop("summary", None)
    return sha8(values)


def recipe_text(name_or_path: str, names: Iterable[str] | None = None) -> str:
    """The YAML of a recipe, see :func:`read_recipe`."""
    path = Path(name_or_path)
    names = list(_shipped()) if names is None else list(names)
    if path.suffix in YAML_ENDINGS:
        if not path.is_file():
            raise ValueError(f"no recipe file at {path}; the named recipes are {', '.join(names)}")
        return path.read_text(encoding="utf-8")
    if name_or_path not in names:
        raise ValueError(f"no recipe is called {name_or_path!r}{nearest_name(name_or_path, names)}")
    return (_FOLDER / f"{name_or_path}.yaml").read_text(encoding="utf-8")


def read_sections(
    name_or_path: str, kind: str, sections: list[str], *, tiny: bool, overrides: dict[str, Any] | None
) -> dict[str, Any]:
    """The sections of a recipe of one kind, with changes applied; of their content nothing is checked.

    Args:
        name_or_path: One of :func:`recipe_names`, or a path that ends in ``.yaml``.
        kind: Kind of the recipe.
        sections: All that it may have, ``name`` and ``summary`` first, which do not change.
        tiny: Apply the section ``tiny``.
        overrides: Dotted key → value, applied last.
    """
    raw = read_recipe(name_or_path, recipe_names(kind))
    changes = raw.pop("tiny", None) or {}
    check_keys(changes, sections[2:], "tiny")
    if tiny:
        raw = merge_sections(raw, changes)
    for key, value in (overrides or {}).items():
        set_key(raw, key, value)
    check_keys(raw, sections, "the recipe")
    return raw


class _UniqueKeys(yaml.SafeLoader):
    """YAML's safe loader; a key that a mapping repeats is an error, where YAML takes the second one in silence."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            line = key.start_mark.line + 1
            if (key.tag, key.value) in lines:
                first = lines[key.tag, key.value]
                raise ValueError(f"the key {key.value!r} is in line {first} and again in line {line}; keep one of them")
            lines[key.tag, key.value] = line
        return node


def read_yaml(text: str, where: str) -> Any:
    """Return the value in a YAML text.

    Args:
        text: The YAML.
        where: Name of the file or option, with which errors begin.

    Raises:
        ValueError: It is not valid YAML, or a mapping has a key twice.
    """
    try:
        return yaml.load(text, _UniqueKeys)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error


def check_keys(section: Any, valid_keys: Iterable[str], where: str) -> None:
    """Raise ``ValueError`` unless ``section`` is a mapping whose keys are all among ``valid_keys``."""
    names = list(valid_keys)
    if not isinstance(section, dict):
        raise ValueError(f"{where} must be a mapping of keys: got {section!r}.")
    for key in section:
        if key not in names:
            raise ValueError(f"{where} has no key {key!r}{nearest_name(str(key), names)}")


def merge_sections(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of ``base`` in which ``changes`` win, section by section."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge_sections(merged[key], value)
        else:
            merged[key] = value
    return merged


def set_key(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted ``key`` in place, making sections as needed."""
    *path, last = key.split(".")
    section = raw
    for name in path:
        if section.get(name) is None:  # missing, or a section left empty
            section[name] = {}
        section = section[name]
        if not isinstance(section, dict):
            raise ValueError(f"cannot set {key!r}: {name!r} is no section of the recipe.")
    section[last] = value


def option_types(owner: Callable[..., Any]) -> dict[str, Any]:
    """The options of a class or function, read off its signature: name → annotation."""
    function = owner.__init__ if inspect.isclass(owner) else owner
    hints = option_hints(function)
    types: dict[str, Any] = {}
    for name, parameter in inspect.signature(owner).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            types[name] = hints.get(name, Any)
    return types


def read_options(owner: Callable[..., Any], section: Any, where: str) -> dict[str, Any]:
    """A section's options of ``owner``, names and types checked; whole numbers, or text like 5e-5, may be floats."""
    types = option_types(owner)
    section = {} if section is None else section
    check_keys(section, types, where)
    return {key: read_value(value, types[key], f"{where}.{key}") for key, value in section.items()}


def read_value(value: Any, hint: Any, name: str) -> Any:
    """``value`` as the annotation has it, or ``ValueError``; see :func:`~st_xling.utils.options.check_option`."""
    if float in kinds_of(hint) and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError):  # YAML reads 5e-5, without a dot, as text.
            value = float(value)
    check_option(value, hint, name)
    if isinstance(value, float):
        check_number(name, value)
    return value
