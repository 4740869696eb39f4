"""Recipes on the command line: ``st-xling train --list``, and ``--print`` and ``--help`` of one."""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import TYPE_CHECKING, Any

from st_xling.cli.options import write_results

if TYPE_CHECKING:
    from st_xling.cli.parser import Parser

# Options that not every kind of recipe takes → the kinds that do.
TAKEN_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("stream", "pivot"), ("encoder",)),
    "mono": ("encoder", "retriever"),
    "mini_batch_size": ("encoder", "adapter"),
    **dict.fromkeys(("lora", "lora_keep"), ("encoder", "adapter", "cross-encoder")),
    "pooling": ("encoder", "adapter", "retriever"),
    **dict.fromkeys(("prompt", "prompt_name"), ("encoder", "retriever")),
    **dict.fromkeys(("layer", "sweep"), ("adapter",)),
    "cache": ("adapter", "encoder"),
    **dict.fromkeys(("teacher", "teacher_prompt", "mine_negatives"), ("encoder",)),
    **dict.fromkeys(("parallel", "encoders"), ("retriever",)),
    **dict.fromkeys(("xpi_data", "xpi_dev", "xpi_steps", "xpi_epochs", "dev_share", "test_share"), ("cross-encoder",)),
}
# Options → keys of the recipe.
KEYS = {
    **{name: f"training.{name}" for name in ("max_steps", "mini_batch_size", "learning_rate", "pivot")},
    **{name: f"training.{name}" for name in ("eval_steps", "seed", "prompt_name")},
    **{"epochs": "training.num_train_epochs", "batch_size": "training.per_device_train_batch_size"},
    **{"warmup": "training.warmup_steps", "prompt": "training.prompts"},
    **{"max_length": "model.max_length", "pooling": "model.pooling", "layer": "adapter.layer"},
    **{"teacher": "teacher.model", "teacher_prompt": "teacher.prompt"},
    "mine_negatives": "negatives.count",
    **{"encoders": "retrieval.encoders", "xpi_steps": "xpi.training.max_steps"},
    "xpi_epochs": "xpi.training.num_train_epochs",
}


class Alone(argparse.Action):
    """A flag with which no other option is required."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"nargs": 0, "default": False, **options})

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, True)
        for action in parser._actions:
            action.required = False


def show_recipes(arguments: argparse.Namespace) -> None:
    """List the recipes, each with its kind and summary, or print the YAML of one (``--list``, ``--print``)."""
    from st_xling.training.recipe_files import read_recipe, recipe_names, recipe_text

    if arguments.print:
        if arguments.recipe is None:
            raise ValueError("--print needs the name of a recipe, or a YAML file: got none; --list lists the names.")
        print(recipe_text(arguments.recipe), end="")
        return write_results(arguments, {"recipe": read_recipe(arguments.recipe)})
    entries = []
    for kind in ("encoder", "adapter", "retriever", "cross-encoder"):
        for name in recipe_names(kind):
            entries.append({"name": name, "kind": kind, "summary": read_recipe(name)["summary"]})
            print(f"{name:<18}{kind:<15}{entries[-1]['summary']}")
    write_results(arguments, {"recipes": entries})


def narrow_help(parser: Parser, arguments: argparse.Namespace) -> None:
    """Make the help of ``train`` speak of the recipe that is named; without one, of what all recipes take."""
    from st_xling.training.options import merge
    from st_xling.training.recipe_files import kind_of, read_recipe, recipe_names, recipe_text

    shipped, name = recipe_names(None), arguments.recipe
    raw: dict[str, Any] = {}
    if name is not None:
        try:
            raw = read_recipe(name)
        except ValueError as error:
            parser.error(str(error))
        if arguments.model == "tiny":
            raw = merge(raw, raw.get("tiny") or {})
    kind = kind_of(raw) if raw else ""
    for action in parser._actions:
        section, _, key = KEYS.get(action.dest, "").partition(".")
        value, bare = ((raw.get(part) or {}).get(key) for part in (section, "bare"))
        if action.dest in TAKEN_BY and kind not in TAKEN_BY[action.dest]:
            action.help = argparse.SUPPRESS
        elif section and (value, bare) != (None, None):
            value = f"the model's own; of a bare one {bare}" if value is None else value
            action.help = f"{str(action.help).partition(' (default: ')[0]} (default: {value})"
    groups = parser._action_groups
    parser._action_groups = [part for part in groups if any(a.help != argparse.SUPPRESS for a in part._group_actions)]
    if raw:
        *_, last = str(parser.epilog).split("\n\n")
        examples = re.finditer(r"^  st-xling train (\S+) (?:.*\\\n)*.*", str(parser.epilog), flags=re.M)
        shown = [each[0] for each in examples if each[1] in shipped and kind_of(read_recipe(each[1])) == kind]
        yaml = textwrap.indent(recipe_text(name), "  ")
        parser.usage, parser.description = str(parser.usage).replace("RECIPE", name), raw.get("summary")
        head = f"{name} (st-xling train {name} --print > my-recipe.yaml: to be edited):\n{yaml}"
        parser.epilog = "\n\n".join([head, "\n".join(["examples:", *shown]), last])
