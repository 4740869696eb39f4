"""``st-xling demo``, ``leak``, ``slim``, ``postprocess`` and ``reproduce``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.keep import update_model_card
from st_xling.cli.model_options import CENTERS, model_options
from st_xling.cli.options import argument, given, listed, numbers, option, write_results
from st_xling.utils.options import Backend, Dtype, Pooling

ENCODER = argument("MODEL", "Hub id or folder of an encoder, which is not changed.", default=...)
NEW_FOLDER = option("--out", metavar="DIR", default=..., help="Folder of the new model.")


@app.command("demo", cls=Command)
def demo(
    context: typer.Context,
    out: Path = option(
        "--out", metavar="DIR", default=Path("xling-demo"), help="Folder for the model (default: xling-demo)."
    ),
    seed: int = option("--seed", default=0, help="Seed of text, weights and training (default: 0)."),
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
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
    print(f"\nThe model, results.json and {results['picture']} are in {out}. Use it:\n")
    print(usage_lines(out, results["example"]))
    write_results(context, results)


@app.command("leak", cls=Command)
def leak(
    context: typer.Context,
    train: list[str] = option(
        "--train", metavar="SPEC", default=..., help="Training text, as train --data takes it (repeatable)."
    ),
    eval: list[str] = option(
        "--eval",
        metavar="EVAL",
        default=...,
        help="Parallel text, a Tatoeba folder, a BUCC folder or prefix, a .txt file of sentences, or phrasebook:… "
        "(its test split) (repeatable).",
    ),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    stream: bool = option("--stream", default=False, help="Read --train as needed, for more than fits into memory."),
    fail_on_leak: bool = option("--fail-on-leak", default=False, help="Exit with status 2 if any text is shared."),
    json: Path | None = opts.JSON,
) -> None:
    """Look for evaluation text in training data.

    Counts the evaluation sentences that training data contain on either side. Texts are compared by their letters,
    marks and numbers, case folded; near duplicates are not found.

    \b
    examples:
      st-xling leak --train phrasebook:de --eval phrasebook:de
      st-xling leak --train de-en=pairs.tsv --eval tatoeba/v1 --eval bucc2018/de-en/de-en.test
    """
    from st_xling.data import leaks, load_data_specs, load_evaluation_specs, refuse_leaks

    data = load_data_specs(train, skip_bad_lines=skip_bad_lines, stream=stream)
    report = leaks(data, load_evaluation_specs(eval, skip_bad_lines=skip_bad_lines), progress=True)
    print(report.table())
    write_results(context, report.as_dict())
    if fail_on_leak:
        refuse_leaks(report)


@app.command("slim", cls=Command)
def slim(
    context: typer.Context,
    model: str = ENCODER,
    languages: list[str] = listed("--languages", default=..., help="Languages that the model keeps, such as de,en."),
    data: list[str] = option(
        "--data",
        metavar="SPEC",
        default=...,
        help="Text of these languages: xx=FILE, xx-yy=PAIRS or phrasebook:xx (repeatable).",
    ),
    out: str = NEW_FOLDER,
    keep_words: list[str] | None = option(
        "--keep-words",
        metavar="WORDS|FILE",
        help="Words, or a file of them, a line each, whose tokens are kept (repeatable).",
    ),
    min_count: int | None = option("--min-count", help="Drop tokens that occur less often (default: 1)."),
    parity: list[str] | None = option("--parity", metavar="SPEC", help="Also compare on this text (repeatable)."),
    parity_rows: int | None = option("--parity-rows", help="Number of texts or pairs to compare (default: 500)."),
    seed: int | None = opts.SEED,
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = opts.BATCH_SIZE,
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Cut an encoder's vocabulary to some languages: the same embeddings, a smaller model.

    Keeps the tokens that text of these languages uses, drops all others with their rows of the word embeddings, and
    compares the two models.

    \b
    examples:
      st-xling slim intfloat/multilingual-e5-small --languages de,en --data de-en=pairs.tsv --out small
      st-xling slim my-encoder --languages de,en --data de=news.de.txt.gz --data en=news.en.txt.gz --min-count 2 \\
          --out small
      st-xling slim my-encoder --languages de,en --data phrasebook:de --layer 2 --keep-words 'Zürich' --out small

    Text is parallel as train takes it, a text a line, or JSON lines with "text". Use much of it, of many kinds: tokens
    that do not occur in it are removed, and words that need them are spelled in smaller pieces.
    """
    from st_xling.data.check import FaultLog, numbered_lines
    from st_xling.hub.card import shown_command
    from st_xling.models.slim import slim_model

    keep: list[str] = []
    for each in keep_words or ():
        if not Path(each).is_file():
            keep.append(each)
            continue
        faults = FaultLog(can_skip=False, what="words")
        keep += [line for _, line in numbered_lines(each, faults) if line]
        faults.finalize()
    report = slim_model(
        model,
        data,
        out,
        languages=languages or (),
        parity_texts=parity or (),
        keep=keep,
        skip_bad_lines=skip_bad_lines,
        overwrite=overwrite,
        batch_size=batch_size,
        progress=True,
        command=shown_command(context.obj.line),
        complete=lambda folder: update_model_card(folder, is_new=True),
        **given(parity_rows=parity_rows, min_count=min_count, seed=seed),
        **model_options(context),
    )
    print(report.table())
    write_results(context, {"slim": report.content})


@app.command("postprocess", cls=Command)
def postprocess(
    context: typer.Context,
    model: str = ENCODER,
    data: list[str] = option(
        "--data", metavar="SPEC", default=..., help="Parallel text; 2 % to a fifth of it is held out (repeatable)."
    ),
    out: str = NEW_FOLDER,
    center: model_opts.CenterBy | None = option(
        "--center",
        help="Subtract one mean of all languages, or each language's own, which encode(texts, task='de') takes "
        "(default: as the model has).",
    ),
    remove_languages: bool = option(
        "--remove-languages", default=False, help="Remove the directions in which the languages' means differ."
    ),
    whiten: bool = option("--whiten", default=False, help="Scale all directions to equal variance."),
    dim: int | None = option("--dim", help="Number of dimensions to keep, those of most variance."),
    int8: bool = option(
        "--int8", default=False, help="Also write int8_ranges.json, for quantize_embeddings of sentence-transformers."
    ),
    eval: list[str] | None = option("--eval", metavar="SPEC", help="Evaluate on these pairs instead (repeatable)."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = opts.BATCH_SIZE,
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Fit centering, removal of languages, whitening, fewer dimensions or int8 on text.

    Fits the steps on the sentence embeddings of parallel text, evaluates translation retrieval before and after each on
    held-out pairs, and saves a stock model with them at its end. Nothing is trained.

    \b
    examples:
      st-xling postprocess my-encoder --data de-en=pairs.tsv --center language --out centered
      st-xling postprocess my-encoder --data de-en=pairs.tsv --remove-languages --dim 8 --int8 --out small-vectors
    """
    from st_xling.evaluation import postprocess as fit_steps
    from st_xling.hub.card import shown_command

    report = fit_steps(
        model,
        data,
        out,
        center=None if center is None else CENTERS[center],
        remove_languages=remove_languages,
        whiten=whiten,
        dim=dim,
        int8=int8,
        evaluate_on=eval or (),
        skip_bad_lines=skip_bad_lines,
        overwrite=overwrite,
        batch_size=batch_size,
        progress=True,
        command=shown_command(context.obj.line),
        complete=lambda folder: update_model_card(folder, is_new=True),
        **model_options(context),
    )
    print(report.table(), report.content["signature"], sep="\n")
    write_results(context, {"postprocess": report.content})


@app.command("reproduce", cls=Command)
def reproduce(
    context: typer.Context,
    paper: str = argument(
        "PAPER",
        "dap (Li et al. 2023), sf (Huang et al. 2023), amber (Hu et al. 2021), ir (Hu et al. 2023), xpr (Chen et "
        "al. 2020), or a YAML file of the same form.",
        default=...,
    ),
    table: list[str] | None = argument("TABLE", "Number in the paper, such as 1 or 'figure 4' (default: all)."),
    scale: Literal["tiny", "small", "paper"] = option(
        "--scale",
        default="tiny",
        help="tiny: the phrasebook, to see that all runs; small: real text on two cores; paper: the paper's own "
        "setting, for GPUs (default: tiny).",
    ),
    model: str | None = option(
        "--model",
        metavar="MODEL",
        help="Hub id or folder to start from; mlm: a small BERT that is pre-trained here by masked words alone "
        "(default below paper scale); e5-small: the first four layers of multilingual-e5-small, its vocabulary "
        "cut; e5-12: all twelve.",
    ),
    precision: Literal["bf16", "fp32"] | None = option(
        "--precision", help="Type of numbers (default: bf16 where the scale and the processor have it)."
    ),
    seeds: list[str] | None = option("--seeds", metavar="LIST", help="A run each, such as 0,1,2 (default: 0)."),
    rows: list[str] | None = option(
        "--rows", metavar="LABEL...", help="Only these rows, such as TR DAP; 'TR*' is all that begin with TR."
    ),
    data: str | None = option("--data", metavar="DIR", help="Folder of the data (default: $ST_XLING_DATA)."),
    out: Path = option(
        "--out",
        metavar="DIR",
        default=Path("xling-reproduce"),
        help="Folder of models, results and tables (default: xling-reproduce).",
    ),
    jobs: int = option("--jobs", default=1, help="Number of steps at a time (default: 1)."),
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
) -> None:
    """Reproduce a paper's tables, next to the paper's own values.

    Trains and evaluates what the tables of a paper need, each step an ordinary command, and prints them with mean and
    deviation over seeds, tested differences and the paper's own values. Run the same command again to resume; other
    tables share its models.

    \b
    examples:
      st-xling reproduce dap 1 --rows TR DAP --out my-tables
      st-xling reproduce xpr 3 --scale small --data data --model my-encoder --seeds 0,1,2

    All tables made so far are in DIR/PAPER-SCALE-MODEL-SEEDS.md and .json, with every signature and command.
    """
    from st_xling.reproduce.paper import load_paper

    runs = numbers("--seeds", seeds) or [0]
    loaded = load_paper(paper, table or [], rows=rows or (), scale=scale, model=model, seeds=runs, precision=precision)
    # Only now what needs torch: errors of names are told at once.
    from st_xling.reproduce import reproduce as run
    from st_xling.reproduce.report import text

    results = run(loaded, out, data=data or os.environ.get("ST_XLING_DATA"), jobs=jobs, overwrite=overwrite)
    print(text(results))
    print(f"\n{out / loaded.file_name}.md", file=sys.stderr)
    write_results(context, results)
    if results["failed"]:
        lines = "\n".join(f"  {name}: {why}" for name, why in results["failed"].items())
        raise ValueError(f"{len(results['failed'])} steps failed; run the same command to try them again:\n{lines}")
