"""``st-xling encode``, ``mine``, ``score``, ``align-documents`` and ``align-words``."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.keep import check_folder, publish_thresholds, update_model_card
from st_xling.cli.model_options import encoding_options, load_model
from st_xling.cli.options import argument, given, option, output, print_report, resumable, write_results
from st_xling.utils.options import (
    AlignmentFormat,
    Backend,
    BlankLines,
    Dtype,
    Engine,
    Errors,
    Margin,
    PairFormat,
    Pooling,
    Retrieval,
    StoreDtype,
    TextFormat,
)

logger = logging.getLogger(__name__)

SEARCH = "Search"
FILTERS = "Filters"
DATASET = "Data set on the Hub"
LANGUAGES = ("source_language", "target_language")

OPTIONAL_MODEL = option("--model", metavar="MODEL", help="Hub id or folder of the encoder of texts without embeddings.")
SOURCE_EMBEDDINGS = option(
    "--source-embeddings", metavar="STORE", help="Store of st-xling encode, or .npy file, of the source."
)
TARGET_EMBEDDINGS = option("--target-embeddings", metavar="STORE", help="The same of the target.")
REJECTS = option("--rejects", metavar="FILE", panel=FILTERS, help="File for rejected pairs, as JSON lines.")
PUSH_DATASET = option(
    "--push-dataset",
    metavar="REPO",
    panel=DATASET,
    help="Also publish the pairs as this data set on the Hub, user/name; needs --license, --source-language and "
    "--target-language. --overwrite replaces one that is there.",
)
LICENSE = option("--license", metavar="ID", panel=DATASET, help="License of the pairs: cc-by-4.0, cc0-1.0, …")
FORMAT = option("--format", help="Format of the pairs (default: by the ending of --out, else tsv).")
TEXT_FORMAT = option("--text-format", help="lines; bucc: id TAB sentence; jsonl: id and text (default: lines).")
STORE_DTYPE = option("--store-dtype", help="Type in which embeddings are stored (default: float32).")
ENGINE = option("--engine", help="ray: the workers of a cluster, with the same result (default: local).")
ERRORS = option("--errors", help="Bytes that are not UTF-8: an error, or replaced (default: strict).")
METHOD = option(
    "--method",
    metavar="METHOD",
    panel=SEARCH,
    help="exact, approximate, auto (by size), or faiss:FACTORY, such as faiss:IVF4096,Flat?nprobe=64 (default: exact).",
)
WORK = option(
    "--work",
    metavar="DIR",
    help="Work folder, kept at the end, to try other thresholds or filters (default: OUT.work, which is removed).",
)
SOURCE_LANGUAGE = option(
    "--source-language",
    metavar="CODE",
    panel=FILTERS,
    help="Such as de, for a filter, a published threshold and models centered by language.",
)
TARGET_LANGUAGE = option("--target-language", metavar="CODE", panel=FILTERS, help="Such as en.")


def filter_limit(word: str) -> tuple[str, float]:
    name, _, limit = word.partition("=")
    try:
        return name, float(limit)
    except ValueError:
        raise typer.BadParameter(f"expected NAME=NUMBER, such as length_ratio=2.5, got {word!r}") from None


FILTER_LIMIT = option(
    "--filter-limit",
    metavar="NAME=X",
    parser=filter_limit,
    panel=FILTERS,
    help="Limit of a filter, such as length_ratio=2.5 (repeatable).",
)
DISABLE_FILTER = option(
    "--disable-filter",
    metavar="NAME",
    panel=FILTERS,
    help="Disable hub, copy, near_copy, length_ratio, numbers, language, or all (repeatable).",
)


def threshold_or_word(word: str) -> float | str:
    if word in ("auto", "published", "none"):
        return word
    try:
        return float(word)
    except ValueError:
        raise typer.BadParameter(f"expected a number, auto, published or none, got {word!r}") from None


@app.command("encode", cls=Command)
def encode(
    context: typer.Context,
    model: str = model_opts.MODEL,
    text: list[str] = argument(
        "TEXT", "UTF-8 files, also compressed (.gz, .xz, .bz2, .zst), read as one text.", default=...
    ),
    out: str = option("--out", metavar="STORE", default=..., help="Folder of the store."),
    text_format: TextFormat | None = TEXT_FORMAT,
    errors: Errors | None = ERRORS,
    blank_lines: BlankLines | None = option(
        "--blank-lines", help="Lines without a sentence: an error, or kept (default: error)."
    ),
    store_dtype: StoreDtype | None = STORE_DTYPE,
    normalize: bool = option(
        "--normalize/--no-normalize", default=True, help="Scale embeddings to length 1 (default: --normalize)."
    ),
    language: str | None = option(
        "--language", metavar="CODE", help="Language of the text, for a model centered by language."
    ),
    batch_size: int | None = opts.BATCH_SIZE,
    shard_rows: int | None = option("--shard-rows", help="Sentences in a shard (default: 16384)."),
    processes: int | None = option("--processes", help="Processes that embed (default: 1)."),
    engine: Engine | None = ENGINE,
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
    """Embed text files, a sentence a line, into a store that mining reads.

    \b
    examples:
      st-xling encode my-encoder news.de.gz --out de.store
      st-xling encode my-encoder news.en.gz --out en.store
      st-xling encode my-encoder zh-en.training.zh --text-format bucc --out zh.store --store-dtype float16

    Run the same command again to resume from the first incomplete shard.
    """
    from st_xling.mining import encode as encode_texts

    options = given(format=text_format, errors=errors, blank=blank_lines, shard_rows=shard_rows)
    options |= given(processes=processes, engine=engine)
    with resumable():
        store = encode_texts(
            text_files=text,
            out=out,
            normalize=normalize,
            language=language,
            batch_size=batch_size,
            device=device,
            overwrite=overwrite,
            progress=True,
            **(options | encoding_options(context)),
        )
    if blank := len(store.blank_rows):
        logger.warning("%s lines without a sentence, kept", f"{blank:,}")
    print(f"{store.rows:,} vectors of dim {store.dim} in {len(store.manifest.shards):,} shards: {store.path}")
    print(store.signature)
    sizes = {"rows": store.rows, "dim": store.dim, "shards": len(store.manifest.shards)}
    write_results(context, {"encode": sizes, "signature": store.signature})


@app.command("mine", cls=Command)
def mine(
    context: typer.Context,
    source: str = argument("SOURCE", "UTF-8 text, a sentence a line, also compressed.", default=...),
    target: str = argument("TARGET", "The same in the other language.", default=...),
    out: str = option("--out", metavar="FILE", default=..., help="File of the pairs, or - for stdout."),
    model: str | None = OPTIONAL_MODEL,
    threshold: Any = option(
        "--threshold",
        metavar="X",
        parser=threshold_or_word,
        default="auto",
        help="Minimum score of a pair. auto: the one that the model was published with for these two languages "
        "(its mining.json) if it fits, otherwise none; published: that one or an error; none: keep all (default: "
        "auto).",
    ),
    source_language: str | None = SOURCE_LANGUAGE,
    target_language: str | None = TARGET_LANGUAGE,
    format: PairFormat | None = FORMAT,
    overwrite: bool = opts.OVERWRITE,
    dry_run: bool = option("--dry-run", default=False, help="Only estimate time, memory and disk."),
    json: Path | None = opts.JSON,
    text_format: TextFormat | None = TEXT_FORMAT,
    errors: Errors | None = ERRORS,
    source_embeddings: str | None = SOURCE_EMBEDDINGS,
    target_embeddings: str | None = TARGET_EMBEDDINGS,
    batch_size: int | None = opts.BATCH_SIZE,
    store_dtype: StoreDtype | None = STORE_DTYPE,
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    retrieval: Retrieval | None = opts.RETRIEVAL,
    method: str | None = METHOD,
    engine: Engine | None = ENGINE,
    memory_mib: int | None = opts.MEMORY_MIB,
    filter_limit: list[Any] | None = FILTER_LIMIT,
    disable_filter: list[str] | None = DISABLE_FILTER,
    rejects: str | None = REJECTS,
    calibrate: str | None = option(
        "--calibrate",
        metavar="PARALLEL",
        help="Known translations from elsewhere (TSV, JSONL, …), added to estimate the threshold.",
    ),
    target_precision: float | None = option(
        "--target-precision", help="With --calibrate: precision to reach (default: that of the best F1)."
    ),
    keep_threshold: bool = option(
        "--keep-threshold",
        default=False,
        help="With --calibrate: also write the threshold into the model's mining.json; MODEL must be a folder.",
    ),
    rescore: str | None = option("--rescore", metavar="MODEL", help="Cross-encoder that scores the mined pairs again."),
    rescore_threshold: float | None = option(
        "--rescore-threshold", help="Minimum score of the cross-encoder (default: none)."
    ),
    work: str | None = WORK,
    push_dataset: str | None = PUSH_DATASET,
    license: str | None = LICENSE,
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
    """Find translations between two text files.

    Embeds two texts, finds the pairs that are likely translations, and writes them, best first.

    \b
    examples:
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --threshold 1.06 --rejects rejects.jsonl
      st-xling mine news.de.gz news.en.gz --source-embeddings de.store --target-embeddings en.store --out - | head
      st-xling mine news.de news.en --model my-encoder --source-language de --target-language en --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.jsonl --calibrate gold.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --rescore my-reranker --rescore-threshold 0.5
      st-xling mine news.de news.en --model intfloat/multilingual-e5-small --prompt 'query: ' --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --dry-run

    A TSV file has the columns score, source_id, target_id, source, target; with --rescore the score is the
    cross-encoder's, and a last column has the margin. Without ids of its own, a line's id is its number; equal lines
    are mined once, and their ids joined by commas. Tabs, line ends and backslashes in a sentence are written as \\t,
    \\n, \\r and \\\\. train, score and other commands read such a file. Run the same command again to resume from
    OUT.work.
    """
    from st_xling.mining import FilterOptions, mine_texts, plan_mining

    if dry_run:
        plan = plan_mining(
            source,
            target,
            source_embeddings=source_embeddings,
            target_embeddings=target_embeddings,
            source_language=source_language,
            target_language=target_language,
            batch_size=batch_size,
            device=device,
            work=work or ("." if out == "-" else out),
            **given(text_format=text_format, errors=errors, k=k, memory_mib=memory_mib),
            **encoding_options(context),
        )
        print("\n".join(plan.lines()))
        return write_results(context, {"plan": plan.as_dict()})
    check_dataset(context)
    pair = _threshold_pair(model, calibrate, source_language, target_language) if keep_threshold else None
    filters = FilterOptions(
        disable=disable_filter or (),
        limits=dict(filter_limit or ()),
        source_language=source_language,
        target_language=target_language,
    )
    options = given(text_format=text_format, errors=errors, format=format)
    options |= given(k=k, margin=margin, retrieval=retrieval, method=method, engine=engine, memory_mib=memory_mib)
    options |= encoding_options(context)
    with output(context) as opened:
        report = mine_texts(
            source,
            target,
            opened,
            source_embeddings=source_embeddings,
            target_embeddings=target_embeddings,
            batch_size=batch_size,
            threshold=None if threshold == "none" else threshold,
            calibrate_with=calibrate,
            target_precision=target_precision,
            rescore=rescore,
            rescore_threshold=rescore_threshold,
            filters=filters,
            rejects=rejects,
            device=device,
            work=work,
            progress=True,
            **options,
        )
    results = print_report(context, report, f"{report.pairs:,} pairs")
    if pair is not None:
        assert model is not None and report.calibration is not None
        publish_thresholds(Path(model), {pair: report.calibration})
        update_model_card(Path(model))
    publish(context, results)


def check_dataset(context: typer.Context) -> None:
    """Raise ``ValueError`` before the pairs are made if ``--push-dataset`` lacks something."""
    options = context.params
    if options["push_dataset"] is None:
        return
    from st_xling.hub.card_facts import check_license
    from st_xling.hub.push import check_repo_id

    lacking = [f"--{name.replace('_', '-')}" for name in ("license", *LANGUAGES) if not options[name]]
    if lacking or options["out"] == "-" or options["format"] == "vecalign":
        more = f"; {', '.join(lacking)} not given" if lacking else ""
        raise ValueError(
            "--push-dataset publishes the pairs of --out FILE as tsv, jsonl or tmx, with --license, --source-language "
            f"and --target-language{more}."
        )
    check_license(options["license"])
    check_repo_id(options["push_dataset"])


def publish(context: typer.Context, results: dict[str, Any]) -> None:
    """Push the pairs of ``--out`` to ``--push-dataset``, if given."""
    options = context.params
    if options["push_dataset"] is None:
        return
    from st_xling.hub.dataset import push_dataset

    given = {name: options[name] for name in ("license", "overwrite", *LANGUAGES)}
    try:
        print(push_dataset(options["out"], options["push_dataset"], results=results, **given).url)
    except Exception:
        logger.error("the pairs are in %s; st-xling push publishes them later", options["out"])
        raise


def _threshold_pair(model: str | None, calibrate: str | None, source: str | None, target: str | None) -> str:
    """Return the languages of the threshold to publish, before anything is mined.

    Raises:
        ValueError: If the threshold could not be published.
    """
    from st_xling.mining.thresholds import canonical_pair, language_pair, load_published_thresholds

    if model is None or calibrate is None or source is None or target is None:
        raise ValueError(
            "--keep-threshold publishes the model's threshold for two languages: it needs --model, --calibrate, "
            "--source-language and --target-language."
        )
    check_folder(Path(model), "--keep-threshold")
    load_published_thresholds(model)
    pair = language_pair(source, target)
    canonical_pair(pair)
    return pair


@app.command("score", cls=Command)
def score(
    context: typer.Context,
    pairs: str = argument(
        "PAIRS",
        "Parallel text, as train --data reads it: TSV, CSV, JSONL, xx-yy=PATH, PATH?columns=0,1, ….",
        default=...,
    ),
    out: str = option("--out", metavar="FILE", default=..., help="File of the scored pairs, or - for stdout."),
    model: str | None = OPTIONAL_MODEL,
    threshold: float | None = option("--threshold", help="Minimum score of a pair (default: none)."),
    format: PairFormat | None = FORMAT,
    max_chars: int | None = option("--max-chars", help="Longest sentence (default: 5000)."),
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
    filters: bool = option(
        "--filters", panel=FILTERS, default=False, help="Reject pairs by filters; so does any option of theirs."
    ),
    filter_first: bool = option(
        "--filter-first",
        panel=FILTERS,
        default=False,
        help="Filter before anything is embedded, to save the time of rejected pairs.",
    ),
    source_language: str | None = SOURCE_LANGUAGE,
    target_language: str | None = TARGET_LANGUAGE,
    filter_limit: list[Any] | None = FILTER_LIMIT,
    disable_filter: list[str] | None = DISABLE_FILTER,
    rejects: str | None = REJECTS,
    source_embeddings: str | None = SOURCE_EMBEDDINGS,
    target_embeddings: str | None = TARGET_EMBEDDINGS,
    batch_size: int | None = opts.BATCH_SIZE,
    store_dtype: StoreDtype | None = STORE_DTYPE,
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    method: str | None = METHOD,
    engine: Engine | None = ENGINE,
    memory_mib: int | None = opts.MEMORY_MIB,
    work: str | None = WORK,
    push_dataset: str | None = PUSH_DATASET,
    license: str | None = LICENSE,
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
    """Score the pairs of a parallel file, to filter it.

    Gives each pair its margin score, and drops pairs below a threshold.

    \b
    examples:
      st-xling score pairs.tsv --model my-encoder --out scored.tsv
      st-xling score crawl.tsv.gz --model my-encoder --out clean.tsv --threshold 1.02 --filters --rejects rejects.jsonl
      st-xling score de-en=crawl.de.gz,crawl.en.gz --model my-encoder --out clean.jsonl
      st-xling score pairs.tsv --source-embeddings de.npy --target-embeddings en.npy --out - | cut -f1

    Neighbors come from the corpus itself. Pairs are written in the order of the file, in the format of st-xling mine,
    with line numbers as ids. Faulty lines (columns, bytes, an empty side, too long) are skipped, counted, and listed
    first in --rejects, with their number and the reason. Run the same command again to resume from OUT.work.
    """
    from st_xling.mining import FilterOptions, score_texts

    check_dataset(context)
    filter_options = None
    if filters or filter_first or rejects or source_language or target_language or filter_limit or disable_filter:
        filter_options = FilterOptions(
            disable=disable_filter or (),
            limits=dict(filter_limit or ()),
            source_language=source_language,
            target_language=target_language,
        )
    options = given(k=k, margin=margin, method=method, engine=engine, memory_mib=memory_mib)
    options |= given(max_chars=max_chars, format=format) | encoding_options(context)
    with output(context) as opened:
        report = score_texts(
            pairs,
            opened,
            source_embeddings=source_embeddings,
            target_embeddings=target_embeddings,
            batch_size=batch_size,
            threshold=threshold,
            filters=filter_options,
            filter_first=filter_first,
            rejects=rejects,
            device=device,
            work=work,
            progress=True,
            **options,
        )
    publish(context, print_report(context, report, f"{report.kept:,} pairs"))


@app.command("align-documents", cls=Command)
def align_documents(
    context: typer.Context,
    source: str | None = argument("SOURCE", "Document: UTF-8 text, a sentence or paragraph a line, also compressed."),
    target: str | None = argument("TARGET", "Its translation."),
    out: str = option("--out", metavar="FILE", default=..., help="File of the pairs, or - for stdout."),
    model: str = option("--model", metavar="MODEL", default=..., help="Hub id or folder of an encoder."),
    source_dir: Path | None = option(
        "--source-dir", metavar="DIR", help="Instead of SOURCE: folder of documents; those of the same name are paired."
    ),
    target_dir: Path | None = option("--target-dir", metavar="DIR", help="Folder of their translations."),
    documents: str | None = option(
        "--documents", metavar="FILE", help="Instead: pairs of file names, a pair a line, relative to this file."
    ),
    max_size: int | None = option(
        "--max-size",
        help="Maximum number of sentences of both sides in a group; 5 encodes in a third of the time (default: 8).",
    ),
    split: bool = option("--split", default=False, help="Split the lines into sentences; ids are then their numbers."),
    min_score: float | None = option(
        "--min-score", help="Minimum score of a pair: 1 is the same, 0 nothing in common (default: none)."
    ),
    format: AlignmentFormat | None = option(
        "--format",
        help="tsv, jsonl, tmx, or vecalign: all groups of one document by line numbers (default: by the ending of "
        "--out, else tsv).",
    ),
    html: Path | None = option("--html", metavar="FILE", help="Page that shows both texts next to each other."),
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
    errors: Errors | None = ERRORS,
    source_language: str | None = SOURCE_LANGUAGE,
    target_language: str | None = TARGET_LANGUAGE,
    filter_limit: list[Any] | None = FILTER_LIMIT,
    disable_filter: list[str] | None = DISABLE_FILTER,
    rejects: str | None = REJECTS,
    batch_size: int | None = opts.BATCH_SIZE,
    store_dtype: StoreDtype | None = STORE_DTYPE,
    work: str | None = WORK,
    push_dataset: str | None = PUSH_DATASET,
    license: str | None = LICENSE,
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
    """Align documents with their translations, sentence by sentence.

    Finds which sentences of a document are translations of which, in order, up to several on either side, and writes
    the pairs. Sentences without a translation are counted; blank lines mark paragraphs.

    \b
    examples:
      st-xling align-documents book.de book.fr --model my-encoder --out pairs.tsv --html book.html
      st-xling align-documents --source-dir news/de --target-dir news/fr --model my-encoder --out pairs.tsv
      st-xling align-documents report.de.txt report.fr.txt --split --model my-encoder --out pairs.tsv
      st-xling align-documents --documents list.tsv --model my-encoder --out pairs.jsonl --min-score 0.3
      st-xling align-documents book.de book.fr --model intfloat/multilingual-e5-small --prompt 'query: ' --out pairs.tsv

    The file is that of st-xling mine, with line numbers as ids, and is read by train, score and other commands. Run the
    same command again to resume from OUT.work.
    """
    from st_xling.mining import FilterOptions, align_texts, pair_documents
    from st_xling.mining.pipeline.align_texts import read_document_list

    check_dataset(context)
    ways = [source is not None, source_dir is not None, documents is not None]
    if sum(ways) != 1 or (source is None) != (target is None) or (source_dir is None) != (target_dir is None):
        raise ValueError(
            "expected SOURCE and TARGET, --source-dir and --target-dir, or --documents; choose one of them."
        )
    if source is not None and target is not None:
        pairs = [(source, target)]
    elif documents is not None:
        pairs = read_document_list(documents)
    else:
        assert source_dir is not None and target_dir is not None
        pairs, alone = pair_documents(source_dir, target_dir)
        if alone:
            more = f" and {len(alone) - 20:,} more" if len(alone) > 20 else ""
            logger.warning("%s files have no partner: %s%s", f"{len(alone):,}", ", ".join(alone[:20]), more)
    filters = FilterOptions(
        disable=disable_filter or (),
        limits=dict(filter_limit or ()),
        source_language=source_language,
        target_language=target_language,
    )
    options = given(max_size=max_size, format=format, errors=errors) | encoding_options(context)
    with output(context) as opened:
        report = align_texts(
            pairs,
            opened,
            split=split,
            min_score=min_score,
            batch_size=batch_size,
            filters=filters,
            rejects=rejects,
            html_page=html,
            device=device,
            work=work,
            progress=True,
            **options,
        )
    publish(context, print_report(context, report, f"{report.pairs:,} pairs"))


@app.command("align-words", cls=Command)
def align_words(
    context: typer.Context,
    spec: str = argument("SPEC", "Pairs, as train --data reads them.", default=...),
    model: str = option("--model", metavar="MODEL", default=..., help="Hub id or folder of an encoder."),
    out: str | None = option("--out", metavar="FILE", help="File of the links, a line a pair, or - for stdout."),
    method: Literal["itermax", "intersection", "corpus"] = option(
        "--method",
        default="itermax",
        help="itermax: more links; intersection: fewer, more of them right; corpus: also counts in all pairs which "
        "words go together, for some hundred pairs and more (default: itermax).",
    ),
    layer: int | None = option(
        "--layer", help="Layer of the token states, from 1 (default: two thirds of the way up, 8 of 12)."
    ),
    every_layer: bool = option(
        "--every-layer", default=False, help="With --gold: score every layer; --out then has the best."
    ),
    tokenized: bool = option(
        "--tokenized",
        default=False,
        help="Words are separated by spaces; otherwise punctuation is split off, and Chinese, Japanese and Thai "
        "into characters.",
    ),
    gold: str | None = option(
        "--gold", metavar="FILE", help="Right links, a line a pair, such as 0-0 1-2; 1?2 is a possible one."
    ),
    gold_from_1: bool = option("--gold-from-1", default=False, help="The gold file counts words from 1."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = option("--batch-size", help="Maximum batch size (default: 32)."),
    overwrite: bool = opts.OVERWRITE,
    json: Path | None = opts.JSON,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Link the words of translations, by an encoder's token states.

    Writes for each pair the words that mean the same, in the Pharaoh format: 0-0 1-2 links the first word of the source
    to the first of the target, and the second to the third. Lines skipped by --skip-bad-lines become empty lines. With
    gold: precision, recall, F1 and alignment error rate.

    \b
    examples:
      st-xling align-words pairs.tsv --model my-encoder --out links.txt
      st-xling align-words test.tsv --tokenized --gold test.links --model intfloat/multilingual-e5-small --every-layer
      st-xling align-words pairs.tsv --method corpus --model my-encoder --out links.txt
    """
    from st_xling.data.read import kept_lines, load_data_specs, parse_data_spec
    from st_xling.evaluation.alignment import evaluate_alignment, format_links, read_links, sign_alignment
    from st_xling.models import align as word_alignment
    from st_xling.utils.io import write_atomic
    from st_xling.utils.signature import sha8

    if out is None and gold is None:
        raise ValueError("expected --out, a file for the links, or --gold, links to compare them with; got neither.")
    if every_layer and (gold is None or layer is not None):
        raise ValueError("--every-layer chooses a layer by gold: add --gold, and remove --layer.")
    read = load_data_specs([spec], skip_bad_lines=skip_bad_lines)
    if len(read) != 1:
        raise ValueError(f"expected pairs of two languages, got {', '.join(read)}; align one pair at a time.")
    ((name, data),) = read.items()
    sides = [data[side][:] for side in ("source", "target")]
    if tokenized:
        # By ASCII spaces alone, as Pharaoh's tools count words: a token may contain a no-break space.
        sides = [[list(filter(None, text.split(" "))) for text in side] for side in sides]
    right = None if gold is None else read_links(gold, first=int(gold_from_1))
    kept, count = list(range(len(data))), len(data)
    parsed = parse_data_spec(spec)
    if skip_bad_lines and not parsed.is_phrasebook and parsed.sample.size is None:
        kept, count = kept_lines(spec)
        if right is not None and len(right) == count:
            right = [right[line] for line in kept]
    encoder = load_model(context, without=["layer"])
    options: dict[str, Any] = {"method": method, "show_progress_bar": True, **given(batch_size=batch_size)}
    layer = word_alignment.default_layer(encoder) if layer is None else layer
    show = partial(print, file=sys.stderr if out == "-" else sys.stdout)
    results: dict[str, Any] = {"pairs": len(data), "layer": layer}
    if right is None:
        links = word_alignment.align_words(encoder, sides[0], sides[1], layer=layer, **options)
        signature = sign_alignment(encoder, [layer], method, f"{name}@{sha8(sides)}")
    else:
        layers = None if every_layer else [layer]
        report = evaluate_alignment(encoder, sides[0], sides[1], right, layers=layers, name=name, **options)
        show(report.table())
        layer, signature = report.best_layer, report.signature
        if every_layer:
            show(f"lowest error rate: layer {layer}")
        links = report.links[layer]
        results |= report.as_dict()
    if out is not None:
        written = dict(zip(kept, map(format_links, links)))
        lines = "".join(f"{written.get(line, '')}\n" for line in range(count))
        if out == "-":
            print(lines, end="")
        else:
            Path(out).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(Path(out), lines.encode())
        show(f"{len(links):,} pairs: {out}")
    show(signature)
    write_results(context, {**results, "signature": signature})
