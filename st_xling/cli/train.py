"""``st-xling train``: a recipe and parallel text to an encoder."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.cli import train_adapter, train_cross_encoder, train_retrieval
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import renew_card
from st_xling.cli.seeds import add_seeds, run_seeds

if TYPE_CHECKING:
    from st_xling.evaluation.training_picture import TrainingPicture
    from st_xling.training.leak_check import OnLeak

# What recipes other than encoders' make; the last one also refuses a name that no recipe has.
_KINDS = (train_adapter, train_retrieval, train_cross_encoder)

#: Options → ST's training arguments, or ours.
_TRAINING = {
    "epochs": "num_train_epochs",
    "batch_size": "per_device_train_batch_size",
    "warmup": "warmup_steps",
    **{name: name for name in ("max_steps", "mini_batch_size", "learning_rate", "eval_steps", "seed", "memory_budget")},
}

EXAMPLE = """\
recipes:
  encoders        tr, labse, dap, dap-released, tr-tlm, amber,            parallel text
                  semacl, langcl, semacl-langcl
  adapters        sf                                                      parallel text
  retrievers      ir, ir-semacl, ir-langcl, ir-semacl-langcl              questions with passages, parallel text
  cross-encoders  xpi; xpr-merged, xpr-cascade, xpr-mixed                 parallel text; questions with passages

examples, on the phrasebook, which is built in:
  st-xling train dap --data phrasebook:de,fr --out my-encoder --epochs 2
  st-xling train sf --data 'zh-vi=phrasebook?size=2000' --out my-adapter
  st-xling train ir-semacl --data queries=phrasebook --parallel phrasebook:de --out my-retriever
  st-xling train xpr-mixed --data 'en=phrasebook?size=300' --data 'zh=phrasebook?size=300' --out my-reranker

on files, from models of the Hub:
  st-xling train dap --model xlm-roberta-base --data de-en=pairs.tsv --check-leak tatoeba/v1 --out my-encoder
  st-xling train xpr-mixed --model bert-base-multilingual-cased --data en=xquad.en.json --data zh=xquad.zh.json \\
      --out my-reranker
  st-xling train my-recipe.yaml --data de-en=pairs.tsv --out my-encoder

phrasebook:de,fr?size=8000&split=train&seed=0 pairs each language with English. Of --dev its development split is read,
of --check-leak its test split, unless ?split= says otherwise. Quote what holds ? or &.
"""


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    train = commands.add_parser(
        "train",
        help="train an encoder, adapter, retriever or cross-encoder by a recipe",
        description="Train by a recipe and save a plain sentence-transformers model, with its card. Recipes are listed "
        "below; a recipe of your own is a YAML file.",
        epilog=EXAMPLE,
    )
    train.add_argument("recipe", metavar="RECIPE", help="name of a recipe, or path of a YAML file")
    train.add_argument(
        "--model", default="tiny", metavar="MODEL", help="Hub id, folder, or tiny (default): built from the data"
    )
    train.add_argument(
        "--data",
        action="append",
        required=True,
        metavar="SPEC",
        help="xx-yy=PATH (TSV, CSV, JSON lines, Parquet), xx-yy=SOURCE,TARGET, Hub id or phrasebook:…; may be repeated",
    )
    train.add_argument(
        "--mono",
        action="append",
        metavar="XX=PATH",
        help="of encoders: running text of one language, for the loss mlm; every two lines are read as a pair",
    )
    train.add_argument(
        "--pivot",
        metavar="CODE",
        help="of encoders: language that becomes the target side of every pair that has it, or none (default: en)",
    )
    train.add_argument(
        "--dev", action="append", metavar="SPEC", help="development text, or none (default: 2 %% of --data, held out)"
    )
    train.add_argument(
        "--check-leak", action="append", default=[], metavar="EVAL", help="also look in --data for this test text"
    )
    leaking = train.add_mutually_exclusive_group()
    leaking.add_argument("--fail-on-leak", action="store_true", help="stop if --data share text with dev or test text")
    leaking.add_argument("--drop-leaks", action="store_true", help="leave such rows out and say how many")
    train.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the model and its training")
    train.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    train.add_argument("--overwrite", action="store_true", help="replace an earlier run in --out")
    train.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines and say how many")
    train.add_argument(
        "--stream", action="store_true", help="read --data as needed: for more than memory holds; with --max-steps"
    )
    train.add_argument(
        "--tiny",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the model tiny: layers, hidden_size, vocabulary, …",
    )
    train.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    _add_recipe_options(train)
    train_cross_encoder.add_arguments(train)
    train_adapter.add_arguments(train)
    train_retrieval.add_arguments(train)
    train.set_defaults(run=run)


def _add_recipe_options(train: argparse.ArgumentParser) -> None:
    recipe = train.add_argument_group("in place of what the recipe says")
    recipe.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any key of the recipe, such as losses.tlm.weight=0.5",
    )
    recipe.add_argument("--epochs", type=float, metavar="N", help="passes over --data")
    recipe.add_argument("--max-steps", type=int, metavar="N", help="steps, instead of epochs")
    recipe.add_argument("--learning-rate", type=float, metavar="X", help="the highest")
    recipe.add_argument("--warmup", type=float, metavar="SHARE", help="of the steps, in which the learning rate rises")
    recipe.add_argument("--eval-steps", type=int, metavar="N", help="steps between two looks at --dev")
    recipe.add_argument("--seed", type=int, metavar="N", help="of weights, dropout and order")
    add_seeds(train)
    recipe.add_argument(
        "--batch-size",
        type=_rows,
        metavar="N",
        help="pairs a step; 'auto': the recipe's, by the largest mini-batch that fits",
    )
    recipe.add_argument(
        "--mini-batch-size",
        type=_rows,
        metavar="N",
        help="rows encoded at a time, for large batches in small memory; 'auto': as many as fit",
    )
    recipe.add_argument("--memory-budget", type=int, metavar="MIB", help="what 'auto' may fill (default: what is free)")
    adapters = recipe.add_mutually_exclusive_group()
    adapters.add_argument(
        "--lora", action="store_true", help="train adapters, merged at the end (--set training.lora.rank=8 …)"
    )
    adapters.add_argument("--lora-keep", action="store_true", help="train adapters, and save them as adapters")
    recipe.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="of numbers")
    recipe.add_argument("--max-length", type=int, metavar="N", help="tokens a text is cut to")
    recipe.add_argument("--pooling", choices=("mean", "cls", "max"), help="of token states")


def run(arguments: argparse.Namespace) -> None:
    """Train in this process, or with those that the launcher started, and say where the model is."""
    if arguments.seeds:
        return run_seeds(arguments, run)
    from st_xling.training import train
    from st_xling.training.run import check_tiny
    from st_xling.utils import distributed

    distributed.init_distributed()
    kind = next((kind for kind in _KINDS if kind.takes(arguments.recipe)), None)
    for other in _KINDS:
        if other is not kind:
            other.refuse(arguments)
    if kind is None:
        options, picture = distributed.run_on_all(lambda: _training_options(arguments))
        result: Any = train(**options, command=arguments.command_line, begin=picture.begin)
        if distributed.is_main():
            picture.end(result.model, result.folder)
    else:
        given = arguments, overrides(arguments), check_tiny(_pairs(arguments.tiny, "--tiny"))
        if kind is train_adapter:
            train_adapter.run(*given, lambda: _read_data(arguments), on_leak=_on_leak(arguments))
            return
        if kind is train_retrieval:
            result = train_retrieval.run(*given, on_leak=_on_leak(arguments))
        else:
            result = train_cross_encoder.run(*given, on_leak=_on_leak(arguments))
    if not distributed.is_main():
        return
    renew_card(arguments.out)
    figures = json.loads((arguments.out / "results.json").read_text(encoding="utf-8"))
    measure = "acc@1" if kind is train_cross_encoder else "MRR@100" if kind is train_retrieval else "accuracy"
    best = "" if result.best is None else f", best development {measure} {100 * result.best:.1f} %"
    print(f"{result.steps} steps in {result.seconds:.0f} s{best}; the model is in {result.folder}")
    write_figures(arguments.json, figures)


def _training_options(arguments: argparse.Namespace) -> tuple[dict[str, Any], TrainingPicture]:
    """The arguments of :func:`st_xling.training.train`, data sets read, and what draws before and after."""
    from st_xling.data import load_evaluation_specs
    from st_xling.data.retrieval.others import read_all_others
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.training_picture import TrainingPicture
    from st_xling.training import load_recipe
    from st_xling.training.run import check_tiny
    from st_xling.training.run_folder import RunFolder

    RunFolder(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite, start=arguments.model).check()
    tiny = check_tiny(_pairs(arguments.tiny, "--tiny"))
    recipe = load_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=overrides(arguments))
    if arguments.stream and recipe.training.max_steps <= 0:
        raise ValueError("--stream needs --max-steps: the end of a stream is not known before it is reached.")
    data, dev = _read_data(arguments)
    options = {
        "recipe": recipe,
        "data": data,
        "out": arguments.out,
        "model": arguments.model,
        "tiny": tiny,
        "mono": read_all_others(arguments.mono or (), option="--mono", skip_bad_lines=arguments.skip_bad_lines),
        "evaluator": TatoebaEvaluator(dev, name="dev", write_csv=False) if dev else None,
        "evaluation": load_evaluation_specs(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines),
        "on_leak": _on_leak(arguments),
        "resume": arguments.resume,
        "overwrite": arguments.overwrite,
    }
    return options, TrainingPicture(dev or ({} if arguments.stream else data), recipe.name)


def _read_data(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Training and development data, as asked for, or held out; stderr says how many pairs there are."""
    from st_xling.data import load_data_specs
    from st_xling.data.holdout import hold_out, hold_out_streams

    data = load_data_specs(arguments.data, skip_bad_lines=arguments.skip_bad_lines, stream=arguments.stream)
    dev: dict[str, Any]
    if arguments.dev == ["none"]:
        dev = {}
    elif "none" in (arguments.dev or []):
        raise ValueError(f"--dev none means no development pairs: got {', '.join(arguments.dev)}; leave one out.")
    elif arguments.dev:
        dev = load_data_specs(arguments.dev, split="dev", skip_bad_lines=arguments.skip_bad_lines)
    else:
        data, dev = hold_out_streams(data) if arguments.stream else hold_out(data)
    for name, part in data.items():
        count = "streamed" if arguments.stream else f"{len(part):,} pairs"
        print(f"{name}: {count}, {len(dev.get(name, [])):,} for development", file=sys.stderr)
    return data, dev


def _on_leak(arguments: argparse.Namespace) -> OnLeak:
    return "fail" if arguments.fail_on_leak else "drop" if arguments.drop_leaks else "report"


def overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """The recipe's keys that the flags set, dotted; ``--set`` comes last."""
    given = {f"training.{key}": getattr(arguments, option) for option, key in _TRAINING.items()}
    if arguments.precision is not None:
        given |= {f"training.{kind}": arguments.precision == kind for kind in ("bf16", "fp16")}
    given["training.pivot"] = arguments.pivot
    given["training.lora.merge"] = True if arguments.lora else False if arguments.lora_keep else None
    given |= {"model.max_length": arguments.max_length, "model.pooling": arguments.pooling}
    return {key: value for key, value in given.items() if value is not None} | _pairs(arguments.set, "--set")


def _rows(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of rows, or 'auto': got {text!r}") from None


def _pairs(given: Sequence[str], flag: str) -> dict[str, Any]:
    from st_xling.training.recipe import read_yaml

    pairs: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} takes KEY=VALUE: got {text!r}.")
        if key in pairs:
            raise ValueError(f"{flag} {key}= is given twice: leave one out.")
        try:
            pairs[key] = read_yaml(value, "it")
        except ValueError as error:
            shown = value if len(value) <= 60 else f"{value[:60]}…"
            raise ValueError(
                f"{flag} {key}= takes a YAML value: got {shown!r}; quote it, as in '\"{shown}\"' ({error})."
            ) from error
    return pairs
