"""Files of recipes, those that come with the package by name and kind, as keys and text; nothing here needs torch."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from st_xling.training.options import nearest

_FOLDER = resources.files("st_xling.training") / "recipes"
_KEYS_OF_KINDS = {"adapter": "adapter", "retrieval": "retriever", "strategy": "cross-encoder"}
"""The key that recognises a recipe → its kind; without one it is an encoder's."""


def recipe_names(kind: str | None = "encoder") -> list[str]:
    """Names of the recipes that come with the package.

    Args:
        kind: ``"encoder"``, ``"retriever"``, ``"adapter"`` or ``"cross-encoder"``; ``None``: all of them.

    Example:
        >>> recipe_names("retriever")
        ['ir', 'ir-langcl', 'ir-semacl', 'ir-semacl-langcl']
    """
    return [name for name, of_kind in _shipped().items() if kind in (None, of_kind)]


def recipe_kind(name_or_path: str) -> str:
    """The kind of a recipe, by its name or by the keys of its file.

    Raises:
        ValueError: No such recipe; the nearest name is given.
    """
    return kind_of(read_recipe(name_or_path))


def is_kind(name_or_path: str, kind: str) -> bool:
    """Whether a name of the package's recipes, or a YAML file, is of this kind; other text is of none."""
    known = name_or_path in _shipped() or (name_or_path.endswith((".yaml", ".yml")) and Path(name_or_path).is_file())
    return known and recipe_kind(name_or_path) == kind


def kind_of(raw: dict[str, Any]) -> str:
    """The kind of a recipe, by its keys."""
    return next((kind for key, kind in _KEYS_OF_KINDS.items() if key in raw), "encoder")


@functools.cache
def _shipped() -> dict[str, str]:
    """Name → kind of the recipes in the package, in alphabetical order."""
    names = sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir() if entry.name.endswith(".yaml"))
    return {name: kind_of(read_recipe(name, names)) for name in names}


def read_recipe(name_or_path: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The keys of a recipe, unchecked.

    Args:
        name_or_path: One of ``names``, or a path that ends in ``.yaml``.
        names: Of recipes in the package; ``None``: all.

    Raises:
        ValueError: No such recipe (the nearest name is given), or no YAML mapping.
    """
    raw = read_yaml(recipe_text(name_or_path, names), name_or_path)
    if not isinstance(raw, dict):
        raise ValueError(f"a recipe is a mapping of keys: {name_or_path} holds {type(raw).__name__}.")
    return raw


def recipe_text(name_or_path: str, names: Iterable[str] | None = None) -> str:
    """The YAML of a recipe, see :func:`read_recipe`."""
    path, names = Path(name_or_path), list(_shipped() if names is None else names)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ValueError(f"no recipe file at {path}; the named recipes are {', '.join(names)}")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"a recipe is text in UTF-8: {path} is not, at byte {error.start}; convert it.") from error
    if name_or_path not in names:
        raise ValueError(f"no recipe is called {name_or_path!r}{nearest(name_or_path, names)}")
    return (_FOLDER / f"{name_or_path}.yaml").read_text(encoding="utf-8")


def read_yaml(text: str, where: str) -> Any:
    """The value in a YAML text.

    Raises:
        ValueError: No YAML, a key that comes twice in a mapping, or brackets nested too deep; begins with ``where``.
    """
    try:
        return yaml.load(text, Loader=_EachKeyOnce)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ValueError(f"{where} is not valid YAML: it is nested too deep.") from None


class _EachKeyOnce(yaml.SafeLoader):
    """PyYAML takes the last of equal keys, as if the others were not there."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                line = key.start_mark.line + 1
                if key.value in lines:
                    raise ValueError(f"the key {key.value!r} stands in line {lines[key.value]} and in line {line}")
                lines[key.value] = line
        return super().construct_mapping(node, deep)
