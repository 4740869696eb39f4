"""``st-xling recipes``, and what ``st-xling train RECIPE --help`` says of one: its own options, with its values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from st_xling.cli.options import JSON, command, write_results

if TYPE_CHECKING:
    from st_xling.cli.parser import Parser

# Options that not every kind of recipe takes → the kinds that do.
TAKEN_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("stream", "pivot"), ("encoder",)),
    "mono": ("encoder", "retriever"),
    **dict.fromkeys(("mini_batch_size", "memory_budget"), ("encoder", "adapter")),
    **dict.fromkeys(("lora", "lora_keep"), ("encoder", "adapter", "cross-encoder")),
    "pooling": ("encoder", "adapter", "retriever"),
    **dict.fromkeys(("prompt", "prompt_name"), ("encoder", "retriever")),
    **dict.fromkeys(("layer", "sweep", "cache"), ("adapter",)),
    **dict.fromkeys(("parallel", "encoders"), ("retriever",)),
    **dict.fromkeys(("xpi_data", "xpi_dev", "xpi_steps", "xpi_epochs", "dev_share", "test_share"), ("cross-encoder",)),
}
# Options → keys of the recipe's training arguments.
TRAINING_KEYS = {
    "epochs": "num_train_epochs",
    "batch_size": "per_device_train_batch_size",
    "warmup": "warmup_steps",
    "prompt": "prompts",
    **{
        name: name
        for name in (
            "max_steps",
            "mini_batch_size",
            "memory_budget",
            "learning_rate",
            "eval_steps",
            "seed",
            "prompt_name",
        )
    },
}
# Other options → sections and key.
_KEYS = {
    "max_length": ("model", "bare"),
    "pooling": ("model", "bare"),
    "layer": ("adapter",),
    "encoders": ("retrieval",),
}
# What else options are to one kind of recipe.
_HELP = {
    "encoder": {
        "mono": "running text of one language, for the loss mlm: every two lines are read as a pair (repeatable)"
    },
    "retriever": {
        "data": "queries=PATH: queries with passages, perhaps with hard negatives (columns negative_1, negative_2, … "
        "or ?columns=query,answer,negative); a folder in the layout of BEIR, Mr.TyDi (?negatives=1) or MIRACL; or "
        "queries=phrasebook?size=2000 (required, repeatable)",
        "dev": "xx=DIR, such a folder, or xx=phrasebook: to choose the best checkpoint by (default: the last one is "
        "saved) (repeatable)",
        "mono": "text without translations: lines, passages (.jsonl) or phrasebook (repeatable)",
    },
    "cross-encoder": {
        "data": "of xpr recipes xx=PATH, questions with passages in SQuAD's form or labelled pairs, or xx=phrasebook; "
        "of xpi parallel text: xx-yy=PATH, Hub id or phrasebook:… (required, repeatable)",
        "dev": "development text of the same form, or none (default: --dev-share of --data) (repeatable)",
    },
}


@command("recipes", JSON, recipe={"nargs": "?"})
def recipes(arguments: argparse.Namespace) -> None:
    """List the recipes of train, or print one to be edited.

    Without RECIPE: a line for each, with its kind, what it trains and the paper that it comes from. With it: its YAML
    with all values, to be saved, edited and given to train as a file.

    RECIPE  a name, or a YAML file

    examples:
      st-xling recipes
      st-xling recipes dap > my-recipe.yaml

    Then: st-xling train my-recipe.yaml … What stands under tiny holds for --model tiny alone. st-xling train dap --help
    shows the options of a recipe.
    """
    from st_xling.training.recipe_files import read_recipe, recipe_names, recipe_text

    if arguments.recipe is not None:
        print(recipe_text(arguments.recipe), end="")
        return write_results(arguments, {"recipe": read_recipe(arguments.recipe)})
    entries = []
    for kind in ("encoder", "adapter", "retriever", "cross-encoder"):
        for name in recipe_names(kind):
            entries.append({"name": name, "kind": kind, "summary": read_recipe(name)["summary"]})
            print(f"{name:<18}{kind:<15}{entries[-1]['summary']}")
    write_results(arguments, {"recipes": entries})


def narrow_help(parser: Parser, words: Sequence[str]) -> None:
    """Make the help of ``train`` speak of the recipe among its words; without one, of what all recipes take."""
    from st_xling.training.options import merge
    from st_xling.training.recipe_files import kind_of, read_recipe, recipe_names, recipe_text

    shipped = recipe_names(None)
    named = [word for word in words if word in shipped or word.endswith((".yaml", ".yml"))]
    name = words[0] if not words[0].startswith("-") else next(iter(named), None)
    raw: dict[str, Any] = {}
    kind = None
    if name is not None:
        try:
            raw = read_recipe(name)
        except ValueError as error:
            parser.error(str(error))
        kind = kind_of(raw)
        if "tiny" in words:
            raw = merge(raw, raw.get("tiny") or {})
    for action in parser._actions:
        sections = ("training",) if action.dest in TRAINING_KEYS else _KEYS.get(action.dest, ())
        key = TRAINING_KEYS.get(action.dest, action.dest)
        values = [(section, (raw.get(section) or {}).get(key)) for section in sections]
        if action.dest in TAKEN_BY and kind not in TAKEN_BY[action.dest]:
            action.help = argparse.SUPPRESS
        elif (of_kind := _HELP.get(str(kind), {}).get(action.dest)) is not None:
            action.help = of_kind
        for section, value in values:
            if value is not None and action.help != argparse.SUPPRESS:
                own = "the model's own; of a bare one " if section == "bare" else ""
                action.help = f"{str(action.help).partition(' (default: ')[0]} (default: {own}{value})"
    groups = parser._action_groups
    parser._action_groups = [part for part in groups if any(a.help != argparse.SUPPRESS for a in part._group_actions)]
    if name is not None:
        *_, last = str(parser.epilog).split("\n\n")
        examples = re.finditer(r"^  st-xling train (\S+) (?:.*\\\n)*.*", str(parser.epilog), flags=re.M)
        shown = [each[0] for each in examples if each[1] in shipped and kind_of(read_recipe(each[1])) == kind]
        yaml = "".join(f"  {line}\n" for line in recipe_text(name).splitlines())
        parser.usage = str(parser.usage).replace("RECIPE", name)
        parser.description = raw.get("summary")
        parser.epilog = "\n\n".join(
            [
                f"{name} (st-xling recipes {name} > my-recipe.yaml: to be edited):\n{yaml}",
                "examples:\n" + "\n".join(shown),
                last,
            ]
        )
