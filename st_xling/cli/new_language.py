"""``st-xling add-language``: add a language to an encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import typer

from st_xling.cli import options as opts
from st_xling.cli.app import TRAIN, app, with_options
from st_xling.cli.model_options import EncoderOptions
from st_xling.cli.options import (
    argument,
    flag,
    given,
    option,
    options_of,
    read_assignments,
    repeatable,
    required,
)
from st_xling.cli.results import new_card_writer, resumable, write_results
from st_xling.cli.rules import Given, Inapplicable
from st_xling.utils.paths import shown_command

VOCABULARY_PANEL = "New vocabulary"
TRAINING_PANEL = "Training"
training_option = partial(option, panel=TRAINING_PANEL)


@dataclass(frozen=True)
class TrainingOptions:
    """Options of both trainings, by the names of the training arguments."""

    num_train_epochs: float | None = training_option("--epochs", "Passes over the pairs, of both trainings.")
    max_steps: int | None = training_option("--max-steps", "Steps, instead of epochs.")
    per_device_train_batch_size: int | None = training_option("--batch-size", "Pairs per step.")
    seed: int | None = training_option("--seed", "Seed of the order of the pairs, and of dropout.")
    precision: Literal["fp32", "bf16", "fp16"] | None = training_option("--precision", "Type of numbers to train in.")

    def settings(self) -> dict[str, Any]:
        """Return the keys of a recipe that the options set."""
        values = asdict(self)
        precision = values.pop("precision")
        settings = {f"arguments.{name}": value for name, value in values.items()}
        if precision is not None:
            settings["arguments.bf16"] = precision == "bf16"
            settings["arguments.fp16"] = precision == "fp16"
        return given(**settings)


def _only_diagnoses(call: Given) -> str:
    return "--diagnose only looks at the tokenizer" if call.values["diagnose"] else ""


RULES = (
    Inapplicable(
        (
            "out",
            "old_data",
            "keep_like",
            "overwrite",
            "train",
            "pieces",
            "min_count",
            "recipe",
            "merge",
            "set",
            "set_rows",
            "cache",
            "num_train_epochs",
            "max_steps",
            "per_device_train_batch_size",
            "seed",
            "precision",
        ),
        _only_diagnoses,
    ),
)


@app.command("add-language", cls=with_options(TrainingOptions, EncoderOptions, rules=RULES), rich_help_panel=TRAIN)
def add_language(
    context: typer.Context,
    model: str = argument("MODEL", "Hub id or folder of an encoder, which is not changed."),
    language: str = required("--language CODE", "The new language, such as am."),
    data: list[str] = required("--data SPEC", "Parallel text of it and a language that the model reads (repeatable)."),
    out: str | None = option("--out DIR", "Folder of the new model (required, but for --diagnose)."),
    old_data: list[str] = repeatable(
        "--old-data SPEC", "Parallel text of languages that it reads already, to learn besides (repeatable)."
    ),
    keep_like: list[str] = repeatable(
        "--keep-like SPEC", "Text of languages that shall stay as they were (repeatable)."
    ),
    eval: list[str] = repeatable(
        "--eval SPEC", "Test text of it and of others, as compare takes it (default: held-out pairs) (repeatable)."
    ),
    diagnose: bool = flag("--diagnose", "Only print how the tokenizer reads the language, and others of --eval."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    overwrite: bool = opts.OVERWRITE,
    pieces: int | None = option(
        "--pieces", "Pieces to learn if they are needed; 0: none (default: 8000).", panel=VOCABULARY_PANEL
    ),
    min_count: int | None = option(
        "--min-count", "Drop pieces that the text uses less often (default: 3).", panel=VOCABULARY_PANEL
    ),
    train: Literal["rows", "all"] | None = training_option(
        "--train",
        "Rows of new pieces alone, or then all weights (default: all with text of old languages, or no new pieces).",
    ),
    recipe: str | None = training_option("--recipe RECIPE", "Recipe that trains all weights (default: realign)."),
    merge: float | None = training_option(
        "--merge SHARE",
        "Share of that training in the weights, the rest is as before; 1: all (default: 0.4; with --old-data 1).",
    ),
    set: list[str] = repeatable("--set KEY=VALUE", "Any key of that recipe (repeatable).", panel=TRAINING_PANEL),
    set_rows: list[str] = repeatable(
        "--set-rows KEY=VALUE", "The same of the training of new rows (repeatable).", panel=TRAINING_PANEL
    ),
    cache: str | None = training_option("--cache DIR", "Folder of the vectors to learn from (default: a cache)."),
) -> None:
    """Add a language to an encoder, and test what became of the others.

    Looks how the tokenizer reads the language; adds pieces where it cannot, which old text does not use; trains their
    rows alone, by the vectors of the translations; with --old-data or --keep-like, trains all weights, on pairs of old
    languages besides and next to replayed text; without --old-data, merges them with those before; compares both
    models on all languages of --eval; saves a stock model with its card. Run the same command again to resume.

    \b
    examples:
      st-xling add-language my-encoder --language sw --data sw-en=pairs.tsv \\
          --eval tatoeba/v1 --diagnose
      st-xling add-language my-encoder --language sw --data sw-en=pairs.tsv \\
          --old-data de-en=corpus.tsv --keep-like de-en=corpus.tsv \\
          --eval tatoeba/v1 --out with-swahili
    """
    from st_xling.data.spec import parse_data_spec
    from st_xling.utils.languages import check_language_code

    check_language_code(language, "--language")
    for spec in (*data, *old_data):
        parse_data_spec(spec)
    if out is None and not diagnose:
        raise ValueError("--out DIR is needed, the folder of the new model; or --diagnose, which writes none.")
    encoder_options = options_of(context, EncoderOptions).given()
    if diagnose:
        _diagnose(context, model, language, data, eval, skip_bad_lines, encoder_options)
        return
    settings = options_of(context, TrainingOptions).settings()
    from st_xling.evaluation.new_language import AddingOptions, add_language

    how = AddingOptions(
        **given(pieces=pieces, min_count=min_count, train=train, recipe=recipe, merge=merge),
        settings=settings | read_assignments(set, "--set"),
        rows_settings=settings | read_assignments(set_rows, "--set-rows"),
    )
    assert out is not None
    with resumable():
        added = add_language(
            model,
            language,
            data,
            out,
            old_data=old_data,
            keep_like=keep_like,
            evaluate_on=eval,
            how=how,
            skip_bad_lines=skip_bad_lines,
            overwrite=overwrite,
            cache=cache,
            progress=True,
            command=shown_command(context.obj.line),
            complete=new_card_writer(out),
            **encoder_options,
        )
    print(added.table())
    write_results(context, {"add-language": added.content})


def _diagnose(
    context: typer.Context,
    model: str,
    language: str,
    data: Sequence[str],
    evaluate_on: Sequence[str],
    skip_bad_lines: bool,
    options: Mapping[str, Any],
) -> None:
    from st_xling.evaluation.new_language import diagnose_language, read_new_language, sign_diagnosis
    from st_xling.models import load_encoder

    pairs = read_new_language(language, data, evaluate_on, skip_bad_lines=skip_bad_lines)
    encoder = load_encoder(model, **options)
    report = diagnose_language(encoder, pairs)
    signature = sign_diagnosis(encoder, pairs)
    print(report.table(), signature, sep="\n")
    write_results(context, {"tokenization": report.as_dict(), "signature": signature})
