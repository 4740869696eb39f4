"""The one command, ``st-xling``: parses, calls one library function, prints its figures."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from st_xling._version import __version__

PIPELINE = """\
examples:
  st-xling demo
  st-xling train dap --model tiny --data de-en=pairs.tsv --data fr-en=more.jsonl.gz --out my-encoder
  st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages deu,fra --json figures.json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 0; 2 for input that cannot be used; 130 after Ctrl-C.
    """
    arguments = build_parser().parse_args(argv)
    words = ["st-xling", *(sys.argv[1:] if argv is None else argv)]
    arguments.command_line = shlex.join(words)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING, stream=sys.stderr)
    _quieten_hosts()
    try:
        _hide_weight_bars()
        arguments.run(arguments)
    except (ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"st-xling: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\n{_after_interrupt(stop, arguments.command_line)}", file=sys.stderr)
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of every sub-command."""
    parser = argparse.ArgumentParser(
        prog="st-xling",
        description="Cross-lingual sentence embeddings: train, judge and use them.",
        epilog=PIPELINE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"st-xling {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_train(commands)
    _add_evaluate(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="train, judge and use a tiny encoder, offline, in a few minutes")
    demo.add_argument("--out", default="xling-demo", type=Path, help="folder for the model (default: %(default)s)")
    demo.add_argument("--seed", default=0, type=int)
    demo.add_argument("--overwrite", action="store_true", help="replace an earlier demo in the folder")
    demo.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    demo.set_defaults(run=_demo)


def _add_train(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train an encoder by a recipe",
        description="Train an encoder by a recipe (dap, tr, or a YAML file) on parallel text and save it.",
        epilog="example:\n  st-xling train dap --model tiny --data phrasebook:de,fr --out my-encoder --epochs 2",
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
    train.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the model and its training")
    train.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    train.add_argument("--overwrite", action="store_true", help="replace an earlier run in --out")
    train.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines and say how many")
    train.add_argument(
        "--tiny", action="append", default=[], metavar="KEY=VALUE", help="layers, hidden_size, vocabulary, …"
    )
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any key of the recipe, dotted")
    for name in ("epochs", "learning-rate", "warmup"):
        train.add_argument(f"--{name}", type=float)
    for name in ("max-steps", "batch-size", "mini-batch-size", "eval-steps", "seed"):
        train.add_argument(f"--{name}", type=int)
    train.add_argument("--precision", choices=("fp32", "bf16", "fp16"))
    train.add_argument("--max-length", type=int, help="tokens a text is cut to")
    train.add_argument("--pooling", choices=("mean", "cls", "max"))
    train.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    train.set_defaults(run=_train)


def _add_evaluate(commands: Any) -> None:
    evaluate = commands.add_parser("evaluate", help="judge an encoder")
    kinds = evaluate.add_subparsers(title="what to judge by", required=True, metavar="TASK")
    tatoeba = kinds.add_parser(
        "tatoeba",
        help="translation retrieval accuracy, both directions",
        epilog="example:\n  st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages xtreme36",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tatoeba.add_argument("model", metavar="MODEL", help="Hub id or folder")
    tatoeba.add_argument("--data", required=True, type=Path, metavar="DIR", help="tatoeba.{l3}-eng.{l3,eng} files")
    tatoeba.add_argument("--languages", metavar="LIST", help="codes or a group: xnli14, full28, xtreme36, laser112")
    tatoeba.add_argument("--batch-size", type=int, default=128)
    tatoeba.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    tatoeba.set_defaults(run=_tatoeba)


def _demo(arguments: argparse.Namespace) -> None:
    from st_xling import demo

    results = demo.run_demo(arguments.out, seed=arguments.seed, overwrite=arguments.overwrite)
    print(demo.demo_table(results))
    print(f"\nThe model, results.json and {results['picture']} are in {arguments.out}. Use it:\n")
    print(demo.usage_lines(arguments.out, results["example"]))
    _write_json(arguments.json, results)


def _train(arguments: argparse.Namespace) -> None:
    from st_xling.data import load_data_specs
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.training import load_recipe, train
    from st_xling.training.holdout import hold_out
    from st_xling.training.run import check_tiny

    tiny = check_tiny(_pairs(arguments.tiny, "--tiny"))
    recipe = load_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=_overrides(arguments))
    data = load_data_specs(arguments.data, skip_bad_lines=arguments.skip_bad_lines)
    if arguments.dev == ["none"]:
        dev = {}
    elif arguments.dev:
        dev = load_data_specs(arguments.dev, skip_bad_lines=arguments.skip_bad_lines)
    else:
        data, dev = hold_out(data)
    for name, part in data.items():
        print(f"{name}: {len(part):,} pairs, {len(dev.get(name, [])):,} for development", file=sys.stderr)
    result = train(
        recipe,
        data,
        arguments.out,
        model=arguments.model,
        tiny=tiny,
        evaluator=TatoebaEvaluator(dev, name="dev", write_csv=False) if dev else None,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
    )
    figures = json.loads((arguments.out / "results.json").read_text(encoding="utf-8"))
    best = "" if result.best is None else f", best development accuracy {100 * result.best:.1f} %"
    print(f"{result.steps} steps in {result.seconds:.0f} s{best}; the model is in {result.folder}")
    _write_json(arguments.json, figures)


def _tatoeba(arguments: argparse.Namespace) -> None:
    from st_xling.evaluation import TatoebaEvaluator, tatoeba_table
    from st_xling.models import load_encoder

    languages = arguments.languages.split(",") if arguments.languages else None
    evaluator = TatoebaEvaluator.from_folder(
        arguments.data, languages, batch_size=arguments.batch_size, show_progress_bar=True, write_csv=False
    )
    metrics = evaluator(load_encoder(arguments.model))
    print(tatoeba_table(metrics, name=evaluator.name))
    print(evaluator.signature)
    _write_json(arguments.json, {"tatoeba": metrics, "signature": evaluator.signature})


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    flags = ("epochs", "max_steps", "batch_size", "mini_batch_size", "learning_rate", "warmup", "eval_steps", "seed")
    given = {f"training.{name}": getattr(arguments, name) for name in (*flags, "precision")}
    given |= {"model.max_length": arguments.max_length, "model.pooling": arguments.pooling}
    return {key: value for key, value in given.items() if value is not None} | _pairs(arguments.set, "--set")


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


def _write_json(path: Path | None, content: Any) -> None:
    if path is not None:
        from st_xling.training.run_folder import write_json

        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)


def _after_interrupt(stop: KeyboardInterrupt, command: str) -> str:
    folder, checkpoint = getattr(stop, "folder", None), getattr(stop, "checkpoint", None)
    if folder is None:
        return "interrupted."
    words = [word for word in shlex.split(command) if word not in ("--resume", "--overwrite")]
    if checkpoint is None:
        return f"interrupted before the first checkpoint; start again with:\n  {shlex.join([*words, '--overwrite'])}"
    return f"interrupted; {checkpoint} stands. To go on:\n  {shlex.join([*words, '--resume'])}"


def _quieten_hosts() -> None:
    """Keep the hosts' own bars and notices off our output; errors still come through."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


def _hide_weight_bars() -> None:
    """No bar for every checkpoint's weights; downloads keep theirs."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


if __name__ == "__main__":
    sys.exit(main())
