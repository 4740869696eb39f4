"""Tables of the reference, in Markdown, from the code that they describe."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_type_hints

import typer
import yaml
from sentence_transformers.base.training_args import BaseTrainingArguments

import st_xling
from st_xling.cli import load_app
from st_xling.data import spec
from st_xling.mining.filters import FILTERS
from st_xling.training.adapter import AdapterRecipe
from st_xling.training.options import EncoderArguments, OptimizationArguments, SharedArguments
from st_xling.training.recipe import OBJECTIVES, Recipe
from st_xling.training.recipe_files import recipe_names
from st_xling.training.reranker import CrossEncoderRecipe, RankingLoss
from st_xling.training.retriever import RetrievalRecipe

ROOT = Path(st_xling.__file__).parent
COMMON = ("name", "summary", "arguments")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head)]
    for row in rows:
        lines.append([str(cell).replace("|", r"\|").replace("\n", " ") for cell in row])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(value: Any) -> str:
    return f"`{value}`"


def prose(text: str) -> str:
    """Return the text of a docstring with its roles and double backticks as Markdown's code."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`]+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`")


def first(owner: Any) -> str:
    return prose((inspect.getdoc(owner) or "").split("\n\n")[0])


def explained(owner: type) -> dict[str, str]:
    """Return the descriptions of a docstring's ``Attributes:``, by name."""
    text = (inspect.getdoc(owner) or "").partition("Attributes:\n")[2].split("\n\n")[0]
    entries = re.findall(r"(?ms)^    (\w[\w, ]*): (.*?)(?=^    \w|\Z)", text)
    texts = {}
    for names, description in entries:
        for name in names.split(", "):
            texts[name] = prose(description)
    return texts


def default(entry: dataclasses.Field[Any]) -> str:
    return "" if entry.default is dataclasses.MISSING else code(entry.default)


def keys(kind: type, prefix: str = "") -> Iterator[list[str]]:
    """Key, default and meaning of a recipe's fields, sections opened."""
    hints = get_type_hints(kind)
    texts = explained(kind)
    for entry in dataclasses.fields(kind):
        section = hints[entry.name]
        name = f"{prefix}{entry.name}"
        if entry.name in COMMON and not prefix:
            continue
        if dataclasses.is_dataclass(section) and section is not RankingLoss:  # one key: its name and options
            yield from keys(section, f"{name}.")  # type: ignore[arg-type]
        else:
            meaning = texts.get(entry.name) or (first(kind) if prefix else "")
            yield [code(name), default(entry), meaning]


def training(names: Sequence[str]) -> str:
    texts: dict[str, str] = {}
    for kind in (OptimizationArguments, SharedArguments, EncoderArguments):
        texts |= explained(kind)
    fields = {entry.name: entry for entry in dataclasses.fields(EncoderArguments)}
    rows = [[code(name), default(fields[name]), texts.get(name, "")] for name in names]
    return table(["argument", "default", "meaning"], rows)


def recipe_files() -> dict[str, str]:
    names = recipe_names(None)
    return {name: (ROOT / "training" / "recipes" / f"{name}.yaml").read_text(encoding="utf-8") for name in names}


def recipes() -> str:
    summaries = {name: yaml.safe_load(text).get("summary", "") for name, text in recipe_files().items()}
    rows = []
    for kind in ("encoder", "retriever", "adapter", "cross-encoder"):
        rows += [[code(name), kind, summaries[name]] for name in recipe_names(kind)]
    return table(["name", "trains", "what"], rows)


def objectives() -> str:
    rows = []
    for name, objective in OBJECTIVES.items():
        options = ", ".join(map(code, objective.option_types()))
        rows.append([code(name), first(objective.loss), options])
    return table(["name", "what", "options"], rows)


def data_options() -> str:
    rows = [["files and data sets", *option] for option in spec.OPTIONS.items()]
    rows += [["phrasebook", *option] for option in spec.PHRASEBOOK_OPTIONS.items()]
    cells = [[owner, code(name), option.example] for owner, name, option in rows]
    return table(["of", "option", "takes"], cells)


def leaves(group: Any = None, name: str = "st-xling") -> Iterator[tuple[str, Any]]:
    """Yield each command with its whole name."""
    if group is None:
        group = typer.main.get_command(load_app())
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def data_by_command() -> str:
    """List the options whose metavar is ``SPEC``, ``EVAL`` or ``XX=…``."""
    rows = []
    for name, command in leaves():
        for option in command.params:
            if re.match(r"SPEC|EVAL|XX=", str(option.metavar)):
                rows.append([code(name), code(option.opts[-1]), helped(option)])
    return table(["command", "option", "what it reads"], rows)


def commands() -> str:
    return "\n\n".join(command_text(name, command) for name, command in leaves())


def command_text(name: str, command: Any) -> str:
    """Description, options and examples."""
    rows = []
    for option in command.params:
        names = ", ".join(flag for flag in option.opts if flag.startswith("-"))
        usage = f"{names} {option.metavar or ''}".strip() or option.name
        rows.append([code(usage), helped(option)])
    paragraphs = []
    for paragraph in command.help.replace("\\[", "[").split("\n\n"):
        if paragraph.startswith("\b"):  # Click's mark of a paragraph that is not wrapped
            text = paragraph.removeprefix("\b").strip("\n")
            paragraphs.append(f"```text\n{text}\n```")
        else:
            paragraphs.append(flags(prose(paragraph)))
    return "\n\n".join([f"## {name}", *paragraphs, table(["option", "what"], rows)])


def helped(option: Any) -> str:
    return flags((option.help or "").replace("\\[", "[").replace("<", "&lt;"))


def flags(text: str) -> str:
    """Options in a sentence as code: elsewhere two hyphens become a dash."""
    return re.sub(r"(?<![\w`-])--\w[\w-]*", lambda match: code(match[0]), text)


def filter_table() -> str:
    rows = []
    for name, entry in FILTERS.items():
        limit = "" if entry.limit is None else code(f"{entry.limit:g}")
        rows.append([code(name), first(entry.check), limit])
    return table(["reason", "what it does", "default limit"], rows)


def works_with() -> str:
    """List results of other tools with files and models of ours, as ``python -m tests.neighbours`` found it."""
    rows = json.loads((Path(__file__).parent / "works_with.json").read_text(encoding="utf-8"))
    sections = []
    for group, group_rows in groupby(rows, key=lambda row: row["group"]):
        cells = []
        for row in group_rows:
            result = row["result"]
            if result != "works":
                result += f": {row['came']}"
            cells.append([row["tool"], row["version"], row["tried"], result, row["remedy"]])
        head = ["tool", "version", "tried", "result", "remedy"]
        sections.append(f"## {group}\n\n{table(head, cells)}")
    return "\n\n".join(sections)


def tables() -> dict[str, str]:
    kinds = {
        "encoder": Recipe,
        "retriever": RetrievalRecipe,
        "adapter": AdapterRecipe,
        "cross-encoder": CrossEncoderRecipe,
    }
    recipe_keys = []
    for name, kind in kinds.items():
        recipe_keys += [[name, *row] for row in keys(kind)]
    names = [entry.name for entry in dataclasses.fields(EncoderArguments)]
    of_st = {entry.name for entry in dataclasses.fields(BaseTrainingArguments)}
    return {
        "commands": commands(),
        "recipes": recipes(),
        "recipe_keys": table(["of", "key", "default", "meaning"], recipe_keys),
        "training_of_st": training([name for name in names if name in of_st]),
        "training_of_ours": training([name for name in names if name not in of_st]),
        "objectives": objectives(),
        "recipe_files": "\n\n".join(f"### {name}\n\n```yaml\n{text}```" for name, text in recipe_files().items()),
        "data_forms": "\n\n".join(map(prose, str(inspect.getdoc(spec)).split("\n\n"))),
        "data_options": data_options(),
        "data_by_command": data_by_command(),
        "filters": filter_table(),
        "works_with": works_with(),
    }
