"""``st-xling train``: train an encoder, an adapter, a retriever or a cross-encoder by a recipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.keep import update_model_card
from st_xling.cli.model_options import model_options
from st_xling.cli.options import argument, option, write_results
from st_xling.utils.choices import Pooling
from st_xling.utils.io import read_json_object

if TYPE_CHECKING:
    from st_xling.data.reranking.pools import CandidatePools
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.training.run import OnLeak

MEASURES = {"encoder": "accuracy", "retriever": "MRR@100", "cross-encoder": "acc@1"}
"""Kind of recipe → measure by which a checkpoint is chosen."""

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
    **dict.fromkeys(("dev_share", "test_share"), ("cross-encoder",)),
}
"""Options that not every kind of recipe takes → the kinds that do."""

KEYS = {
    **{name: f"training.{name}" for name in ("max_steps", "mini_batch_size", "learning_rate", "pivot")},
    **{name: f"training.{name}" for name in ("eval_steps", "seed", "prompt_name")},
    **{"epochs": "training.num_train_epochs", "batch_size": "training.per_device_train_batch_size"},
    **{"warmup": "training.warmup_steps", "prompt": "training.prompts"},
    **{"max_length": "model.max_length", "pooling": "model.pooling", "layer": "adapter.layer"},
    **{"teacher": "teacher.model", "teacher_prompt": "teacher.prompt"},
    "mine_negatives": "negatives.count",
    "encoders": "retrieval.encoders",
}
"""Options → keys of the recipe that they set."""

RECIPE = "In place of the recipe's values"
CROSS_ENCODER, ADAPTER, RETRIEVER = "Recipes of cross-encoders", "Recipes of adapters", "Recipes of retrievers"


@app.command("train", cls=Command)
def train(
    context: typer.Context,
    recipe: str | None = argument("RECIPE", "Name of a recipe, or path of a YAML file."),
    model: str | None = option(
        "--model",
        metavar="MODEL",
        help="Hub id or folder of the model to start from; or tiny: a small one of random weights, built from the "
        "data (required).",
    ),
    data: list[str] | None = option(
        "--data",
        metavar="SPEC",
        help="Parallel text: xx-yy=PATH (TSV, CSV, JSON, Parquet, TMX), xx-yy=SOURCE,TARGET, Hub id or "
        "phrasebook:…; of retrievers and cross-encoders see below (required, repeatable).",
    ),
    out: Path | None = option("--out", metavar="DIR", help="Folder for the model and its training (required)."),
    dev: list[str] | None = option(
        "--dev", metavar="SPEC", help="Development text, or none (default: 2 % of --data, held out) (repeatable)."
    ),
    check_leak: list[str] | None = option(
        "--check-leak", metavar="EVAL", help="Also search --data for this test text (repeatable)."
    ),
    resume: bool = option("--resume", default=False, help="Resume from the last checkpoint in --out."),
    overwrite: bool = option("--overwrite", default=False, help="Replace an earlier run in --out."),
    json: Path | None = opts.JSON,
    list_recipes: bool = option("--list", default=False, help="List the recipes with their kinds and summaries."),
    print_recipe: bool = option("--print", default=False, help="Print the recipe, to be edited."),
    mono: list[str] | None = option(
        "--mono",
        metavar="XX=PATH",
        panel="Data",
        help="Text of one language: to encoders running text for the loss mlm, two lines a pair; to retrievers "
        "lines, passages (.jsonl) or phrasebook (repeatable).",
    ),
    pivot: str | None = option(
        "--pivot",
        metavar="CODE",
        panel="Data",
        help="Language that becomes the target side of every pair that has it, or none (default: en).",
    ),
    fail_on_leak: bool = option(
        "--fail-on-leak", panel="Data", default=False, help="Stop if --data share text with dev or test text."
    ),
    drop_leaks: bool = option("--drop-leaks", panel="Data", default=False, help="Drop such rows, and report them."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    stream: bool = option(
        "--stream",
        panel="Data",
        default=False,
        help="Read --data as needed, for more than fits into memory; needs --max-steps.",
    ),
    tiny: list[str] | None = option(
        "--tiny",
        metavar="KEY=VALUE",
        panel="Model",
        help="Shape of the model tiny: layers, hidden_size, vocabulary, … (repeatable).",
    ),
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
    set: list[str] | None = option(
        "--set",
        metavar="KEY=VALUE",
        panel=RECIPE,
        help="Any key of the recipe, such as losses.tlm.weight=0.5, and any training argument of "
        "sentence-transformers, such as training.report_to=wandb (repeatable).",
    ),
    epochs: float | None = option("--epochs", panel=RECIPE, help="Passes over --data."),
    max_steps: int | None = option("--max-steps", panel=RECIPE, help="Steps, instead of epochs."),
    learning_rate: float | None = option("--learning-rate", panel=RECIPE, help="Peak learning rate."),
    warmup: float | None = option(
        "--warmup", panel=RECIPE, help="Share of the steps in which the learning rate rises."
    ),
    eval_steps: int | None = option("--eval-steps", panel=RECIPE, help="Steps between two evaluations on --dev."),
    seed: int | None = option("--seed", panel=RECIPE, help="Seed of weights, dropout and order."),
    batch_size: int | None = option("--batch-size", panel=RECIPE, help="Pairs per step."),
    mini_batch_size: int | None = option(
        "--mini-batch-size", panel=RECIPE, help="Rows encoded at a time, for large batches in little memory."
    ),
    lora: bool = option(
        "--lora",
        panel=RECIPE,
        default=False,
        help="Train LoRA adapters, merged at the end (--set training.lora.rank=8 …).",
    ),
    lora_keep: bool = option(
        "--lora-keep", panel=RECIPE, default=False, help="Train LoRA adapters, and save them as adapters."
    ),
    prompt: str | None = option(
        "--prompt",
        panel=RECIPE,
        help="Text before each sentence, such as 'query: ', saved with the model. One for each column: --set "
        '\'training.prompts={source: "query: ", target: "passage: "}\'.',
    ),
    prompt_name: str | None = option("--prompt-name", panel=RECIPE, help="One of the model's own prompts."),
    precision: Literal["fp32", "bf16", "fp16"] | None = option(
        "--precision", panel=RECIPE, help="Type of numbers to train in."
    ),
    max_length: int | None = option(
        "--max-length",
        panel=RECIPE,
        help="Maximum number of tokens of a text (default: the model's own; of a bare one the recipe's).",
    ),
    pooling: Pooling | None = option(
        "--pooling",
        panel=RECIPE,
        help="How token states become the embedding of a sentence (default: as --max-length).",
    ),
    mine_negatives: int | None = option(
        "--mine-negatives",
        panel=RECIPE,
        help="Hard negatives of each pair for the loss translation_ranking, mined in --data by the model before "
        "training (default: 0).",
    ),
    teacher: str | None = option(
        "--teacher", metavar="MODEL", panel=RECIPE, help="Hub id or folder of the encoder to learn from (distill)."
    ),
    teacher_prompt: str | None = option(
        "--teacher-prompt", panel=RECIPE, help="Text before each sentence of the teacher (default: its own)."
    ),
    cache: Path | None = option(
        "--cache",
        metavar="DIR",
        panel=RECIPE,
        help="Folder for sentence embeddings of an adapter's encoder, or of a teacher (default: in the Hub cache).",
    ),
    dev_share: float | None = option(
        "--dev-share", panel=CROSS_ENCODER, help="Share of articles or queries held out (default: 0.1)."
    ),
    test_share: float | None = option("--test-share", panel=CROSS_ENCODER, help="Share excluded, for a later test."),
    layer: int | None = option("--layer", panel=ADAPTER, help="Layer of the encoder, from 1 (default: the recipe's)."),
    sweep: bool = option(
        "--sweep", panel=ADAPTER, default=False, help="Train on every layer, print a table, save the best."
    ),
    parallel: list[str] | None = option(
        "--parallel", metavar="SPEC", panel=RETRIEVER, help="Parallel text, as --data of other recipes (repeatable)."
    ),
    encoders: Literal["shared", "separate"] | None = option(
        "--encoders", panel=RETRIEVER, help="One for both queries and passages, or one each (default: the recipe's)."
    ),
) -> None:
    """Train an encoder, adapter, retriever or cross-encoder by a recipe.

    Saves a plain sentence-transformers model, with its card. st-xling train RECIPE --print prints a recipe with its
    values, to be edited and given as a file.

    \b
    recipes:
      encoders        tr, labse, dap, dap-released, tr-tlm, amber,            parallel text
                      semacl, langcl, semacl-langcl, mexma, distill
      adapters        sf                                                      parallel text
      retrievers      ir, ir-semacl, ir-langcl, ir-semacl-langcl              questions with passages, parallel text
      cross-encoders  xpi; xpr-merged, xpr-cascade, xpr-mixed                 parallel text; questions with passages

    \b
    examples:
      st-xling train --list
      st-xling train dap --print > my-recipe.yaml

    \b
    on the phrasebook, which is built in:
      st-xling train dap --model tiny --data phrasebook:de,fr --out my-encoder --epochs 2
      st-xling train sf --model tiny --data 'zh-vi=phrasebook?size=2000' --out my-adapter
      st-xling train ir-semacl --model tiny --data queries=phrasebook --parallel phrasebook:de --out my-retriever
      st-xling train xpr-mixed --model tiny --data 'en=phrasebook?size=300' --data 'zh=phrasebook?size=300' \\
          --out my-reranker

    \b
    on files, from models of the Hub:
      st-xling train dap --model xlm-roberta-base --data de-en=pairs.tsv --check-leak tatoeba/v1 --out my-encoder
      st-xling train tr --model intfloat/multilingual-e5-small --prompt 'query: ' \\
          --set training.early_stopping_patience=3 --data de-en=pairs.tsv --out my-encoder
      st-xling train xpr-mixed --model bert-base-multilingual-cased --data en=xquad.en.json --data zh=xquad.zh.json \\
          --out my-reranker
      st-xling train distill --teacher sentence-transformers/all-mpnet-base-v2 --model xlm-roberta-base \\
          --data de-en=pairs.tsv --out my-encoder
      st-xling train my-recipe.yaml --model xlm-roberta-base --data de-en=pairs.tsv --out my-encoder

    Cross-encoders: --data xx=PATH is questions with passages of a language, in SQuAD's form or as labeled pairs, or
    xx=phrasebook; of xpi parallel text. --dev has the same form (default: --dev-share of --data).

    Retrievers: --data queries=PATH is queries with passages (and hard negatives: columns negative_1, negative_2, …, or
    ?columns=query,answer,negative), a folder in the layout of BEIR, Mr.TyDi (?negatives=1) or MIRACL, or
    queries=phrasebook?size=2000. --dev xx=DIR is such a folder, or xx=phrasebook, to choose the best checkpoint by
    (default: none, the last one is saved).

    SPEC is [NAME=]LOCATION[?OPTION=VALUE&...], as in every command: zh_Hant-en=pairs.tsv, pt_BR=texts.txt?size=8000.
    NAME is one language or two; after a hyphen a region is in capitals. phrasebook:de,fr?size=8000&split=train&seed=0
    pairs each language with English; --dev reads its development split and --check-leak its test split, unless ?split=
    names another. Quote specs that contain ? or &.
    """
    if list_recipes or print_recipe:
        return _show_recipes(context, recipe if print_recipe else None)
    required = {"RECIPE": recipe, "--model": model, "--data": data, "--out": out}
    if missing := [name for name, value in required.items() if not value]:
        raise ValueError(f"missing {', '.join(missing)}; see st-xling train --help")
    assert recipe is not None and model is not None and out is not None and data is not None
    from st_xling.training.recipe_files import recipe_kind

    kind = recipe_kind(recipe)
    for name, kinds in TAKEN_BY.items():
        if kind not in kinds and context.params[name]:
            raise ValueError(
                f"--{name.replace('_', '-')} is for {' and '.join(f'{kind}s' for kind in kinds)}: got the recipe of "
                f"{'an' if kind[0] in 'ae' else 'a'} {kind} {recipe}; remove it."
            )
    for one, other in (("fail_on_leak", "drop_leaks"), ("lora", "lora_keep")):
        if context.params[one] and context.params[other]:
            raise ValueError(f"--{one.replace('_', '-')} and --{other.replace('_', '-')} exclude each other.")
    from st_xling.utils import distributed

    distributed.init_distributed()
    lists = ("data", "dev", "check_leak", "mono", "tiny", "set", "parallel")
    arguments = SimpleNamespace(**{**context.params, **{name: context.params[name] or [] for name in lists}})
    arguments.line, arguments.loading = context.obj.line, model_options(context, ("revision", "trust_remote_code"))
    if kind == "adapter":
        summary = _train_adapter(arguments)
    else:
        runs = {"encoder": _train_encoder, "retriever": _train_retriever, "cross-encoder": _train_cross_encoder}
        result = runs[kind](arguments)
        best = "" if result.best is None else f", best development {MEASURES[kind]} {100 * result.best:.1f} %"
        summary = f"{result.steps} steps in {result.seconds:.0f} s{best}; the model is in {result.folder}"
    if distributed.is_main():
        update_model_card(out)
        print(summary)
        write_results(context, read_json_object(out / "results.json"))


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


def _run_options(arguments: SimpleNamespace) -> dict[str, Any]:
    """Return the options that every kind of training takes, after checking the output folder and ``--tiny``."""
    from st_xling.training.run import check_model, check_tiny
    from st_xling.training.run_folder import RunFolder

    check_model(arguments.model, **arguments.loading)
    names = ("data", "dev", "check_leak", "parallel", "mono")
    RunFolder(
        arguments.out,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        start=arguments.model,
        inputs=[getattr(arguments, name, None) for name in names],
    ).check()
    on_leak: OnLeak = "fail" if arguments.fail_on_leak else "drop" if arguments.drop_leaks else "report"
    return {
        "out": arguments.out,
        "model": arguments.model,
        "load_options": arguments.loading,
        "tiny": check_tiny(_pairs(arguments.tiny, "--tiny")),
        "on_leak": on_leak,
        "resume": arguments.resume,
        "overwrite": arguments.overwrite,
        "command": arguments.line,
    }


def _train_encoder(arguments: SimpleNamespace) -> Any:
    """Train an encoder. Each process reads the data, and all stop if one cannot."""
    from st_xling.training import train as train_encoder
    from st_xling.utils import distributed

    options, picture = distributed.run_on_all(lambda: _encoder_options(arguments))
    result = train_encoder(**options, begin=picture.begin)
    if distributed.is_main():
        picture.end(result.model, result.folder)
    return result


def _encoder_options(arguments: SimpleNamespace) -> tuple[dict[str, Any], TrainingPicture]:
    """Read the data, and return the arguments of :func:`st_xling.training.train` and the picture to draw."""
    from st_xling.data import load_evaluation_specs
    from st_xling.data.retrieval.training_text import read_all_others
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.training import load_recipe

    options = _run_options(arguments)
    recipe = load_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=overrides(arguments))
    _check_teacher(recipe, arguments)
    data, dev = _read_data(arguments)
    options |= {
        "recipe": recipe,
        "data": data,
        "cache": arguments.cache,
        "mono": read_all_others(arguments.mono, skip_bad_lines=arguments.skip_bad_lines),
        "evaluator": TatoebaEvaluator(dev, name="dev") if dev else None,
        "evaluation": load_evaluation_specs(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines),
    }
    names = {"data": data, "dev": dev, "mono": options["mono"], "check_leak": options["evaluation"]}
    options["provenance"] = _sources(arguments, names)
    return options, TrainingPicture(dev or ({} if arguments.stream else data), recipe.name)


def _check_teacher(recipe: Any, arguments: SimpleNamespace) -> None:
    """Check that the teacher can be loaded, and that no output replaces it, before any data are read."""
    from st_xling.training.run import check_model
    from st_xling.utils.paths import check_outputs

    if (teacher := recipe.teacher).model is not None:
        check_outputs({"--json": arguments.json}, [teacher.model])
        check_model(teacher.model, revision=teacher.revision, trust_remote_code=teacher.trust_remote_code)


def _train_adapter(arguments: SimpleNamespace) -> str:
    """Train an adapter, print a table of its layers, and return a one-line summary."""
    from st_xling.data import load_evaluation_specs
    from st_xling.evaluation import PrecisionEvaluator
    from st_xling.evaluation.pictures import SENTENCE_PICTURE, draw_sentence_vectors
    from st_xling.models.view import rebuilt
    from st_xling.training.adapter import layer_table, load_adapter_recipe, train_adapter

    options = _run_options(arguments)
    recipe = load_adapter_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=overrides(arguments))
    data, dev = _read_data(arguments)
    evaluator = PrecisionEvaluator(dev, name="dev") if dev else None
    evaluation = load_evaluation_specs(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines)
    options |= {"evaluator": evaluator, "evaluation": evaluation, "sweep": arguments.sweep, "cache": arguments.cache}
    options["provenance"] = _sources(arguments, {"data": data, "dev": dev, "check_leak": evaluation})
    result = train_adapter(recipe, data, **options)
    models = {"before": rebuilt(result.model, list(result.model)[:2]), f"after {recipe.name}"[:40]: result.model}
    draw_sentence_vectors(models, dev or data, result.folder / SENTENCE_PICTURE)
    if evaluator is not None:
        print(layer_table(result.layers, evaluator.at))
        print(evaluator.signature)
    seconds, best = result.seconds, result.chosen
    return (
        f"{result.encoded:,} texts encoded in {seconds['encoding']:.1f} s, {len(result.layers)} x {best.fit.steps} "
        f"steps in {seconds['training']:.1f} s; the model of layer {best.label} is in {result.folder}"
    )


def _train_retriever(arguments: SimpleNamespace) -> Any:
    from st_xling.data import load_data_specs, load_evaluation_specs
    from st_xling.data.columns import negative_columns
    from st_xling.data.retrieval import load_query_passage_specs, load_retrieval_specs
    from st_xling.data.retrieval.training_text import read_all_others
    from st_xling.evaluation.retrieval import RetrievalEvaluator
    from st_xling.training.retriever import RetrievalSources, load_retrieval_recipe, train_retrieval

    options = _run_options(arguments)
    recipe = load_retrieval_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=overrides(arguments))
    skip = {"skip_bad_lines": arguments.skip_bad_lines}
    sources = RetrievalSources(
        queries=load_query_passage_specs(arguments.data, **skip),
        parallel=load_data_specs(arguments.parallel, identify=True, **skip) if arguments.parallel else {},
        others=read_all_others(arguments.mono, **skip),
    )
    for role in ("queries", "parallel", "others"):
        for name, part in getattr(sources, role).items():
            negatives = len(negative_columns(part.column_names))
            more = f", each with {negatives} hard negatives" if negatives else ""
            label, unit = ("mono", "sentences") if role == "others" else (role, "pairs")
            print(f"{label} {name}: {len(part):,} {unit}{more}", file=sys.stderr)
    evaluator = None  # without development sets the last checkpoint is saved
    if dev := _dev_specs(arguments.dev):
        evaluator = RetrievalEvaluator(load_retrieval_specs(dev, split="dev", **skip), name="dev")
    evaluation = load_evaluation_specs(arguments.check_leak, **skip)
    text = {"data": sources.queries, "parallel": sources.parallel, "mono": sources.others}
    options["provenance"] = _sources(arguments, {**text, "dev": (), "check_leak": evaluation})
    options |= {"evaluator": evaluator, "evaluation": evaluation}
    return train_retrieval(recipe, sources, **options)


def _train_cross_encoder(arguments: SimpleNamespace) -> Any:
    from st_xling.data.reranking.specs import load_judging_texts, load_pair_specs, load_xpi_specs
    from st_xling.data.reranking.strategies import STRATEGIES
    from st_xling.training.reranker import XPI, load_cross_encoder_recipe, train_cross_encoder

    options = _run_options(arguments)
    recipe = load_cross_encoder_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=overrides(arguments))
    dev = _dev_specs(arguments.dev)
    if recipe.strategy == XPI:
        pairs = load_xpi_specs(
            arguments.data,
            dev=dev or None,
            size=recipe.sentences.size,
            negatives_per_positive=recipe.negatives.per_positive,
            mono_positives=recipe.sentences.mono_positives,  # type: ignore[arg-type]
            skip_bad_lines=arguments.skip_bad_lines,
        )
        options["stages"] = [pairs.train]
        options["evaluator"] = _pool_evaluator(recipe.name, len(pairs.train), None if dev == [] else pairs.dev)
    else:
        shares = {"dev_share": arguments.dev_share, "test_share": arguments.test_share}
        data = load_pair_specs(
            arguments.data,
            dev=dev or None,
            negatives_per_positive=recipe.negatives.per_positive,
            hard_negatives=recipe.negatives.hard,
            # Not the recipe's seed: what is held out stays the same, whatever the seed of the training.
            **({"dev_share": 0.0} if dev == [] else {})
            | {key: share for key, share in shares.items() if share is not None},
        )
        options["stages"] = STRATEGIES[recipe.strategy](data.train, seed=recipe.training.seed)
        options["evaluator"] = _pool_evaluator(recipe.name, len(data.train), data.dev)
    evaluation = load_judging_texts(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines)
    names = {"data": (), "dev": (), "check_leak": evaluation}
    options["provenance"] = _sources(arguments, names)
    return train_cross_encoder(recipe, evaluation=evaluation, **options)


def _pool_evaluator(name: str, pairs: int, pools: CandidatePools | None) -> Any:
    from st_xling.evaluation import RerankingEvaluator

    print(f"{name}: {pairs:,} pairs, {len(pools or ()):,} queries for development", file=sys.stderr)
    return None if not pools else RerankingEvaluator(pools, name="dev")


def _dev_specs(specs: list[str]) -> list[str] | None:
    """Return the specs of development text: ``[]`` for ``none``, ``None`` if the option is not given."""
    if specs != ["none"] and "none" in specs:
        raise ValueError(f"--dev none means no development pairs: got {', '.join(specs)}; leave one out.")
    return [] if specs == ["none"] else specs or None


def _read_data(arguments: SimpleNamespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load training and development data, held out if none is given, and print the number of pairs to stderr."""
    from st_xling.data import load_data_specs
    from st_xling.data.holdout import hold_out, hold_out_streams

    data = load_data_specs(
        arguments.data, skip_bad_lines=arguments.skip_bad_lines, stream=arguments.stream, identify=True
    )
    specs = _dev_specs(arguments.dev)
    dev: dict[str, Any] = {}
    if specs:
        dev = load_data_specs(specs, split="dev", skip_bad_lines=arguments.skip_bad_lines)
    elif specs is None:
        data, dev = hold_out_streams(data) if arguments.stream else hold_out(data)
    for name, part in data.items():
        count = "streamed" if arguments.stream else f"{len(part):,} pairs"
        print(f"{name}: {count}, {len(dev.get(name, [])):,} for development", file=sys.stderr)
    return data, dev


def _sources(arguments: SimpleNamespace, names: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """Return the provenance for ``run.json``: every spec with the names of its data sets.

    Args:
        arguments: Of the command line.
        names: Option → names of all data sets that its specs gave, in order; none where a spec has no set of its own.
    """
    from st_xling.data.read import parse_data_spec

    sources = []
    for name, sets in names.items():
        specs, left = [spec for spec in getattr(arguments, name) or () if spec != "none"], list(sets)
        # A phrasebook gives a set for each of its languages, other specs of several are one set.
        counts = [len(parse_data_spec(spec).listed) if spec.startswith("phrasebook") else 1 for spec in specs]
        if len(specs) == 1 or counts.count(0) == 1:
            counts = [count if count and len(specs) > 1 else len(left) - sum(counts) + count for count in counts]
        known = sum(counts) == len(left)
        for spec, count in zip(specs, counts):
            sources.append({"option": name, "spec": spec, "names": left[:count] if known else []})
            left = left[count:]
    return sources


def overrides(arguments: SimpleNamespace) -> dict[str, Any]:
    """Return the recipe keys that the flags set, dotted; ``--set`` comes last."""
    values = {key: getattr(arguments, option) for option, key in KEYS.items()}
    if arguments.precision is not None:
        values |= {f"training.{kind}": arguments.precision == kind for kind in ("bf16", "fp16")}
    values["training.lora.merge"] = True if arguments.lora else False if arguments.lora_keep else None
    return {key: value for key, value in values.items() if value is not None} | _pairs(arguments.set, "--set")


def _pairs(texts: Sequence[str], flag: str) -> dict[str, Any]:
    from st_xling.training.recipe_files import read_yaml

    pairs: dict[str, Any] = {}
    for text in texts:
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
