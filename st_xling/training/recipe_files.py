"""Recipes as files: named ones come with the package, others are the user's YAML."""

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
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"a recipe is text in UTF-8: {path} is not, at byte {error.start}; convert it.") from error
    elif name_or_path in names_in(package):
        text = (resources.files(package) / "recipes" / f"{name_or_path}.yaml").read_text(encoding="utf-8")
    else:
        raise ValueError(f"no recipe is called {name_or_path!r}{nearest(name_or_path, names_in(package))}")
    raw = read_yaml(text, name_or_path)
    if not isinstance(raw, dict):
        raise ValueError(f"a recipe is a mapping of keys: {name_or_path} holds {type(raw).__name__}.")
    return raw


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
