"""``st-xling train``: a recipe and parallel text to an encoder."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.commands import train_adapter, train_cross_encoder, train_retrieval
from st_xling.commands.figures import write_figures
from st_xling.commands.keep import renew_card

if TYPE_CHECKING:
    from st_xling.evaluation.training_picture import TrainingPicture
    from st_xling.training.leak_check import OnLeak

# What recipes other than encoders' make; the last one also refuses a name that no recipe has.
_KINDS = (train_adapter, train_retrieval, train_cross_encoder)


EXAMPLE = """\
examples:
  st-xling train dap --model tiny --data phrasebook:de,fr --out my-encoder --epochs 2
  st-xling train xpr-mixed --model tiny --data en=phrasebook --data zh=phrasebook --out my-reranker
  st-xling train ir-semacl --model tiny --data queries=phrasebook --parallel phrasebook:de --out my-retriever
  st-xling train sf --model tiny --data 'zh-vi=phrasebook?size=2000' --out my-adapter
  st-xling train dap --model xlm-roberta-base --data de-en=pairs.tsv --out my-encoder
  st-xling train xpr-mixed --model bert-base-multilingual-cased --data en=xquad.en.json --data zh=xquad.zh.json \\
      --out my-reranker

The phrasebook needs no files: phrasebook:de,fr?size=8000&split=train&seed=0 pairs each language with English. Of --dev
its development split is read, of --check-leak its test split, unless ?split= says otherwise. Quote what holds ? or &.
"""


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    train = commands.add_parser(
        "train",
        help="train an encoder or a cross-encoder by a recipe",
        description="Train an encoder by a recipe (dap, tr, or a YAML file) on parallel text and save it; or a "
        "cross-encoder (xpi, xpr-merged, xpr-cascade, xpr-mixed) on translated queries and passages.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("recipe", metavar="RECIPE", help="name of a recipe, or path of a YAML file")
    train.add_argument("--model", default="tiny", help="Hub id, folder, or 'tiny': built from the data (default)")
    train.add_argument(
        "--data", action="append", required=True, metavar="SPEC", help="xx-yy=PATH, Hub id, phrasebook:…"
    )
    train.add_argument(
        "--dev", action="append", metavar="SPEC", help="development pairs; default: 2 %% held out; or none"
    )
    train.add_argument(
        "--check-leak", action="append", default=[], metavar="EVAL", help="later test text to look for in --data too"
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
        "--tiny", action="append", default=[], metavar="KEY=VALUE", help="layers, hidden_size, vocabulary, …"
    )
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any key of the recipe, dotted")
    for name in ("epochs", "learning-rate", "warmup"):
        train.add_argument(f"--{name}", type=float)
    for name in ("max-steps", "eval-steps", "seed"):
        train.add_argument(f"--{name}", type=int)
    train.add_argument("--batch-size", type=_rows, help="pairs a step; 'auto': the recipe's, by the largest mini-batch")
    train.add_argument(
        "--mini-batch-size", type=_rows, help="rows encoded at a time, for large batches; 'auto': as many as fit"
    )
    train.add_argument("--memory-budget", type=int, metavar="MIB", help="what 'auto' may fill (default: what is free)")
    adapters = train.add_mutually_exclusive_group()
    adapters.add_argument(
        "--lora", action="store_true", help="train adapters, merged at the end (--set training.lora.rank=8 …)"
    )
    adapters.add_argument("--lora-keep", action="store_true", help="train adapters, and save them as adapters")
    train.add_argument("--precision", choices=("fp32", "bf16", "fp16"))
    train.add_argument("--max-length", type=int, help="tokens a text is cut to")
    train.add_argument("--pooling", choices=("mean", "cls", "max"))
    train.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    train_cross_encoder.add_arguments(train)
    train_adapter.add_arguments(train)
    train_retrieval.add_arguments(train)
    train.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train in this process, or with those that the launcher started, and say where the model is."""
    from st_xling.training import processes, train
    from st_xling.training.prepare import check_tiny

    processes.meet()
    kind = next((kind for kind in _KINDS if kind.takes(arguments.recipe)), None)
    for other in _KINDS:
        if other is not kind:
            other.refuse(arguments)
    if kind is None:
        options, picture = processes.together(lambda: _training_options(arguments))
        result: Any = train(**options, command=arguments.command_line, begin=picture.begin)
        if processes.is_main():
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
    if not processes.is_main():
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
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.training_picture import TrainingPicture
    from st_xling.training import load_recipe
    from st_xling.training.prepare import check_tiny
    from st_xling.training.run_folder import RunFolder

    RunFolder(arguments.out).check_free(resume=arguments.resume, overwrite=arguments.overwrite)
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
    from st_xling.training.holdout import hold_out, hold_out_streams

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
    flags = ("epochs", "max_steps", "batch_size", "mini_batch_size", "learning_rate", "warmup", "eval_steps", "seed")
    given = {f"training.{name}": getattr(arguments, name) for name in (*flags, "precision", "memory_budget")}
    given["training.lora.merge"] = True if arguments.lora else False if arguments.lora_keep else None
    given |= {"model.max_length": arguments.max_length, "model.pooling": arguments.pooling}
    return {key: value for key, value in given.items() if value is not None} | _pairs(arguments.set, "--set")


def _rows(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of rows, or 'auto': got {text!r}") from None


def _pairs(given: Sequence[str], flag: str) -> dict[str, Any]:
    import yaml

    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} takes KEY=VALUE: got {text!r}.")
        try:
            pairs[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(
                f"{flag} {key}= takes a YAML value: got {value!r}; quote it, as in '\"{value}\"'."
            ) from error
    return pairs
