"""Recipes as files: named ones come with a room of the package, others are somebody's YAML."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from st_xling.training.strict_keys import nearest


def names_in(package: str) -> list[str]:
    """Names of the recipes in the folder ``recipes`` of a package such as ``st_xling.training``."""
    folder = resources.files(package) / "recipes"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def read_recipe(name_or_path: str, package: str) -> dict[str, Any]:
    """The keys of a recipe, unchecked.

    Args:
        name_or_path: One of :func:`names_in`, or a path that ends in ``.yaml``.
        package: Where named recipes are.

    Raises:
        ValueError: No such recipe (the nearest name is given), or no YAML mapping.
    """
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ValueError(f"no recipe file at {path}; the named recipes are {', '.join(names_in(package))}")
        text = path.read_text(encoding="utf-8")
    elif name_or_path in names_in(package):
        text = (resources.files(package) / "recipes" / f"{name_or_path}.yaml").read_text(encoding="utf-8")
    else:
        raise ValueError(f"no recipe is called {name_or_path!r}{nearest(name_or_path, names_in(package))}")
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{name_or_path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise ValueError(f"a recipe is a mapping of keys: {name_or_path} holds {type(raw).__name__}.")
    return raw
