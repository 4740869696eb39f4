"""``st-xling train``: train an encoder, an adapter, a retriever or a cross-encoder by a recipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import options as opts
from st_xling.cli.app import app, with_options
from st_xling.cli.options import argument, flag, option, options_of, repeatable
from st_xling.cli.results import update_model_card, write_results
from st_xling.cli.rules import Excludes, Given, Inapplicable
from st_xling.utils.io import read_json_object
from st_xling.utils.options import Pooling

if TYPE_CHECKING:
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.training.run import TrainingResult

DATA, RECIPE, TRAINING, MODEL = "Data", "Recipes", "Training", "Model"
ENCODER, CROSS_ENCODER = "Recipes of encoders", "Recipes of cross-encoders"
ADAPTER, RETRIEVER = "Recipes of adapters", "Recipes of retrievers"


def taken_by(*kinds: str, is_option: Any) -> Any:
    """Declare an option that not every kind of recipe takes.

    Args:
        *kinds: Kinds of recipes that take it.
        is_option: The option.
    """
    return field(default=is_option, metadata={"kinds": kinds})


@dataclass(frozen=True)
class ArgumentOptions:
    """Options that set the training argument of the same name."""

    num_train_epochs: float | None = option("--epochs", "Passes over --data (arguments.num_train_epochs).")
    per_device_train_batch_size: int | None = option(
        "--batch-size", "Pairs per step and process (arguments.per_device_train_batch_size)."
    )
    learning_rate: float | None = option("--learning-rate", "Peak learning rate (arguments.learning_rate).")
    max_steps: int | None = option("--max-steps", "Steps, instead of epochs (arguments.max_steps).", panel=TRAINING)
    warmup_steps: float | None = option(
        "--warmup", "Share of the steps in which the learning rate rises (arguments.warmup_steps).", panel=TRAINING
    )
    seed: int | None = option("--seed", "Seed of weights, dropout and order (arguments.seed).", panel=TRAINING)
    eval_steps: float | None = taken_by(
        *("encoder", "retriever", "cross-encoder"),
        is_option=option("--eval-steps", "Steps between evaluations on --dev (arguments.eval_steps).", panel=TRAINING),
    )
    mini_batch_size: int | None = taken_by(
        "encoder",
        is_option=option(
            "--mini-batch-size",
            "Rows encoded at a time, for large batches in little memory (arguments.mini_batch_size).",
            panel=ENCODER,
        ),
    )


@dataclass(frozen=True)
class RecipeOptions:
    """Options that set keys of the recipe's other sections."""

    pivot: str | None = taken_by(
        "encoder",
        is_option=option(
            "--pivot CODE",
            "Language that becomes the target side of every pair that has it, or none (data.pivot, default: en).",
            panel=ENCODER,
        ),
    )
    pooling: Pooling | None = taken_by(
        *("encoder", "adapter", "retriever"),
        is_option=option(
            "--pooling",
            "How token states become the embedding of a sentence (model.pooling, default: as --max-length).",
            panel=MODEL,
        ),
    )
    max_length: int | None = option(
        "--max-length",
        "Maximum number of tokens of a text (model.max_length, default: the model's own; of a bare one the recipe's).",
        panel=MODEL,
    )
    teacher: str | None = taken_by(
        "encoder",
        is_option=option(
            "--teacher MODEL", "Hub id or folder of the encoder to learn from (data.teacher.model).", panel=ENCODER
        ),
    )
    teacher_prompt: str | None = taken_by(
        "encoder",
        is_option=option(
            "--teacher-prompt",
            "Text before each sentence of the teacher (data.teacher.prompt, default: its own).",
            panel=ENCODER,
        ),
    )
    mine_negatives: int | None = taken_by(
        "encoder",
        is_option=option(
            "--mine-negatives",
            "Hard negatives of each pair for the loss translation_ranking, mined in --data by the model before "
            "training (data.hard_negatives.num_negatives, default: 0).",
            panel=ENCODER,
        ),
    )
    layer: int | None = taken_by(
        "adapter",
        is_option=option(
            "--layer", "Layer of the encoder, from 1 (adapter.layer, default: the recipe's).", panel=ADAPTER
        ),
    )
    encoders: Literal["shared", "separate"] | None = taken_by(
        "retriever",
        is_option=option(
            "--encoders",
            "One for both queries and passages, or one each (retrieval.encoders, default: the recipe's).",
            panel=RETRIEVER,
        ),
    )

    def keys(self) -> dict[str, Any]:
        """Return the keys of the recipe that the options set, dotted; those that are not given are ``None``."""
        return {
            "data.pivot": self.pivot,
            "model.pooling": self.pooling,
            "model.max_length": self.max_length,
            "data.teacher.model": self.teacher,
            "data.teacher.prompt": self.teacher_prompt,
            "data.hard_negatives.num_negatives": self.mine_negatives,
            "adapter.layer": self.layer,
            "retrieval.encoders": self.encoders,
        }


@dataclass(frozen=True)
class TrainOptions:
    """Options of ``train``, passed whole to the function that trains the kind of model."""

    model: str | None = option("--model MODEL", "Hub id or folder of the model to start from, or tiny (required).")
    data: list[str] = repeatable("--data SPEC", "Training text, in a form above (required, repeatable).")
    out: Path | None = option("--out DIR", "Folder for the model and its training (required).")
    dev: list[str] = repeatable("--dev SPEC", "Development text, or none (default: 2 % of --data) (repeatable).")
    resume: bool = flag("--resume", "Resume from the last checkpoint in --out.")
    overwrite: bool = flag("--overwrite", "Replace an earlier run in --out.")
    prompt: str | None = taken_by(
        *("encoder", "retriever"),
        is_option=option(
            "--prompt", "Text before each sentence, saved with the model (arguments.prompts).", panel=TRAINING
        ),
    )
    list_recipes: bool = flag("--list", "List the recipes with their kinds and summaries.", panel=RECIPE)
    print_recipe: bool = flag("--print", "Print the recipe, to be edited.", panel=RECIPE)
    print_python: bool = flag(
        "--print-python", "Print the run as a Python script, to be edited (encoders).", panel=RECIPE
    )
    set: list[str] = repeatable("--set KEY=VALUE", "Any key of the recipe, see above (repeatable).", panel=RECIPE)
    mono: list[str] = taken_by(
        *("encoder", "retriever"),
        is_option=repeatable("--mono XX=PATH", "Text of one language, see above (repeatable).", panel=DATA),
    )
    check_leak: list[str] = repeatable(
        "--check-leak EVAL", "Also search --data for this test text (repeatable).", panel=DATA
    )
    fail_on_leak: bool = flag("--fail-on-leak", "Stop if --data share text with dev or test text.", panel=DATA)
    drop_leaks: bool = flag("--drop-leaks", "Drop such rows, and report them.", panel=DATA)
    skip_bad_lines: bool = flag("--skip-bad-lines", "Skip faulty lines, and list them in a warning.", panel=DATA)
    stream: bool = taken_by(
        "encoder",
        is_option=flag(
            "--stream", "Read --data as needed, for more than fits into memory; needs --max-steps.", panel=DATA
        ),
    )
    tiny: list[str] = repeatable("--tiny KEY=VALUE", "Shape of the model tiny (repeatable).", panel=MODEL)
    revision: str | None = option("--revision", "Version on the Hub: a branch, a tag or a commit.", panel=MODEL)
    trust_remote_code: bool = flag(
        "--trust-remote-code", "Run the model's own code, which can do whatever you can.", panel=MODEL
    )
    precision: Literal["fp32", "bf16", "fp16"] | None = option(
        "--precision", "Type of numbers to train in (arguments.bf16, arguments.fp16).", panel=TRAINING
    )
    lora: bool = taken_by(
        *("encoder", "cross-encoder"),
        is_option=flag(
            "--lora", "Train LoRA adapters, merged at the end (--set arguments.lora.rank=8 …).", panel=TRAINING
        ),
    )
    lora_keep: bool = taken_by(
        *("encoder", "cross-encoder"),
        is_option=flag(
            "--lora-keep", "Train LoRA adapters, and save them as adapters (arguments.lora.merge).", panel=TRAINING
        ),
    )
    cache: Path | None = taken_by(
        *("adapter", "encoder"),
        is_option=option(
            "--cache DIR", "Folder for vectors of adapters and teachers (default: a cache).", panel=TRAINING
        ),
    )
    dev_share: float | None = taken_by(
        "cross-encoder",
        is_option=option("--dev-share", "Share of articles or queries held out (default: 0.1).", panel=CROSS_ENCODER),
    )
    test_share: float | None = taken_by(
        "cross-encoder",
        is_option=option("--test-share", "Share excluded, for a later test.", panel=CROSS_ENCODER),
    )
    sweep: bool = taken_by(
        "adapter",
        is_option=flag("--sweep", "Train on every layer, print a table, save the best.", panel=ADAPTER),
    )
    parallel: list[str] = taken_by(
        "retriever", is_option=repeatable("--parallel SPEC", "Parallel text (repeatable).", panel=RETRIEVER)
    )

    def dev_specs(self) -> list[str] | None:
        """Return the specs of development text: ``[]`` for ``none``, ``None`` if the option is not given."""
        return [] if self.dev == ["none"] else self.dev or None


PRINTING = ("list_recipes", "print_recipe", "print_python")
"""Options that print, and train nothing."""

TAKEN_BY: dict[str, tuple[str, ...]] = {
    entry.name: entry.metadata["kinds"]
    for options in (TrainOptions, ArgumentOptions, RecipeOptions)
    for entry in fields(options)
    if "kinds" in entry.metadata
}
"""Options that not every kind of recipe takes → the kinds that do."""


def _trains_nothing(given: Given) -> str:
    if given.values["list_recipes"]:
        return "--list only lists the recipes"
    return "--print only prints a recipe" if given.values["print_recipe"] else ""


def _lists_recipes(given: Given) -> str:
    return "--list lists all recipes" if given.values["list_recipes"] else ""


def _prints_python(given: Given) -> str:
    return "--print-python prints the training alone" if given.values["print_python"] else ""


def _is_tiny(given: Given) -> str:
    return "the model tiny is built here" if given.values["model"] == "tiny" else ""


def _is_not_tiny(given: Given) -> str:
    return "" if given.values["model"] == "tiny" else "it shapes the model 'tiny' only"


RULES = (
    Inapplicable(("recipe",), _lists_recipes),
    Excludes("print_recipe", ("list_recipes",), "one recipe is printed, or all are listed; remove one"),
    Excludes("print_python", ("print_recipe", "list_recipes"), "one thing is printed; remove one"),
    Inapplicable(("resume", "overwrite", "check_leak", "fail_on_leak", "drop_leaks", "mono", "stream"), _prints_python),
    Inapplicable(
        (
            *(entry.name for entry in fields(TrainOptions) if entry.name not in PRINTING),
            *(entry.name for kind in (ArgumentOptions, RecipeOptions) for entry in fields(kind)),
        ),
        _trains_nothing,
    ),
    Inapplicable(("revision", "trust_remote_code"), _is_tiny),
    Inapplicable(("tiny",), _is_not_tiny),
    Excludes("drop_leaks", ("fail_on_leak",), "shared text is dropped, or stops the run; remove one"),
    Excludes("dev_share", ("dev",), "nothing is held out of --data where --dev is given; remove one"),
    Excludes("sweep", ("layer",), "a sweep trains on every layer; remove one"),
)


def _overrides(context: typer.Context, options: TrainOptions) -> dict[str, Any]:
    """Return the recipe keys that the options set, dotted; ``--set`` comes last."""
    arguments = asdict(options_of(context, ArgumentOptions))
    values = {f"arguments.{name}": value for name, value in arguments.items()}
    values |= options_of(context, RecipeOptions).keys()
    if options.precision is not None:
        values |= {f"arguments.{kind}": options.precision == kind for kind in ("bf16", "fp16")}
    values["arguments.prompts"] = options.prompt
    values["arguments.lora.merge"] = False if options.lora_keep else True if options.lora else None
    return opts.given(**values) | _pairs(options.set, "--set")


def _pairs(texts: Sequence[str], flag: str) -> dict[str, Any]:
    from st_xling.training.recipe_files import read_yaml

    pairs: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} takes KEY=VALUE: got {text!r}.")
        try:
            pairs[key] = read_yaml(value, "it")
        except ValueError as error:
            raise ValueError(f"{flag} {key}= takes a YAML value: got {value!r}; quote it ({error}).") from error
    return pairs


@app.command("train", cls=with_options(TrainOptions, ArgumentOptions, RecipeOptions, rules=RULES))
def train(
    context: typer.Context,
    recipe: str | None = argument("RECIPE", "Name of a recipe, or path of a YAML file.", default=None),
) -> None:
    """Train an encoder, adapter, retriever or cross-encoder by a recipe.

    Saves a plain sentence-transformers model, with its card. st-xling train RECIPE --print prints a recipe with its
    values, to be edited and given as a file; with --print-python it prints a run with its options as a Python script of
    sentence-transformers' trainer.

    \b
    recipes:
      encoders        tr, labse, dap, dap-released, tr-tlm, amber, semacl,
                      langcl, semacl-langcl, mexma, distill
                      from parallel text
      adapters        sf
                      from parallel text
      retrievers      ir, ir-semacl, ir-langcl, ir-semacl-langcl
                      from questions with passages, and parallel text
      cross-encoders  xpi
                      from parallel text
                      xpr-merged, xpr-cascade, xpr-mixed
                      from questions with passages

    \b
    examples:
      st-xling train --list
      st-xling train dap --print > my-recipe.yaml
      st-xling train dap --print-python > my-training.py

    \b
    on the phrasebook, which is built in:
      st-xling train dap --model tiny --data phrasebook:de,fr \\
          --out my-encoder --epochs 2
      st-xling train sf --model tiny --data 'zh-vi=phrasebook?size=2000' \\
          --out my-adapter
      st-xling train ir-semacl --model tiny --data queries=phrasebook \\
          --parallel phrasebook:de --out my-retriever
      st-xling train xpr-mixed --model tiny --data 'en=phrasebook?size=300' \\
          --data 'zh=phrasebook?size=300' --out my-reranker

    \b
    on files, from models of the Hub:
      st-xling train dap --model xlm-roberta-base --data de-en=pairs.tsv \\
          --check-leak tatoeba/v1 --out my-encoder
      st-xling train tr --model intfloat/multilingual-e5-small \\
          --prompt 'query: ' --set arguments.early_stopping_patience=3 \\
          --data de-en=pairs.tsv --dev de-en=new-pairs.tsv --out my-encoder
      st-xling train xpr-mixed --model bert-base-multilingual-cased \\
          --data en=xquad.en.json --data zh=xquad.zh.json --out my-reranker
      st-xling train distill \\
          --teacher sentence-transformers/all-mpnet-base-v2 \\
          --model xlm-roberta-base --data de-en=pairs.tsv --out my-encoder
      st-xling train my-recipe.yaml --model xlm-roberta-base \\
          --data de-en=pairs.tsv --out my-encoder

    Encoders and adapters: --data is parallel text, xx-yy=PATH (TSV, CSV, JSON, Parquet, TMX), xx-yy=SOURCE,TARGET, a
    Hub id or phrasebook:….

    Cross-encoders: --data xx=PATH is questions with passages of a language, in SQuAD's form or as labeled pairs, or
    xx=phrasebook; of xpi parallel text. --dev has the same form (default: --dev-share of --data).

    Retrievers: --data queries=PATH is queries with passages (and hard negatives: columns negative_1, negative_2, …, or
    ?columns=query,answer,negative), a folder in the layout of BEIR, Mr.TyDi or MIRACL, or
    queries=phrasebook?size=2000. --dev xx=DIR is such a folder, or xx=phrasebook, to choose the best checkpoint by
    (default: none, the last one is saved).

    SPEC is [NAME=]LOCATION[?OPTION=VALUE&...], as in every command: zh_Hant-en=pairs.tsv, pt_BR=texts.txt?size=8000.
    NAME is one language or two; after a hyphen a region is in capitals. phrasebook:de,fr?size=8000&split=train&seed=0
    pairs each language with English; --dev reads its development split and --check-leak its test split, unless ?split=
    names another. Quote specs that contain ? or &.

    --model tiny is a small model of random weights, built from the data; --tiny sets its layers, hidden_size,
    vocabulary and more. --mono is, for encoders, running text for the loss mlm, two lines a pair; for retrievers lines,
    passages (.jsonl) or phrasebook. --set takes any key of the recipe, such as losses.tlm.weight=0.5, and any training
    argument of sentence-transformers, such as arguments.report_to=wandb. --prompt has one text for all columns; others
    are --set 'arguments.prompts={source: "query: ", target: "passage: "}'. --cache keeps the sentence embeddings of an
    adapter's encoder, or of a teacher, by default next to the downloaded models in the Hub's cache.
    """
    options = options_of(context, TrainOptions)
    if options.list_recipes or options.print_recipe:
        return _show_recipes(context, recipe if options.print_recipe else None)
    required: dict[str, Any] = {"RECIPE": recipe}
    if not options.print_python:
        required |= {"--model": options.model, "--data": options.data, "--out": options.out}
    if missing := [name for name, value in required.items() if not value]:
        raise ValueError(f"missing {', '.join(missing)}; see st-xling train --help")
    assert recipe is not None
    from st_xling.training.recipe_files import recipe_kind

    kind = recipe_kind(recipe)
    given = Given.of(context).typed
    for name, kinds in TAKEN_BY.items():
        if kind not in kinds and name in given:
            raise ValueError(
                f"{given[name]} is for {' and '.join(f'{kind}s' for kind in kinds)}: got the recipe of "
                f"{_with_article(kind)} {recipe}; remove it."
            )
    from st_xling.training.settings import check_settings, check_tiny

    check_settings(recipe, _overrides(context, options))  # before torch is loaded
    check_tiny(_pairs(options.tiny, "--tiny"))
    if options.print_python:
        return _print_script(recipe, kind, options, context)
    _warn_of_uncut(kind, options)
    from st_xling.utils import distributed

    assert options.out is not None

    distributed.init_distributed()
    summary = {
        "encoder": _train_encoder,
        "adapter": _train_adapter,
        "retriever": _train_retriever,
        "cross-encoder": _train_cross_encoder,
    }[kind](recipe, options, context)
    if distributed.is_main():
        update_model_card(options.out)
        print(summary)
        write_results(context, read_json_object(options.out / "results.json"))


def _warn_of_uncut(kind: str, options: TrainOptions) -> None:
    """Warn of files of pairs that were mined without a threshold."""
    from st_xling.data.read import parse_data_spec
    from st_xling.data.scored import warn_of_uncut

    specs = options.parallel if kind == "retriever" else options.data
    for spec in specs if kind in ("encoder", "adapter", "retriever") else ():
        paths = parse_data_spec(spec).paths
        if len(paths) == 1:
            warn_of_uncut(paths[0])


def _show_recipes(context: typer.Context, name: str | None) -> None:
    """List the recipes with their kinds and summaries, or print one."""
    from st_xling.training.recipe_files import read_recipe, recipe_names, recipe_text

    if context.params["print_recipe"]:
        if name is None:
            raise ValueError("--print needs the name of a recipe, or a YAML file; --list lists the names.")
        print(recipe_text(name), end="")
        return write_results(context, {"recipe": read_recipe(name)})
    entries = []
    for kind in ("encoder", "adapter", "retriever", "cross-encoder"):
        for each in recipe_names(kind):
            entries.append({"name": each, "kind": kind, "summary": read_recipe(each)["summary"]})
            print(f"{each:<18}{kind:<15}{entries[-1]['summary']}")
    write_results(context, {"recipes": entries})


IN_PYTHON = {
    "encoder": "st_xling.training.train",
    "adapter": "st_xling.training.adapter.train_adapter",
    "retriever": "st_xling.training.train_retrieval",
    "cross-encoder": "st_xling.training.reranker.train_cross_encoder",
}
"""Kind of a recipe → the function that trains by it."""


def _print_script(recipe: str, kind: str, options: TrainOptions, context: typer.Context) -> None:
    """Print the run as a Python script, with placeholders for model, data and folder that are not given."""
    from st_xling.data.read import parse_data_spec

    if kind != "encoder":
        raise ValueError(
            f"--print-python is for recipes of encoders: got that of {_with_article(kind)}, {recipe}; in Python, "
            f"{IN_PYTHON[kind]} trains by it."
        )
    dev = options.dev_specs()
    for spec in [*options.data, *(dev or ())]:
        parse_data_spec(spec)
    from st_xling.training import load_recipe
    from st_xling.training.script import PLACEHOLDER_DATA, PLACEHOLDER_MODEL, PLACEHOLDER_OUT, training_script

    loaded = load_recipe(recipe, tiny=options.model == "tiny", overrides=_overrides(context, options))
    script = training_script(
        loaded,
        model=options.model or PLACEHOLDER_MODEL,
        data=options.data or [PLACEHOLDER_DATA],
        out=options.out or PLACEHOLDER_OUT,
        dev=dev,
        tiny=_pairs(options.tiny, "--tiny"),
        cache=options.cache,
        revision=options.revision,
        trust_remote_code=options.trust_remote_code,
        skip_bad_lines=options.skip_bad_lines,
    )
    print(script, end="")
    write_results(context, {"script": script})


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ae" else f"a {kind}"


def _arguments(load_recipe: Any, recipe: str, options: TrainOptions, context: typer.Context) -> dict[str, Any]:
    """Return what every kind of training takes, after checking model, output folder and ``--tiny``."""
    from st_xling.data import load_evaluation_specs
    from st_xling.training.run import check_tiny
    from st_xling.training.run_folder import RunFolder
    from st_xling.training.sentence_vectors import check_cache

    assert options.model is not None and options.out is not None
    inputs = [options.data, options.dev, options.check_leak, options.parallel, options.mono]
    again = {"resume": options.resume, "overwrite": options.overwrite}
    RunFolder(options.out, start=options.model, inputs=inputs, **again).check()
    check_cache(options.cache)
    return {
        **again,
        "tiny": check_tiny(_pairs(options.tiny, "--tiny")),
        "recipe": load_recipe(recipe, tiny=options.model == "tiny", overrides=_overrides(context, options)),
        "out": options.out,
        "model": options.model,
        "load_options": opts.given(revision=options.revision, trust_remote_code=options.trust_remote_code or None),
        "evaluation": load_evaluation_specs(options.check_leak, skip_bad_lines=options.skip_bad_lines),
        "on_leak": "fail" if options.fail_on_leak else "drop" if options.drop_leaks else "report",
        "command": context.obj.line,
    }


def _train_encoder(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling import training
    from st_xling.data.texts_by_language import read_all_others
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.utils import distributed
    from st_xling.utils.paths import check_outputs

    def prepare() -> tuple[dict[str, Any], TrainingPicture]:
        arguments = _arguments(training.load_recipe, recipe, options, context)
        loaded = arguments["recipe"]
        if loaded.data.teacher.model is not None:
            check_outputs({"--json": context.params["json"]}, [loaded.data.teacher.model])
        else:
            Given.of(context).refuse(("cache", "teacher_prompt"), f"the recipe {loaded.name} has no teacher")
        data, dev = _read_data(options)
        mono = read_all_others(options.mono, skip_bad_lines=options.skip_bad_lines)
        names = {"data": data, "dev": dev, "mono": mono, "check_leak": arguments["evaluation"]}
        arguments |= {"data": data, "mono": mono, "cache": options.cache, "provenance": _sources(options, names)}
        arguments["evaluator"] = TatoebaEvaluator(dev, name="dev") if dev else None
        start = "random weights" if options.model == "tiny" else ""
        return arguments, TrainingPicture(dev or ({} if options.stream else data), loaded.name, start=start)

    # Each process reads the data, and all stop if one cannot.
    arguments, picture = distributed.run_on_all(prepare)
    result = training.train(**arguments, begin=picture.begin)
    if distributed.is_main():
        picture.end(result.model, result.folder)
    return _summary(result, "accuracy")


def _summary(result: TrainingResult, measure: str) -> str:
    from st_xling.training.development import steps_and_time

    best = "" if result.development is None else f", best development {measure} {result.development}"
    return f"{steps_and_time(result.steps, result.seconds)}{best}; the model is in {result.folder}"


def _say_no_development(unit: str) -> None:
    """Print that no development set is held out, and what this means."""
    from st_xling.data.holdout import FEWEST_PAIRS

    print(
        f"no development set: fewer than {FEWEST_PAIRS} {unit} would be held out, too few to choose a checkpoint by; "
        "the last model is saved (--dev gives others)",
        file=sys.stderr,
    )


def _train_adapter(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    """Train an adapter, print a table of its layers, and return a one-line summary."""
    from st_xling.evaluation import PrecisionEvaluator
    from st_xling.training.adapter import layer_table, load_adapter_recipe, train_adapter
    from st_xling.training.development import development_score, steps_and_time

    arguments = _arguments(load_adapter_recipe, recipe, options, context)
    data, dev = _read_data(options)
    evaluator = PrecisionEvaluator(dev, name="dev") if dev else None
    arguments["provenance"] = _sources(options, {"data": data, "dev": dev, "check_leak": arguments["evaluation"]})
    result = train_adapter(data=data, sweep=options.sweep, cache=options.cache, evaluator=evaluator, **arguments)
    if evaluator is not None:
        print(layer_table(result.layers, evaluator.at))
        print(evaluator.identity)
    best = result.chosen
    score = development_score(result.scores.get("best_dev"), evaluator)
    shown = "" if score is None else f", best development P@1 {score}"
    return (
        f"{result.encoded:,} texts encoded in {result.seconds['encoding']:.1f} s, {len(result.layers)} x "
        f"{steps_and_time(best.steps, result.seconds['training'])}{shown}; the model of layer {best.label} is in "
        f"{result.folder}"
    )


def _train_retriever(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling.data import load_data_specs
    from st_xling.data.columns import negative_columns
    from st_xling.data.retrieval import load_query_passage_specs, load_retrieval_specs
    from st_xling.data.texts_by_language import read_all_others
    from st_xling.evaluation.retrieval import RetrievalEvaluator
    from st_xling.training.retriever import RetrievalSources, load_retrieval_recipe, train_retrieval

    arguments = _arguments(load_retrieval_recipe, recipe, options, context)
    skip: Any = {"skip_bad_lines": options.skip_bad_lines}
    sources = RetrievalSources(
        queries=load_query_passage_specs(options.data, **skip),
        parallel=load_data_specs(options.parallel, identify=True, **skip) if options.parallel else {},
        others=read_all_others(options.mono, **skip),
    )
    text = {"data": sources.queries, "parallel": sources.parallel, "mono": sources.others}
    for role, parts in text.items():
        for label, part in parts.items():
            negatives = len(negative_columns(part.column_names))
            more = f", each with {negatives} hard negatives" if negatives else ""
            unit = "sentences" if role == "mono" else "pairs"
            print(f"{'queries' if role == 'data' else role} {label}: {len(part):,} {unit}{more}", file=sys.stderr)
    if dev := options.dev_specs():  # otherwise the last checkpoint is saved
        arguments["evaluator"] = RetrievalEvaluator(load_retrieval_specs(dev, split="dev", **skip), name="dev")
    arguments["provenance"] = _sources(options, {**text, "dev": (), "check_leak": arguments["evaluation"]})
    return _summary(train_retrieval(sources=sources, **arguments), "MRR@100")


def _train_cross_encoder(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling.data.holdout import FEWEST_PAIRS
    from st_xling.data.reranking.specs import load_pair_specs, load_xpi_specs
    from st_xling.data.reranking.strategies import STRATEGIES
    from st_xling.evaluation import RerankingEvaluator
    from st_xling.training.reranker import XPI, load_cross_encoder_recipe, train_cross_encoder

    arguments = _arguments(load_cross_encoder_recipe, recipe, options, context)
    loaded, dev = arguments["recipe"], options.dev_specs()
    # A share that was asked for is held out however few queries it is.
    fewest = FEWEST_PAIRS if dev is None and options.dev_share is None else 0
    reading: dict[str, Any] = {"dev": dev or None, "negatives_per_positive": loaded.negatives.per_positive}
    reading["fewest_dev"] = fewest
    if loaded.strategy == XPI:
        Given.of(context).refuse(("dev_share", "test_share"), "xpi reads parallel text, of which 2 % is held out")
        pairs = load_xpi_specs(
            options.data, size=loaded.sentences.size, skip_bad_lines=options.skip_bad_lines, **reading
        )
        rows, stages, pools = len(pairs.train), [pairs.train], None if dev == [] else pairs.dev
    else:
        Given.of(context).refuse(("skip_bad_lines",), "questions with passages are read whole")
        # Not the recipe's seed: what is held out stays the same, whatever the seed of the training.
        shares = opts.given(dev_share=0.0 if dev == [] else options.dev_share, test_share=options.test_share)
        data = load_pair_specs(options.data, **reading, **shares)
        stages = STRATEGIES[loaded.strategy](data.train, seed=loaded.arguments.seed)
        rows, pools = len(data.train), data.dev
    if fewest and not pools:
        _say_no_development("queries")
    print(f"{loaded.name}: {rows:,} pairs, {len(pools or ()):,} queries for development", file=sys.stderr)
    arguments["provenance"] = _sources(options, {"data": (), "dev": (), "check_leak": arguments["evaluation"]})
    arguments["evaluator"] = RerankingEvaluator(pools, name="dev") if pools else None
    return _summary(train_cross_encoder(stages=stages, **arguments), "acc@1")


def _read_data(options: TrainOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load training and development data, held out if none is given, and print the number of pairs to stderr."""
    from st_xling.data import load_data_specs
    from st_xling.data.holdout import FEWEST_PAIRS, hold_out

    data = load_data_specs(options.data, skip_bad_lines=options.skip_bad_lines, stream=options.stream, identify=True)
    specs = options.dev_specs()
    dev: dict[str, Any] = {}
    if specs:
        dev = load_data_specs(specs, split="dev", skip_bad_lines=options.skip_bad_lines)
    elif specs is None:
        data, dev = hold_out(data, fewest=FEWEST_PAIRS)
        if not dev:
            _say_no_development("pairs")
    for name, part in data.items():
        count = "streamed" if options.stream else f"{len(part):,} pairs"
        print(f"{name}: {count}, {len(dev.get(name, [])):,} for development", file=sys.stderr)
    return data, dev


def _sources(options: TrainOptions, names: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """Return the provenance for ``run.json``: every spec with the names of its data sets.

    Args:
        options: Options of the command.
        names: Option → names of all data sets that its specs gave, in order; none where a spec has no set of its own.
    """
    from st_xling.data.read import parse_data_spec
    from st_xling.data.spec import paired_languages

    sources = []
    for name, sets in names.items():
        specs, left = [spec for spec in getattr(options, name) if spec != "none"], list(sets)
        # A phrasebook gives a set for each of its languages, other specs of several are one set.
        counts = [
            len(paired_languages(parse_data_spec(spec))) if spec.startswith("phrasebook") else 1 for spec in specs
        ]
        if len(specs) == 1:
            counts = [len(left)]
        known = sum(counts) == len(left)
        for spec, count in zip(specs, counts):
            sources.append({"option": name, "spec": spec, "names": left[:count] if known else []})
            left = left[count:]
    return sources
