"""Tables of the reference, in Markdown, from the code that they describe."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Sequence
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
    cells = [[str(cell).replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *cells])


def code(value: Any) -> str:
    return f"`{value}`"


def prose(text: str) -> str:
    """Of a docstring: roles and double backticks as Markdown has code."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`]+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`")


def first(owner: Any) -> str:
    return prose((inspect.getdoc(owner) or "").split("\n\n")[0])


def explained(owner: type) -> dict[str, str]:
    """What a docstring's ``Attributes:`` say."""
    text = (inspect.getdoc(owner) or "").partition("Attributes:\n")[2].split("\n\n")[0]
    entries = re.findall(r"(?ms)^    (\w[\w, ]*): (.*?)(?=^    \w|\Z)", text)
    return {name: prose(what) for names, what in entries for name in names.split(", ")}


def default(entry: dataclasses.Field[Any]) -> str:
    return "" if entry.default is dataclasses.MISSING else code(entry.default)


def keys(kind: type, prefix: str = "") -> Iterator[list[str]]:
    """Key, default and meaning of a recipe's fields, sections opened."""
    hints, texts = get_type_hints(kind), explained(kind)
    for entry in dataclasses.fields(kind):
        part, name = hints[entry.name], f"{prefix}{entry.name}"
        if entry.name in COMMON and not prefix:
            continue
        if dataclasses.is_dataclass(part) and part is not RankingLoss:  # which has a name and options of its own
            yield from keys(part, f"{name}.")  # type: ignore[arg-type]
        else:
            meaning = texts.get(entry.name) or (first(kind) if prefix else "")
            yield [code(name), default(entry), meaning]


def training(names: Sequence[str]) -> str:
    texts: dict[str, str] = {}
    for kind in (OptimizationArguments, SharedArguments, EncoderArguments):
        texts |= explained(kind)
    fields = {entry.name: entry for entry in dataclasses.fields(EncoderArguments)}
    return table(
        ["argument", "default", "meaning"], [[code(name), default(fields[name]), texts.get(name, "")] for name in names]
    )


def recipe_files() -> dict[str, str]:
    names = recipe_names(None)
    return {name: (ROOT / "training" / "recipes" / f"{name}.yaml").read_text(encoding="utf-8") for name in names}


def recipes() -> str:
    kinds = {name: kind for kind in ("encoder", "retriever", "adapter", "cross-encoder") for name in recipe_names(kind)}
    summary = {name: yaml.safe_load(text).get("summary", "") for name, text in recipe_files().items()}
    return table(["name", "trains", "what"], [[code(name), kind, summary[name]] for name, kind in kinds.items()])


def objectives() -> str:
    rows = [
        [code(name), first(each.loss), ", ".join(map(code, each.option_types()))] for name, each in OBJECTIVES.items()
    ]
    return table(["name", "what", "options"], rows)


def data_options() -> str:
    rows = [["files and data sets", *option] for option in spec.OPTIONS.items()]
    rows += [["phrasebook", *option] for option in spec.PHRASEBOOK_OPTIONS.items()]
    return table(["of", "option", "takes"], [[of, code(name), option.example] for of, name, option in rows])


def leaves(group: Any = None, name: str = "st-xling") -> Iterator[tuple[str, Any]]:
    """Yield each command with its whole name."""
    for word, command in (typer.main.get_command(load_app()) if group is None else group).commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def data_by_command() -> str:
    """List the options whose metavar is ``SPEC``, ``EVAL`` or ``XX=…``."""
    rows = [
        [code(name), code(option.opts[-1]), helped(option)]
        for name, command in leaves()
        for option in command.params
        if re.match(r"SPEC|EVAL|XX=", str(option.metavar))
    ]
    return table(["command", "option", "what it reads"], rows)


def commands() -> str:
    return "\n\n".join(command_text(name, command) for name, command in leaves())


def command_text(name: str, command: Any) -> str:
    """Description, options and examples."""
    rows = []
    for option in command.params:
        flags_of = [flag for flag in option.opts if flag.startswith("-")]
        value = option.metavar or ""
        rows.append([code(" ".join([", ".join(flags_of), value]).strip() or option.name), helped(option)])
    parts = [
        f"```text\n{part.removeprefix(chr(8)).strip(chr(10))}\n```" if part.startswith("\b") else flags(prose(part))
        for part in command.help.replace("\\[", "[").split("\n\n")
    ]
    return "\n\n".join([f"## {name}", *parts, table(["option", "what"], rows)])


def helped(option: Any) -> str:
    return flags((option.help or "").replace("\\[", "[").replace("<", "&lt;"))


def flags(text: str) -> str:
    """Options in a sentence as code: elsewhere two hyphens become a dash."""
    return re.sub(r"(?<![\w`-])--\w[\w-]*", lambda found: code(found[0]), text)


def filter_table() -> str:
    rows = [
        [code(name), first(each.check), "" if each.limit is None else code(f"{each.limit:g}")]
        for name, each in FILTERS.items()
    ]
    return table(["reason", "what it does", "default limit"], rows)


def tables() -> dict[str, str]:
    kinds = {
        "encoder": Recipe,
        "retriever": RetrievalRecipe,
        "adapter": AdapterRecipe,
        "cross-encoder": CrossEncoderRecipe,
    }
    names = [entry.name for entry in dataclasses.fields(EncoderArguments)]
    of_st = {entry.name for entry in dataclasses.fields(BaseTrainingArguments)}
    return {
        "commands": commands(),
        "recipes": recipes(),
        "recipe_keys": table(
            ["of", "key", "default", "meaning"], [[of, *row] for of, kind in kinds.items() for row in keys(kind)]
        ),
        "training_of_st": training([name for name in names if name in of_st]),
        "training_of_ours": training([name for name in names if name not in of_st]),
        "objectives": objectives(),
        "recipe_files": "\n\n".join(f"### {name}\n\n```yaml\n{text}```" for name, text in recipe_files().items()),
        "data_forms": "\n\n".join(map(prose, str(inspect.getdoc(spec)).split("\n\n"))),
        "data_options": data_options(),
        "data_by_command": data_by_command(),
        "filters": filter_table(),
    }
