"""``st-xling train sf``: parallel text to an adapter on one layer of a frozen encoder; ``--sweep``: on every layer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.cli.figures import write_figures
from st_xling.cli.keep import renew_card

if TYPE_CHECKING:
    from st_xling.training.leak_check import OnLeak

_OWN = ("layer", "sweep", "cache")


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add what only adapters' recipes take."""
    group = train.add_argument_group("recipes of adapters (sf)")
    group.add_argument("--layer", type=int, metavar="N", help="of the encoder, from 1 (default: the recipe's)")
    group.add_argument("--sweep", action="store_true", help="train on every layer, print a table, save the best")
    group.add_argument(
        "--cache", type=Path, metavar="DIR", help="sentence vectors of this model (default: beside the host's models)"
    )


def takes(recipe: str) -> bool:
    """Whether a recipe's name or file is an adapter's."""
    from st_xling.training.adapter import is_adapter_recipe

    return is_adapter_recipe(recipe)


def refuse(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` for what only adapters' recipes take."""
    for name in _OWN:
        if getattr(arguments, name) not in (None, False):
            raise ValueError(f"--{name} is for the recipes of adapters (sf): got {arguments.recipe}; leave it out.")


def run(
    arguments: argparse.Namespace,
    overrides: dict[str, Any],
    tiny: dict[str, Any],
    read: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    *,
    on_leak: OnLeak = "report",
) -> None:
    """Train in this process; print a table and where the model is.

    Args:
        arguments: Of ``st-xling train``.
        overrides: The recipe's keys that the flags set, dotted.
        tiny: Options of ``--tiny``, checked.
        read: Reads training and development data.
        on_leak: What to do about text that will judge the model.
    """
    from st_xling.data import load_evaluation_specs
    from st_xling.evaluation import PrecisionEvaluator
    from st_xling.training.adapter import layer_table, load_adapter_recipe, train_adapter
    from st_xling.training.run_folder import RunFolder

    for name in ("pivot", "mono"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name} is for encoders: got the recipe of an adapter; leave it out.")
    if arguments.stream:
        raise ValueError("--stream is for encoders: an adapter is trained on cached vectors; leave it out.")
    RunFolder(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite, start=arguments.model).check()
    layer = {} if arguments.layer is None else {"adapter.layer": arguments.layer}
    recipe = load_adapter_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=layer | overrides)
    data, dev = read()
    evaluator = PrecisionEvaluator(dev, name="dev", write_csv=False) if dev else None
    result = train_adapter(
        recipe,
        data,
        arguments.out,
        model=arguments.model,
        tiny=tiny,
        evaluator=evaluator,
        evaluation=load_evaluation_specs(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines),
        on_leak=on_leak,
        sweep=arguments.sweep,
        cache=arguments.cache,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
    )
    if evaluator is not None:
        print(layer_table(result.layers, evaluator.at))
        print(evaluator.signature)
    took, chosen = result.seconds, result.chosen
    print(
        f"{result.encoded:,} texts encoded in {took['encoding']:.1f} s, {len(result.layers)} x {chosen.fit.steps} "
        f"steps in {took['training']:.1f} s; the model of layer {chosen.row.label} is in {result.folder}"
    )
    renew_card(arguments.out)
    write_figures(arguments.json, json.loads((arguments.out / "results.json").read_text(encoding="utf-8")))
