"""Files of papers, by name or path, read and checked: a mistake in a file of one's own is named in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from st_xling.training.recipe_files import check_keys, read_yaml
from st_xling.utils.file_endings import YAML_ENDINGS
from st_xling.utils.options import check_choice

COMMON = "common"

_PAPERS = resources.files("st_xling.reproduce") / "papers"
_SECTIONS = ("paper", "settings", "bases", "models", "evaluations", "tables")
_REQUIRED_SECTIONS = ("paper", "settings", "evaluations", "tables")
_TABLE_KEYS = ("title", "rows", "columns", "factor", "decimals", "paper", "compare", "note", "examples", "picture")


def paper_names() -> list[str]:
    """Return the names of the papers whose tables are described."""
    names = sorted(entry.name.removesuffix(".yaml") for entry in _PAPERS.iterdir() if entry.name.endswith(".yaml"))
    return [name for name in names if name != COMMON]


def read_common() -> dict[str, Any]:
    """Return what all papers share: settings of each scale, and bases."""
    return read_yaml((_PAPERS / f"{COMMON}.yaml").read_text(encoding="utf-8"), COMMON)


def read_paper(name: str) -> dict[str, Any]:
    """Return the content of a paper's file.

    Args:
        name: One of :func:`paper_names`, or the path of such a file of one's own.

    Raises:
        ValueError: No such paper, or a file of another form; names the place and what belongs there.
    """
    if not name.endswith(YAML_ENDINGS):
        check_choice("paper", name, paper_names())
        return read_yaml((_PAPERS / f"{name}.yaml").read_text(encoding="utf-8"), name)
    try:
        text = Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be text in UTF-8: {error}.") from error
    content = read_yaml(text, name)
    _check_paper(content, name)
    return content


def _check_paper(content: Any, name: str) -> None:
    """Raise ``ValueError`` unless the content has the form of a paper, see :mod:`st_xling.reproduce.paper`."""
    check_keys(content, _SECTIONS, name)
    if missing := [section for section in _REQUIRED_SECTIONS if not content.get(section)]:
        raise ValueError(f"{name} must have {', '.join(_REQUIRED_SECTIONS)}: {', '.join(missing)} is missing.")
    _check_text(content["paper"], f"{name}: paper")
    for scale, settings in _mapping(content["settings"], f"{name}: settings").items():
        _mapping(settings, f"{name}: settings: {scale}")
        if "model" not in settings:
            raise ValueError(f"{name}: settings: {scale} must name the model that tables start from, under model.")
    for section in ("bases", "models", "evaluations"):
        for label, command in _mapping(content.get(section) or {}, f"{name}: {section}").items():
            _check_text(command, f"{name}: {section}: {label}")
            if not command.split():
                raise ValueError(f"{name}: {section}: {label} must be a command: got nothing.")
    for label, table in _mapping(content["tables"], f"{name}: tables").items():
        _check_table(table, f"{name}: table {label}")


def _check_table(table: Any, where: str) -> None:
    """Raise ``ValueError`` unless an entry of ``tables`` has the form of a table."""
    check_keys(table, _TABLE_KEYS, where)
    _check_text(table.get("title"), f"{where}: title")
    for label, row in _mapping(table.get("rows"), f"{where}: rows").items():
        _check_has_one_of(row, ("model", "run"), f"{where}: rows: {label}")
    for label, column in _mapping(table.get("columns"), f"{where}: columns").items():
        _check_has_one_of(column, ("evaluation",), f"{where}: columns: {label}")
        if not isinstance(column, str) and "value" not in column:
            raise ValueError(f"{where}: columns: {label} must have value, a path in the evaluation's JSON.")
    for pair in table.get("compare") or ():
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{where}: compare must be a list of pairs of rows: got {pair!r}.")


def _check_has_one_of(entry: Any, keys: Sequence[str], where: str) -> None:
    """Raise ``ValueError`` unless the entry of a row or column is a name, or has one of the keys."""
    if not isinstance(entry, str) and not any(key in _mapping(entry, where) for key in keys):
        raise ValueError(f"{where} must have {' or '.join(keys)}: got {[*entry]}.")


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Return a mapping whose keys are text, or raise ``ValueError``."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a mapping of keys: got {value!r}.")
    for key in value:
        if not isinstance(key, str):  # YAML reads 250 as a number, and no as false
            raise ValueError(f'{where}: a name must be text: got {key!r}; write it in quotes, "{key}".')
    return value


def _check_text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text: got {value!r}.")
