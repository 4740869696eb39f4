"""``st-xling train``: train an encoder, an adapter, a retriever or a cross-encoder by a recipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import typer

from st_xling.cli import options as opts
from st_xling.cli.app import TRAIN, app, with_options
from st_xling.cli.options import argument, flag, listed, option, options_of, read_assignments, repeatable
from st_xling.cli.results import update_model_card, write_results
from st_xling.cli.rules import Excludes, Given, Inapplicable
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.io import read_json_object
from st_xling.utils.options import Pooling

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.leak import Texts
    from st_xling.data.reranking.pools import CandidatePool
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.compare.axes import BeforeAfter
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.training.recipe import BaseRecipe, Recipe
    from st_xling.training.reranker import CrossEncoderRecipe
    from st_xling.training.run import Evaluators, OnLeak, TrainingResult

AnyRecipe = TypeVar("AnyRecipe", bound="BaseRecipe")

# Panels of the help.
DATA = "Data"
RECIPE = "Recipes"
TRAINING = "Training"
MODEL = "Model"
ENCODER = "Recipes of encoders"
CROSS_ENCODER = "Recipes of cross-encoders"
ADAPTER = "Recipes of adapters"
RETRIEVER = "Recipes of retrievers"


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
            "How token states become a sentence's embedding (model.pooling; default: as saved, else the recipe's).",
            panel=MODEL,
        ),
    )
    max_length: int | None = option(
        "--max-length",
        "Maximum number of tokens of a text (model.max_length; default: as saved, else the recipe's).",
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
    hard_swaps: list[str] | None = taken_by(
        "encoder",
        is_option=listed(
            "--hard-swaps LIST",
            "Near-translations as negatives for the loss translation_ranking: the English side with another number, "
            "name (entity), or a negation (causality) (data.hard_swaps, default: none).",
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
            "data.hard_swaps": self.hard_swaps,
            "adapter.layer": self.layer,
            "retrieval.encoders": self.encoders,
        }


@dataclass(frozen=True)
class TrainOptions:
    """Options of ``train``, passed whole to the function that trains the kind of model."""

    model: str | None = option(
        "--model MODEL",
        "Hub id or folder of the model to start from, tiny or static (required; the recipe static starts from static).",
    )
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
    keep_like: list[str] = taken_by(
        "encoder",
        is_option=repeatable(
            "--keep-like TEXTS",
            "Text on which the model shall stay as it was, see above (repeatable).",
            panel=ENCODER,
        ),
    )
    measure: list[str] = taken_by(
        "encoder",
        is_option=repeatable(
            "--measure SPEC",
            "Measure before and after on this text: xx-en=PAIRS, Tatoeba, or passages xx=DIR (repeatable).",
            panel=ENCODER,
        ),
    )
    check_leak: list[str] = repeatable(
        "--check-leak EVAL", "Also search the training text for this test text (repeatable).", panel=DATA
    )
    fail_on_leak: bool = flag("--fail-on-leak", "Stop if training text is in dev or test text.", panel=DATA)
    drop_leaks: bool = flag("--drop-leaks", "Drop such rows, and report them.", panel=DATA)
    skip_bad_lines: bool = flag("--skip-bad-lines", "Skip faulty lines, and list them in a warning.", panel=DATA)
    stream: bool = taken_by(
        "encoder",
        is_option=flag(
            "--stream", "Read --data as needed, for more than fits into memory; needs --max-steps.", panel=DATA
        ),
    )
    tiny: list[str] = repeatable("--tiny KEY=VALUE", "Shape of the model tiny (repeatable).", panel=MODEL)
    static: list[str] = taken_by(
        *("encoder", "retriever"),
        is_option=repeatable("--static KEY=VALUE", "Shape of the model static (repeatable).", panel=MODEL),
    )
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
            "--cache DIR",
            "Folder for vectors of adapters, teachers and --keep-like (default: a cache).",
            panel=TRAINING,
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
    for entry in (*fields(TrainOptions), *fields(ArgumentOptions), *fields(RecipeOptions))
    if "kinds" in entry.metadata
}
"""Options that not every kind of recipe takes → the kinds that do."""


def _trains_nothing(call: Given) -> str:
    if call.values["list_recipes"]:
        return "--list only lists the recipes"
    return "--print only prints a recipe" if call.values["print_recipe"] else ""


def _lists_recipes(call: Given) -> str:
    return "--list lists all recipes" if call.values["list_recipes"] else ""


def _prints_python(call: Given) -> str:
    return "--print-python prints the training alone" if call.values["print_python"] else ""


def _is_built(call: Given) -> str:
    model = call.values["model"]
    return f"the model {model} is built here" if model in BUILT_MODELS else ""


def _is_not_tiny(call: Given) -> str:
    return "" if call.values["model"] == "tiny" else "it shapes the model 'tiny' only"


def _is_not_static(call: Given) -> str:
    # Without --model the recipe may start from it.
    return "" if call.values["model"] in ("static", None) else "it shapes the model 'static' only"


RULES = (
    Inapplicable(("recipe",), _lists_recipes),
    Excludes("print_recipe", ("list_recipes",), "one recipe is printed, or all are listed; remove one"),
    Excludes("print_python", ("print_recipe", "list_recipes"), "one thing is printed; remove one"),
    Inapplicable(
        ("resume", "overwrite", "check_leak", "fail_on_leak", "drop_leaks", "mono", "keep_like", "measure", "stream"),
        _prints_python,
    ),
    Inapplicable(
        (
            *(entry.name for entry in fields(TrainOptions) if entry.name not in PRINTING),
            *(entry.name for entry in fields(ArgumentOptions)),
            *(entry.name for entry in fields(RecipeOptions)),
        ),
        _trains_nothing,
    ),
    Inapplicable(("revision", "trust_remote_code"), _is_built),
    Inapplicable(("tiny",), _is_not_tiny),
    Inapplicable(("static",), _is_not_static),
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
        values["arguments.bf16"] = options.precision == "bf16"
        values["arguments.fp16"] = options.precision == "fp16"
    values["arguments.prompts"] = options.prompt
    if options.lora or options.lora_keep:
        values["arguments.lora.merge"] = not options.lora_keep
    return opts.given(**values) | read_assignments(options.set, "--set")


@app.command(
    "train", cls=with_options(TrainOptions, ArgumentOptions, RecipeOptions, rules=RULES), rich_help_panel=TRAIN
)
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
                      langcl, semacl-langcl, mexma, distill, static,
                      realign
                      from parallel text
      adapters        sf
                      from parallel text
      retrievers      ir, ir-semacl, ir-langcl, ir-semacl-langcl
                      from questions with passages, and parallel text
      cross-encoders  xpi, filter
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
      st-xling train static --data phrasebook:de,fr --out my-static-encoder
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
    xx=phrasebook; of xpi and filter parallel text. --dev has the same form (default: --dev-share of --data).

    Retrievers: --data queries=PATH is queries with passages (and hard negatives: columns negative_1, negative_2, …, or
    ?columns=query,answer,negative), a folder in the layout of BEIR, Mr.TyDi or MIRACL, or
    queries=phrasebook?size=2000. --dev xx=DIR is such a folder, or xx=phrasebook, to choose the best checkpoint by
    (default: none, the last one is saved).

    SPEC is [NAME=]LOCATION[?OPTION=VALUE&...], as in every command: zh_Hant-en=pairs.tsv, pt_BR=texts.txt?size=8000.
    NAME is one language or two; after a hyphen a region is in capitals. phrasebook:de,fr?size=8000&split=train&seed=0
    pairs each language with English; --dev reads its development split and --check-leak its test split, unless ?split=
    names another. Quote specs that contain ? or &.

    --model tiny is a small model of random weights, built from the data; --tiny sets its layers, hidden_size,
    vocabulary and more. --model static is a table of vectors, averaged over the pieces of a text: no transformer, and
    thousands of sentences a second; --static sets its vocabulary and dimensions, and the recipe static starts from it
    and needs no --model. --mono is, for encoders, running text for the loss mlm, two lines a pair; for retrievers
    lines, passages (.jsonl) or phrasebook. --keep-like takes text of one language, such as xx=queries.txt, or
    parallel text: next to each pair two of its texts are held to the vectors that the model had for them before
    training (data.replay.per_pair, data.replay.weight); ?prompt_name=query names the prompt that they are read
    with. --set takes any key of the recipe, such as losses.tlm.weight=0.5, and any training argument of
    sentence-transformers, such as arguments.report_to=wandb. --prompt has one text for all columns; others are
    --set 'arguments.prompts={source: "query: ", target: "passage: "}'. --cache keeps the sentence embeddings of an
    adapter's encoder, or of a teacher, by default next to the downloaded models in the Hub's cache.
    """
    options = options_of(context, TrainOptions)
    if options.print_recipe:
        return _print_recipe(context, recipe)
    if options.list_recipes:
        return _list_recipes(context)
    if recipe is not None and options.model is None:
        options = replace(options, model=_start_of(recipe))
    required: dict[str, Any] = {"RECIPE": recipe}
    if not options.print_python:
        required |= {"--model": options.model, "--data": options.data, "--out": options.out}
    if missing := [name for name, value in required.items() if not value]:
        raise ValueError(f"missing {', '.join(missing)}; see st-xling train --help")
    assert recipe is not None
    from st_xling.training.recipe_files import recipe_kind

    kind = recipe_kind(recipe)
    typed = Given.of(context).typed
    for name, kinds in TAKEN_BY.items():
        if kind not in kinds and name in typed:
            takers = " and ".join(f"{taker}s" for taker in kinds)
            raise ValueError(
                f"{typed[name]} is for {takers}: got the recipe of {_with_article(kind)} {recipe}; remove it."
            )
    if options.model == "static" and kind not in TAKEN_BY["static"]:
        raise ValueError(f"the model static has no layers, which {kind}s need; take --model tiny for {recipe}.")
    from st_xling.training.settings import check_settings, check_sizes_of_static, check_tiny_sizes

    check_settings(recipe, _overrides(context, options))  # before torch is loaded
    check_tiny_sizes(read_assignments(options.tiny, "--tiny"))
    check_sizes_of_static(read_assignments(options.static, "--static"))
    if options.print_python:
        return _print_script(recipe, kind, options, context)
    _warn_of_uncut(kind, options)
    from st_xling.utils import distributed

    assert options.out is not None

    distributed.init_distributed()
    train_functions = {
        "encoder": _train_encoder,
        "adapter": _train_adapter,
        "retriever": _train_retriever,
        "cross-encoder": _train_cross_encoder,
    }
    summary = train_functions[kind](recipe, options, context)
    if distributed.is_main():
        update_model_card(options.out)
        print(summary)
        write_results(context, read_json_object(options.out / "results.json"))


def _start_of(recipe: str) -> str | None:
    """Return the model that a recipe starts from where none is given."""
    from st_xling.training.recipe_files import read_recipe

    return read_recipe(recipe).get("start")


def _warn_of_uncut(kind: str, options: TrainOptions) -> None:
    """Warn of files of pairs that were mined without a threshold."""
    from st_xling.data.scored import warn_of_uncut
    from st_xling.data.spec import parse_data_spec

    if kind == "cross-encoder":  # reads no files of pairs that were mined
        return
    specs = options.parallel if kind == "retriever" else options.data
    for spec in specs:
        paths = parse_data_spec(spec).paths
        if len(paths) == 1:
            warn_of_uncut(paths[0])


def _print_recipe(context: typer.Context, name: str | None) -> None:
    from st_xling.training.recipe_files import read_recipe, recipe_text

    if name is None:
        raise ValueError("--print needs the name of a recipe, or a YAML file; --list lists the names.")
    print(recipe_text(name), end="")
    write_results(context, {"recipe": read_recipe(name)})


def _list_recipes(context: typer.Context) -> None:
    """List the recipes with their kinds and summaries."""
    from st_xling.training.recipe_files import read_recipe, recipe_names

    entries: list[dict[str, str]] = []
    for kind in ("encoder", "adapter", "retriever", "cross-encoder"):
        for name in recipe_names(kind):
            summary = read_recipe(name)["summary"]
            entries.append({"name": name, "kind": kind, "summary": summary})
            print(f"{name:<18}{kind:<15}{summary}")
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
    from st_xling.data.spec import parse_data_spec

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

    loaded = load_recipe(recipe, tiny=options.model in BUILT_MODELS, overrides=_overrides(context, options))
    script = training_script(
        loaded,
        model=options.model or PLACEHOLDER_MODEL,
        data=options.data or [PLACEHOLDER_DATA],
        out=options.out or PLACEHOLDER_OUT,
        dev=dev,
        tiny=read_assignments(options.tiny, "--tiny"),
        static=read_assignments(options.static, "--static"),
        cache=options.cache,
        revision=options.revision,
        trust_remote_code=options.trust_remote_code,
        skip_bad_lines=options.skip_bad_lines,
    )
    print(script, end="")
    write_results(context, {"script": script})


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ae" else f"a {kind}"


@dataclass(frozen=True)
class CommonArguments(Generic[AnyRecipe]):
    """Arguments of every kind of training, checked.

    Attributes:
        recipe: The recipe, with the changes that the options make.
        out: Folder of the run.
        model: Hub id or folder, or ``"tiny"`` or ``"static"``.
        tiny: Options of the model ``"tiny"``.
        static: Options of the model ``"static"``.
        load_options: Options with which a model is loaded.
        evaluation: Name → texts to look for in the training data.
        on_leak: What to do about training rows with such text.
        command: The command line.
    """

    recipe: AnyRecipe
    out: Path
    model: str
    tiny: dict[str, Any]
    static: dict[str, Any]
    load_options: dict[str, Any]
    evaluation: dict[str, Texts]
    on_leak: OnLeak
    command: str


def _common_arguments(
    load_recipe: Callable[..., AnyRecipe], recipe: str, options: TrainOptions, context: typer.Context
) -> CommonArguments[AnyRecipe]:
    """Return what every kind of training takes, after checking model, output folder and ``--tiny``."""
    from st_xling.data import load_evaluation_specs
    from st_xling.training.run import check_static, check_tiny
    from st_xling.training.run_folder import RunFolder
    from st_xling.training.sentence_vectors import check_cache

    assert options.model is not None and options.out is not None
    inputs = [
        options.data,
        options.dev,
        options.check_leak,
        options.parallel,
        options.mono,
        options.keep_like,
        options.measure,
    ]
    folder = RunFolder(
        options.out, start=options.model, inputs=inputs, resume=options.resume, overwrite=options.overwrite
    )
    folder.check()
    check_cache(options.cache)
    tiny = check_tiny(read_assignments(options.tiny, "--tiny"))
    static = check_static(read_assignments(options.static, "--static"), options.model)
    loaded = load_recipe(recipe, tiny=options.model in BUILT_MODELS, overrides=_overrides(context, options))
    on_leak: OnLeak = "report"
    if options.fail_on_leak:
        on_leak = "fail"
    elif options.drop_leaks:
        on_leak = "drop"
    return CommonArguments(
        recipe=loaded,
        out=options.out,
        model=options.model,
        tiny=tiny,
        static=static,
        load_options=opts.given(revision=options.revision, trust_remote_code=options.trust_remote_code or None),
        evaluation=load_evaluation_specs(options.check_leak, skip_bad_lines=options.skip_bad_lines),
        on_leak=on_leak,
        command=context.obj.line,
    )


@dataclass(frozen=True)
class EncoderInputs:
    """Arguments and data with which an encoder is trained.

    Attributes:
        arguments: Arguments of every kind of training.
        data: Name → training data.
        mono: Name → text of one language.
        keep_like: Name of a prompt → texts on which the model shall stay as it was.
        evaluator: Evaluates the model on the development data, if there are any.
        provenance: Where the text came from.
        before_after: Measures the model before and after its training, if there is text for it.
        picture: Picture of the training, for the card.
    """

    arguments: CommonArguments[Recipe]
    data: dict[str, Any]
    mono: dict[str, Any]
    keep_like: dict[str, list[str]]
    evaluator: TatoebaEvaluator | None
    provenance: list[dict[str, Any]]
    before_after: BeforeAfter | None
    picture: TrainingPicture


def _read_encoder_inputs(recipe: str, options: TrainOptions, context: typer.Context) -> EncoderInputs:
    from st_xling.data.texts_by_language import read_all_others
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.training import load_recipe
    from st_xling.training.replay import load_kept_texts
    from st_xling.utils.paths import check_outputs

    arguments = _common_arguments(load_recipe, recipe, options, context)
    loaded = arguments.recipe
    if loaded.data.teacher.model is not None:
        check_outputs({"--json": context.params["json"]}, [loaded.data.teacher.model])
    else:
        unused = ("teacher_prompt",) if options.keep_like else ("cache", "teacher_prompt")
        Given.of(context).refuse(unused, f"the recipe {loaded.name} has no teacher")
    data, dev = _read_data(options)
    mono = read_all_others(options.mono, skip_bad_lines=options.skip_bad_lines)
    keep_like = load_kept_texts(options.keep_like, skip_bad_lines=options.skip_bad_lines)
    before_after = _read_measured(options, data)
    if before_after is not None:
        arguments.evaluation.update(_texts_measured(before_after))
    names = {"data": data, "dev": dev, "mono": mono, "keep_like": (), "check_leak": arguments.evaluation}
    shown_pairs = dev or data
    if options.stream and not dev:
        shown_pairs = {}
    start = "random weights" if options.model in BUILT_MODELS else ""
    evaluator = TatoebaEvaluator(dev, name="dev") if dev else None
    return EncoderInputs(
        arguments=arguments,
        data=data,
        mono=mono,
        keep_like=keep_like,
        evaluator=evaluator,
        provenance=_sources(options, names),
        before_after=before_after,
        picture=TrainingPicture(shown_pairs, loaded.name, start=start),
    )


def _read_measured(options: TrainOptions, data: Mapping[str, Any]) -> BeforeAfter | None:
    """Read what the model is measured on before and after; ``None`` if there is nothing."""
    if not options.measure:
        return None
    from st_xling.evaluation.compare import load_comparison_data
    from st_xling.evaluation.compare.axes import BeforeAfter

    learned: set[str] | None = None
    if not options.stream:
        learned = set()
        for pairs in data.values():
            learned |= {*pairs.unique("source_language"), *pairs.unique("target_language")}
    measured = load_comparison_data(options.measure)
    if not (measured.pairs or measured.sets):
        raise ValueError(f"--measure takes translation pairs or passages: got neither in {', '.join(options.measure)}.")
    return BeforeAfter(measured, learned)


def _texts_measured(before_after: BeforeAfter) -> dict[str, Any]:
    """Return name → texts that a model is measured on, to look for in its training data: pairs, and questions."""
    texts: dict[str, Any] = {f"measured {code}": columns for code, columns in before_after.data.pairs.items()}
    for retrieval_set in before_after.data.sets:
        for code, queries in retrieval_set.queries.items():
            texts[f"measured {retrieval_set.language}, queries {code}"] = list(queries.values())
    return texts


def _train_encoder(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling import training
    from st_xling.utils import distributed

    # Each process reads the data, and all stop if one cannot.
    inputs = distributed.run_on_all(lambda: _read_encoder_inputs(recipe, options, context))
    arguments = inputs.arguments

    def begin(model: Any, folder: Path) -> None:
        inputs.picture.begin(model, folder)
        if inputs.before_after is not None:
            inputs.before_after.begin(model, folder)

    result = training.train(
        arguments.recipe,
        inputs.data,
        arguments.out,
        model=arguments.model,
        tiny=arguments.tiny,
        static=arguments.static,
        mono=inputs.mono,
        keep_like=inputs.keep_like,
        cache=options.cache,
        evaluator=inputs.evaluator,
        evaluation=arguments.evaluation,
        on_leak=arguments.on_leak,
        resume=options.resume,
        overwrite=options.overwrite,
        begin=begin,
        command=arguments.command,
        provenance=inputs.provenance,
        load_options=arguments.load_options,
    )
    if distributed.is_main():
        inputs.picture.end(result.model, result.folder)
        if inputs.before_after is not None:
            from st_xling.evaluation.compare.axes import axes_table

            print(axes_table(inputs.before_after.end(result.model, result.folder)))
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

    arguments = _common_arguments(load_adapter_recipe, recipe, options, context)
    data, dev = _read_data(options)
    evaluator = PrecisionEvaluator(dev, name="dev") if dev else None
    result = train_adapter(
        arguments.recipe,
        data,
        arguments.out,
        model=arguments.model,
        tiny=arguments.tiny,
        sweep=options.sweep,
        cache=options.cache,
        evaluator=evaluator,
        evaluation=arguments.evaluation,
        on_leak=arguments.on_leak,
        resume=options.resume,
        overwrite=options.overwrite,
        command=arguments.command,
        provenance=_sources(options, {"data": data, "dev": dev, "check_leak": arguments.evaluation}),
        load_options=arguments.load_options,
    )
    if evaluator is not None:
        print(layer_table(result.layers, evaluator.at))
        print(evaluator.identity)
    chosen = result.chosen
    score = development_score(result.scores.get("best_dev"), evaluator)
    development = "" if score is None else f", best development P@1 {score}"
    training_time = steps_and_time(chosen.steps, result.seconds["training"])
    return (
        f"{result.encoded:,} texts encoded in {result.seconds['encoding']:.1f} s, {len(result.layers)} x "
        f"{training_time}{development}; the model of layer {chosen.label} is in {result.folder}"
    )


def _train_retriever(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling.data import load_data_specs
    from st_xling.data.columns import negative_columns
    from st_xling.data.retrieval import load_query_passage_specs, load_retrieval_specs
    from st_xling.data.texts_by_language import read_all_others
    from st_xling.evaluation.retrieval import RetrievalEvaluator
    from st_xling.training.retriever import RetrievalSources, load_retrieval_recipe, train_retrieval

    arguments = _common_arguments(load_retrieval_recipe, recipe, options, context)
    skip_bad_lines = options.skip_bad_lines
    queries = load_query_passage_specs(options.data, skip_bad_lines=skip_bad_lines)
    parallel: dict[str, Any] = {}
    if options.parallel:
        parallel = load_data_specs(options.parallel, identify=True, skip_bad_lines=skip_bad_lines)
    others = read_all_others(options.mono, skip_bad_lines=skip_bad_lines)
    for role, unit, datasets in (
        ("queries", "pairs", queries),
        ("parallel", "pairs", parallel),
        ("mono", "sentences", others),
    ):
        for name, dataset in datasets.items():
            negatives = len(negative_columns(dataset.column_names))
            suffix = f", each with {negatives} hard negatives" if negatives else ""
            print(f"{role} {name}: {len(dataset):,} {unit}{suffix}", file=sys.stderr)
    evaluator: RetrievalEvaluator | None = None  # the last checkpoint is saved
    if dev := options.dev_specs():
        dev_sets = load_retrieval_specs(dev, split="dev", skip_bad_lines=skip_bad_lines)
        evaluator = RetrievalEvaluator(dev_sets, name="dev")
    names = {"data": queries, "parallel": parallel, "mono": others, "dev": (), "check_leak": arguments.evaluation}
    result = train_retrieval(
        arguments.recipe,
        RetrievalSources(queries=queries, parallel=parallel, others=others),
        arguments.out,
        model=arguments.model,
        tiny=arguments.tiny,
        static=arguments.static,
        evaluator=evaluator,
        evaluation=arguments.evaluation,
        on_leak=arguments.on_leak,
        resume=options.resume,
        overwrite=options.overwrite,
        command=arguments.command,
        provenance=_sources(options, names),
        load_options=arguments.load_options,
    )
    return _summary(result, "MRR@100")


@dataclass(frozen=True)
class RankingPairs:
    """Labeled pairs that a cross-encoder is trained and evaluated on.

    Attributes:
        rows: Number of training pairs, before they are put together into stages.
        stages: Pairs of each stage.
        pools: Queries with the passages to rank, for development; ``None``: none.
        dev: Labeled pairs of a filter, for development; ``None``: none.
        calibration: Labeled pairs that a filter is calibrated on; ``None``: none.
    """

    rows: int
    stages: Sequence[Dataset]
    pools: Sequence[CandidatePool] | None = None
    dev: Dataset | None = None
    calibration: Dataset | None = None


def _read_ranking_pairs(
    recipe: CrossEncoderRecipe, options: TrainOptions, context: typer.Context, *, fewest_dev: int
) -> RankingPairs:
    """Read the data of a cross-encoder, in the form that the recipe's strategy takes."""
    from st_xling.data.reranking.specs import load_filter_specs, load_pair_specs, load_xpi_specs
    from st_xling.data.reranking.strategies import STRATEGIES
    from st_xling.training.reranker import FILTER, XPI

    dev = options.dev_specs()
    negatives_per_positive = recipe.negatives.per_positive
    if recipe.strategy in (XPI, FILTER):
        Given.of(context).refuse(
            ("dev_share", "test_share"), f"{recipe.strategy} reads parallel text, of which 2 % is held out"
        )
    if recipe.strategy == FILTER:
        filter_data = load_filter_specs(
            options.data,
            hard=recipe.negatives.hard,
            dev=dev or None,
            holds_out=dev != [],
            size=recipe.sentences.size,
            fewest_dev=fewest_dev,
            negatives_per_positive=negatives_per_positive,
            skip_bad_lines=options.skip_bad_lines,
            seed=recipe.arguments.seed,
        )
        train = filter_data.train
        return RankingPairs(len(train), [train], dev=filter_data.dev, calibration=filter_data.calibration)
    if recipe.strategy == XPI:
        xpi_data = load_xpi_specs(
            options.data,
            size=recipe.sentences.size,
            skip_bad_lines=options.skip_bad_lines,
            dev=dev or None,
            negatives_per_positive=negatives_per_positive,
            fewest_dev=fewest_dev,
        )
        pools = None if dev == [] else xpi_data.dev
        return RankingPairs(len(xpi_data.train), [xpi_data.train], pools)
    Given.of(context).refuse(("skip_bad_lines",), "questions with passages are read whole")
    # Not the recipe's seed for the shares: what is held out stays the same, whatever the seed of the training.
    dev_share = 0.0 if dev == [] else options.dev_share
    data = load_pair_specs(
        options.data,
        dev=dev or None,
        negatives_per_positive=negatives_per_positive,
        fewest_dev=fewest_dev,
        **opts.given(dev_share=dev_share, test_share=options.test_share),
    )
    stages = STRATEGIES[recipe.strategy](data.train, seed=recipe.arguments.seed)
    return RankingPairs(len(data.train), stages, data.dev)


def _train_cross_encoder(recipe: str, options: TrainOptions, context: typer.Context) -> str:
    from st_xling.data.holdout import FEWEST_PAIRS
    from st_xling.evaluation import RerankingEvaluator
    from st_xling.training.reranker import (
        FILTER,
        load_cross_encoder_recipe,
        pair_classification,
        train_cross_encoder,
    )

    arguments = _common_arguments(load_cross_encoder_recipe, recipe, options, context)
    loaded = arguments.recipe
    # A share that the user chose is held out however few queries it is.
    holds_out_by_default = options.dev_specs() is None and options.dev_share is None
    fewest_dev = FEWEST_PAIRS if holds_out_by_default else 0
    pairs = _read_ranking_pairs(loaded, options, context, fewest_dev=fewest_dev)
    pools = pairs.pools
    unit = "pairs" if loaded.strategy == FILTER else "queries"
    if fewest_dev and not (pools or pairs.dev):
        _say_no_development(unit)
    dev_rows = len(pools or pairs.dev or ())
    print(f"{loaded.name}: {pairs.rows:,} pairs, {dev_rows:,} {unit} for development", file=sys.stderr)
    evaluator: Evaluators | None = None
    if pools:
        evaluator = RerankingEvaluator(pools, name="dev")
    elif pairs.dev is not None:
        evaluator = pair_classification(pairs.dev)
    result = train_cross_encoder(
        loaded,
        pairs.stages,
        arguments.out,
        model=arguments.model,
        tiny=arguments.tiny,
        evaluator=evaluator,
        evaluation=arguments.evaluation,
        on_leak=arguments.on_leak,
        resume=options.resume,
        overwrite=options.overwrite,
        command=arguments.command,
        provenance=_sources(options, {"data": (), "dev": (), "check_leak": arguments.evaluation}),
        load_options=arguments.load_options,
        calibration=pairs.calibration,
    )
    if result.pair_filter is not None:
        threshold = result.pair_filter
        print(
            f"calibrated on {threshold.pairs:,} held-out pairs: threshold {threshold.threshold:.3f}, precision "
            f"{threshold.precision:.3f}, recall {threshold.recall:.3f} if half of the pairs are translations",
            file=sys.stderr,
        )
    return _summary(result, "average precision" if loaded.strategy == FILTER else "acc@1")


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
        names: Option → names of all data sets that its specs gave, in order; empty if its specs give no data sets.
    """
    from st_xling.data.spec import paired_languages, parse_data_spec

    sources: list[dict[str, Any]] = []
    for name, set_names in names.items():
        specs = [spec for spec in getattr(options, name) if spec != "none"]
        remaining = list(set_names)
        # A phrasebook gives a set for each of its languages, other specs of several are one set.
        counts: list[int] = []
        for spec in specs:
            is_phrasebook = spec.startswith("phrasebook")
            count = len(paired_languages(parse_data_spec(spec))) if is_phrasebook else 1
            counts.append(count)
        if len(specs) == 1:
            counts = [len(remaining)]
        is_certain = sum(counts) == len(remaining)
        for spec, count in zip(specs, counts):
            names_of_spec = remaining[:count] if is_certain else []
            sources.append({"option": name, "spec": spec, "names": names_of_spec})
            remaining = remaining[count:]
    return sources
