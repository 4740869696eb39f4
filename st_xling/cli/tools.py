"""``st-xling demo``, ``leak``, ``slim``, ``postprocess``, ``reproduce``, ``card`` and ``push``."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import EVALUATE, LOOK_UP, PUBLISH, TRAIN, Command, app, check_model, with_options
from st_xling.cli.model_options import CENTERS, EncoderOptions
from st_xling.cli.options import argument, flag, given, listed, option, options_of, repeatable, required, whole_numbers
from st_xling.cli.results import new_card_writer, resumable, write_results
from st_xling.cli.rules import Given, Inapplicable
from st_xling.utils.io import read_json_object
from st_xling.utils.paths import shown_command

if TYPE_CHECKING:
    from st_xling.hub import DatasetReport, PushReport

ENCODER_ARGUMENT = argument("MODEL", "Hub id or folder of an encoder, which is not changed.")

TEXTS_PANEL = "Texts of the card"
DATASET_PANEL = "For a file of pairs"
STEPS_PANEL = "Steps"
step_flag = partial(flag, panel=STEPS_PANEL)
step_option = partial(option, panel=STEPS_PANEL)
dataset_option = partial(option, panel=DATASET_PANEL)


def _is_model(given: Given) -> str:
    """Return why options of a data set do not apply: a model is published; empty if it is a file of pairs."""
    model = given.values["model"]
    if not model.is_dir():
        return ""
    return f"{model} is the folder of a model, whose license and languages st-xling card {model} sets"


PUSH_RULES = (
    Inapplicable(("source_language", "target_language", "license", "results", "overwrite", "out"), _is_model),
)


@dataclass(frozen=True)
class NewModelOptions:
    """Options of ``slim`` and ``postprocess``, by the names of the library's parameters."""

    out: str = required("--out DIR", "Folder of the new model.")
    skip_bad_lines: bool = opts.SKIP_BAD_LINES
    batch_size: int | None = opts.BATCH_SIZE
    overwrite: bool = opts.OVERWRITE


@app.command("demo", cls=Command, rich_help_panel=LOOK_UP)
def demo(
    context: typer.Context,
    out: Path = option("--out DIR", "Folder for the model (default: xling-demo).", default=Path("xling-demo")),
    seed: int = option("--seed", "Seed of text, weights and training (default: 0).", default=0),
    overwrite: bool = opts.OVERWRITE,
) -> None:
    """Train, evaluate and use a tiny encoder, offline, in a few minutes.

    Trains a tiny encoder for five languages on the phrasebook, evaluates it before and after, mines with it, and saves
    it with its card and a picture. Needs no network, no files and no GPU.

    \b
    examples:
      st-xling demo
      st-xling demo --out my-demo --seed 1 --json figures.json
    """
    from st_xling.demo import demo_table, run_demo, usage_lines

    results = run_demo(out, seed=seed, overwrite=overwrite)
    print(demo_table(results))
    picture = Path("pictures", "cosines.png")
    files = f"The model, results.json and {picture}" if (out / picture).is_file() else "The model and results.json"
    print(f"\n{files} are in {out}. Use it:\n")
    print(usage_lines(out, results["example"]))
    write_results(context, results)


@app.command("leak", cls=Command, rich_help_panel=EVALUATE)
def leak(
    context: typer.Context,
    train: list[str] = required("--train SPEC", "Training text, as train --data takes it (repeatable)."),
    eval: list[str] = required("--eval EVAL", "Evaluation text, in a form above (repeatable)."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    stream: bool = flag("--stream", "Read --train as needed, for more than fits into memory."),
    fail_on_leak: bool = flag("--fail-on-leak", "Exit with status 2 if any text is shared."),
) -> None:
    """Look for evaluation text in training data.

    Counts the evaluation sentences that training data contain on either side. Case, spaces and punctuation are ignored;
    near duplicates are not found. Evaluation text is parallel text, a Tatoeba folder, a BUCC folder or prefix, a .txt
    file of sentences, or phrasebook:…, of which the test split is read.

    \b
    examples:
      st-xling leak --train phrasebook:de --eval phrasebook:de
      st-xling leak --train de-en=pairs.tsv --eval tatoeba/v1 \\
          --eval bucc2018/de-en/de-en.test
    """
    from st_xling.data import leaks, load_data_specs, load_evaluation_specs, refuse_leaks

    data = load_data_specs(train, skip_bad_lines=skip_bad_lines, stream=stream)
    report = leaks(data, load_evaluation_specs(eval, skip_bad_lines=skip_bad_lines), progress=True)
    print(report.table())
    write_results(context, report.as_dict())
    if fail_on_leak:
        refuse_leaks(report)


@app.command("slim", cls=with_options(NewModelOptions, EncoderOptions), rich_help_panel=TRAIN)
def slim(
    context: typer.Context,
    model: str = ENCODER_ARGUMENT,
    languages: list[str] = listed("--languages", "Languages that the model keeps, such as de,en.", default=...),
    data: list[str] = required("--data SPEC", "Their text: xx=FILE, xx-yy=PAIRS or phrasebook:xx (repeatable)."),
    min_count: int | None = option("--min-count", "Drop tokens that occur less often (default: 1)."),
) -> None:
    """Cut an encoder's vocabulary to some languages: the same embeddings, a smaller model.

    Keeps the tokens that text of these languages uses, drops all others with their rows of the word embeddings, and
    compares the two models.

    \b
    examples:
      st-xling slim intfloat/multilingual-e5-small --languages de,en \\
          --data de-en=pairs.tsv --out small
      st-xling slim my-encoder --languages de,en --data de=news.de.txt.gz \\
          --data en=news.en.txt.gz --min-count 2 --out small
      st-xling slim my-encoder --languages de,en --data phrasebook:de \\
          --layer 2 --out small

    Text is parallel as train takes it, a text a line, or JSON lines with "text". Use much of it, of many kinds: tokens
    that do not occur in it are removed, and words that need them are spelled in smaller pieces.
    """
    from st_xling.data.texts_by_language import check_language_texts

    check_language_texts(data, languages or (), skip_bad_lines=context.params["skip_bad_lines"])  # before torch
    from st_xling.models.slim import slim_model

    new_model = options_of(context, NewModelOptions)
    report = slim_model(
        model,
        data,
        new_model.out,
        languages=languages or (),
        **given(min_count=min_count),
        skip_bad_lines=new_model.skip_bad_lines,
        overwrite=new_model.overwrite,
        batch_size=new_model.batch_size,
        progress=True,
        command=shown_command(context.obj.line),
        complete=new_card_writer(new_model.out),
        **options_of(context, EncoderOptions).given(),
    )
    print(report.table())
    write_results(context, {"slim": report.content})


@app.command("merge", cls=with_options(EncoderOptions), rich_help_panel=TRAIN)
def merge(
    context: typer.Context,
    start: str = argument("START", "Hub id or folder of the model before training, which is not changed."),
    model: str = argument("MODEL", "Hub id or folder of the trained model, which is not changed."),
    data: list[str] = required("--data SPEC", "Development text, see below (repeatable)."),
    out: str = required("--out DIR", "Folder of the merged model."),
    weights: list[str] | None = listed("--weights", "Shares of MODEL to try (default: 0,0.25,0.5,0.75,1)."),
    most_lost: float | None = option("--most-lost POINTS", "Points that may be lost at most (default: 0.5)."),
    old_languages: list[str] | None = listed("--old-languages", "Languages of --data that are kept, not learned."),
    overwrite: bool = opts.OVERWRITE,
) -> None:
    """Merge a trained encoder with its start: translation gained, and little of what it could do lost.

    Mixes the weights of both, START's first, at several shares of MODEL, measures each on development text, and saves
    the mixture with the most translation among those that lose at most --most-lost points in any retrieval set, or in
    the mean of the old languages. Writes a picture, retrieval against translation with a point for each share.

    \b
    examples:
      st-xling train realign --model intfloat/multilingual-e5-small \\
          --prompt 'query: ' --data de-en=pairs.tsv \\
          --keep-like en=questions.txt --out my-realigned
      st-xling merge intfloat/multilingual-e5-small my-realigned \\
          --prompt 'query: ' --data de-en=new-pairs.tsv \\
          --data de=mlqa-de --out my-merged
      st-xling merge intfloat/multilingual-e5-small my-realigned \\
          --prompt 'query: ' --data de-en=new-pairs.tsv \\
          --data fr-en=more.jsonl.gz --old-languages fr --most-lost 1 \\
          --out my-merged

    --data is pairs with English, xx-en=PATH or a folder of Tatoeba's files, and passages with queries, xx=DIR or
    xx=FILE.json, as compare takes them; phrasebook:… has both. Both models must have the same modules, vocabulary,
    prompts, length and similarity; --prompt and --max-length set them for both. Merged is in float32; --dtype is the
    type that the result computes and is saved in. Run the same command again to resume. Needs the extra: pip install
    "st-xling\\[merge]".
    """
    shares: list[float] | None = None
    if weights:
        try:
            shares = [float(weight) for weight in weights]
        except ValueError as error:
            raise ValueError(f"--weights are numbers from 0 to 1: got {','.join(weights)}.") from error
    from st_xling.evaluation.compare import load_comparison_data, merge_models

    with resumable():
        report = merge_models(
            start,
            model,
            load_comparison_data(data),
            out,
            **given(weights=shares, most_lost=most_lost, old_languages=old_languages),
            overwrite=overwrite,
            progress=True,
            command=shown_command(context.obj.line),
            complete=new_card_writer(out),
            **options_of(context, EncoderOptions).given(),
        )
    print(report.table())
    write_results(context, {"merge": report.content})


@app.command("postprocess", cls=with_options(NewModelOptions, EncoderOptions), rich_help_panel=TRAIN)
def postprocess(
    context: typer.Context,
    model: str = ENCODER_ARGUMENT,
    data: list[str] = required("--data SPEC", "Parallel text; 2 % to a fifth of it is held out (repeatable)."),
    center: model_opts.CenterBy | None = step_option("--center", "Subtract the mean (default: as the model has)."),
    remove_languages: bool = step_flag("--remove-languages", "Remove the directions of the languages' means."),
    whiten: bool = flag("--whiten", "Scale all directions to equal variance.", panel=STEPS_PANEL),
    dim: int | None = step_option("--dim", "Number of dimensions to keep, those of most variance."),
    int8: bool = step_flag("--int8", "Also write int8_ranges.json, for quantize_embeddings."),
    eval: list[str] | None = option("--eval SPEC", "Evaluate on these pairs instead (repeatable)."),
) -> None:
    """Fit centering, removal of languages, whitening, fewer dimensions or int8 on text.

    Fits the steps on the sentence embeddings of parallel text, evaluates translation retrieval before and after each on
    held-out pairs, and saves a stock model with them at its end. Nothing is trained. --center joint subtracts one mean
    of all languages, --center language each language's own, which encode(texts, task='de') takes.

    \b
    examples:
      st-xling postprocess my-encoder --data de-en=pairs.tsv \\
          --center language --out centered
      st-xling postprocess my-encoder --data de-en=pairs.tsv \\
          --remove-languages --dim 8 --int8 --out small-vectors
    """
    from st_xling import evaluation

    new_model = options_of(context, NewModelOptions)
    center_by = None
    if center is not None:
        center_by = CENTERS[center]
    content = evaluation.postprocess(
        model,
        data,
        new_model.out,
        center=center_by,
        remove_languages=remove_languages,
        whiten=whiten,
        dim=dim,
        int8=int8,
        evaluate_on=eval or (),
        skip_bad_lines=new_model.skip_bad_lines,
        overwrite=new_model.overwrite,
        batch_size=new_model.batch_size,
        progress=True,
        command=shown_command(context.obj.line),
        complete=new_card_writer(new_model.out),
        **options_of(context, EncoderOptions).given(),
    )
    print(evaluation.postprocess_table(content), content["signature"], sep="\n")
    write_results(context, {"postprocess": content})


@app.command("reproduce", cls=Command, rich_help_panel=EVALUATE)
def reproduce(
    context: typer.Context,
    paper: str = argument("PAPER", "dap, sf, amber, ir, xpr, or a YAML file of the same form."),
    table: list[str] | None = argument("TABLE", "Its number, such as 1 or 'figure 4' (default: all).", default=None),
    scale: Literal["tiny", "small", "paper"] = option(
        "--scale", "Size of data and models, see above (default: tiny).", default="tiny"
    ),
    model: str | None = option("--model MODEL", "Hub id or folder to start from, or one of those above."),
    precision: Literal["bf16", "fp32"] | None = option(
        "--precision", "Type of numbers (default: bf16 where the scale and the processor have it)."
    ),
    seeds: list[str] | None = option("--seeds LIST", "A run each, such as 0,1,2 (default: 0).", callback=whole_numbers),
    rows: list[str] | None = option("--rows LABEL...", "Only these rows, such as TR DAP; 'TR*': all of TR."),
    changes: list[str] = repeatable(
        "--set NAME=VALUE",
        "Replace a setting of the paper's file, such as 'steps=--max-steps 120' (repeatable).",
        panel="In place of the paper's values",
    ),
    data: str | None = option("--data DIR", "Folder of the data (default: $ST_XLING_DATA)."),
    out: Path = option("--out DIR", "Folder (default: xling-reproduce).", default=Path("xling-reproduce")),
    jobs: int = option("--jobs", "Number of steps at a time (default: 1).", default=1),
    overwrite: bool = opts.OVERWRITE,
) -> None:
    """Reproduce a paper's tables, next to the paper's own values.

    Trains and evaluates what the tables of a paper need, each step an ordinary command, and prints them with mean and
    deviation over seeds, tested differences and the paper's own values. Run the same command again to resume; other
    tables share its models.

    \b
    examples:
      st-xling reproduce dap 1 --rows TR DAP --out my-tables
      st-xling reproduce xpr 3 --scale small --data data --model my-encoder \\
          --seeds 0,1,2

    Papers: dap (Li et al. 2023), sf (Huang et al. 2023), amber (Hu et al. 2021), ir (Hu et al. 2023) and xpr (Chen et
    al. 2020). Scales: tiny is the phrasebook, to see that all runs; small real text on two cores; paper the paper's own
    setting, for GPUs. Models: mlm is a small BERT that is pre-trained here by masked words alone (the default below
    paper scale); e5-small the first four layers of multilingual-e5-small, its vocabulary cut; e5-12 all twelve.

    All tables made so far are in DIR/PAPER-SCALE-MODEL-SEEDS.md and .json, with every signature and command.
    """
    from st_xling.reproduce.paper import base_names, load_paper

    seed_numbers = [int(seed) for seed in seeds or ["0"]]
    bases = base_names(paper)
    if model is not None and model not in bases:
        try:
            check_model(model, None)  # each step would fail
        except ValueError as error:
            raise ValueError(f"{error} The models that are made here are {', '.join(bases)}.") from error
    settings = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name:
            raise ValueError(f"--set expects NAME=VALUE, such as 'steps=--max-steps 120', got {change!r}.")
        settings[name] = value
    loaded = load_paper(
        paper,
        table or [],
        rows=rows or (),
        scale=scale,
        model=model,
        seeds=seed_numbers,
        precision=precision,
        changes=settings,
    )
    folder = data or os.environ.get("ST_XLING_DATA")
    loaded.check_data(folder)
    # Only now what needs torch: errors of names are told at once.
    from st_xling.reproduce import reproduce as reproduce_tables
    from st_xling.reproduce.reports import text

    results = reproduce_tables(loaded, out, data=folder, jobs=jobs, overwrite=overwrite)
    print(text(results))
    print(f"\n{out / loaded.file_name}.md", file=sys.stderr)
    write_results(context, results)
    if results["failed"]:
        lines = "\n".join(f"  {name}: {why}" for name, why in results["failed"].items())
        raise ValueError(f"{len(results['failed'])} steps failed; run the same command to try them again:\n{lines}")


@app.command("card", cls=Command, rich_help_panel=PUBLISH)
def card(
    context: typer.Context,
    model: Path = argument("MODEL", "Folder of the model."),
    license: str | None = option("--license ID", "License, as the Hub spells it: apache-2.0, cc-by-4.0, …"),
    data_license: list[str] | None = option("--data-license NAME=ID", "License of a training data set (repeatable)."),
    repo: str | None = option("--repo OWNER/NAME", "Repository of the model on the Hub."),
    languages: list[str] | None = listed("--languages", "Codes, such as de,fr,en (default: those of the data)."),
    base_model: str | None = option("--base-model ID", "Hub id of the model that training started from."),
    title: str | None = option("--title", "Name of the model.", panel=TEXTS_PANEL),
    limits: str | None = option("--limits", "Markdown instead of the generated limits.", panel=TEXTS_PANEL),
) -> None:
    """Write a model's card: results, commands, data, pictures.

    Writes README.md into a model's folder, as the Hub reads it.

    \b
    examples:
      st-xling card my-encoder --license apache-2.0 \\
          --data-license de-en=cc-by-2.0
      st-xling card my-encoder --repo user/my-encoder \\
          --limits "Short sentences only."

    The card is made from the content of the folder: the run's recipe and data, results saved by st-xling evaluate …
    --keep, thresholds, pictures. Options are saved in card.json; remove one by an empty text.
    """
    _check_folder(model)
    licenses = _read_data_licenses(data_license or ())
    # An empty list means that there are none; None leaves them to the training data.
    card_languages = None
    if context.params["languages"] is not None:
        card_languages = languages or ()
    from st_xling.hub import CardOptions, write_card

    options = CardOptions(
        license=license,
        title=title,
        base_model=base_model,
        limits=limits,
        repo_id=repo,
        data_licenses=licenses,
        languages=card_languages,
    )
    path = write_card(model, options=options)
    print(f"the card is {path}")
    write_results(context, {"card": {"path": str(path)}})


def _read_data_licenses(entries: Iterable[str]) -> dict[str, str]:
    """Read the values of ``--data-license``: name of a data set → license."""
    licenses: dict[str, str] = {}
    for entry in entries:
        name, equals, license = entry.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--data-license expects NAME=ID, such as de-en=cc-by-2.0, got {entry!r}.")
        if licenses.setdefault(name, license) != license:
            raise ValueError(
                f"--data-license gives {name} two licenses, {licenses[name]} and {license}: keep one of them."
            )
    return licenses


@app.command("push", cls=with_options(rules=PUSH_RULES), rich_help_panel=PUBLISH)
def push(
    context: typer.Context,
    model: Path = argument("MODEL", "Folder of the model, or a file of pairs to publish as a data set."),
    repo: str = argument("REPO", "user/name on the Hub, created if missing."),
    # Unset is not public: an organization may make its repositories private by default.
    private: bool | None = option("--private", "Make the repository private."),
    dry_run: bool = flag("--dry-run", "Only list the files, or print the card of a data set, without any request."),
    source_language: str | None = dataset_option("--source-language CODE", "Language of the sources, such as de."),
    target_language: str | None = dataset_option("--target-language CODE", "Language of the targets, such as en."),
    license: str | None = option("--license ID", "License of the pairs.", panel=DATASET_PANEL),
    results: Path | None = dataset_option("--results FILE", "JSON of mine, score or align-documents (--json)."),
    overwrite: bool = flag("--overwrite", "Replace a data set that is there.", panel=DATASET_PANEL),
    out: Path | None = dataset_option("--out DIR", "Also put card, picture and data here, to look at."),
) -> None:
    """Publish a model, or a data set of pairs, on the Hub.

    Publishes a model with its card, results, thresholds and pictures in one commit. Log in first: hf auth login.

    \b
    examples:
      st-xling push my-encoder user/my-encoder --dry-run
      st-xling push my-encoder user/my-encoder --private
      st-xling push pairs.tsv user/pairs --source-language de \\
          --target-language en --license cc-by-4.0

    A file of pairs becomes Parquet, with a card that has its languages, size, a histogram of the scores and pairs drawn
    at random; --results adds the model, threshold, filters and command that made it. load_dataset and train --data read
    such a data set.
    """
    report: DatasetReport | PushReport
    if model.is_file():
        report = _push_pairs(
            model,
            repo,
            source_language=source_language,
            target_language=target_language,
            license=license,
            results=results,
            private=private,
            overwrite=overwrite,
            dry_run=dry_run,
            out=out,
        )
        content = [report.card]
        size = f"{report.rows:,} pairs"
    else:
        _check_folder(model)
        from tqdm import tqdm

        from st_xling.hub.push import push_model

        report = push_model(model, repo, private=private, dry_run=dry_run)
        width = max(map(len, report.files))
        content = [f"{path:<{width}}  {tqdm.format_sizeof(count, 'B'):>9}" for path, count in report.files.items()]
        size = f"{len(report.files)} files, {tqdm.format_sizeof(sum(report.files.values()), 'B')}"
    if report.url is None:
        print(*content, f"would go to {report.repo_id}: {size}", sep="\n")
    else:
        print(f"published in {report.repo_id}: {size}", file=sys.stderr)
        print(report.url)
    write_results(context, {"push": dataclasses.asdict(report)})


def _push_pairs(
    pairs: Path,
    repo: str,
    *,
    source_language: str | None,
    target_language: str | None,
    license: str | None,
    results: Path | None,
    private: bool | None,
    overwrite: bool,
    dry_run: bool,
    out: Path | None,
) -> DatasetReport:
    """Publish a file of pairs; languages that are not given are those of ``results``.

    Raises:
        ValueError: If a language or the license is missing.
    """
    if results is not None:
        # mine, score and align-documents write the languages that they were told or have identified.
        facts = _facts_of_pairs(results)
        source_language = source_language or facts.get("source_language")
        target_language = target_language or facts.get("target_language")
    if not (source_language and target_language and license):
        needed = {"--source-language": source_language, "--target-language": target_language, "--license": license}
        missing = [name for name, value in needed.items() if not value]
        cure = f"add {' and '.join(missing)}"
        if missing != ["--license"]:
            cure += ", or --results with what mine, score or align-documents wrote by --json, which has the languages"
        raise ValueError(f"a data set names its languages and its license: {cure}.")
    from st_xling.hub.dataset import push_dataset

    return push_dataset(
        pairs,
        repo,
        source_language=source_language,
        target_language=target_language,
        license=license,
        results=results,
        private=private,
        overwrite=overwrite,
        dry_run=dry_run,
        out=out,
    )


def _facts_of_pairs(results: Path) -> dict[str, Any]:
    """Return what a command that made pairs wrote about them with ``--json``."""
    content = read_json_object(results)
    for command in ("mine", "score", "align-documents"):
        if command in content:
            return content[command]
    return {}


def _check_folder(model: Path) -> None:
    """Raise ``ValueError`` if there is no such folder, before torch is imported."""
    if not model.is_dir():
        raise ValueError(
            f"expected the folder of a model: there is no folder {model}; give a local one, such as a copy of "
            "the Hub's (hf download)."
        )
