"""``st-xling evaluate`` and ``compare``: evaluate encoders and cross-encoders."""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import TYPER, Command, app
from st_xling.cli.keep import check_folder, check_keep, keep_results, publish_thresholds
from st_xling.cli.model_options import centered, check_center, load_cross_encoder, load_model, model_options
from st_xling.cli.options import argument, given, listed, numbers, option, print_results, resumable, write_results
from st_xling.utils.options import Autocast, Backend, Dtype, Margin, Pooling, Retrieval

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.evaluation.results import EvaluationResult
    from st_xling.evaluation.retrieval import RetrievalEvaluator, RetrievalReport

logger = logging.getLogger(__name__)

BM25 = "bm25"
EVALUATOR: dict[str, Any] = {"show_progress_bar": True}

tasks = typer.Typer(
    **TYPER,
    help="""Evaluate an encoder or a cross-encoder.

    Prints a table, and a signature of what was measured. --keep saves results with the model, for its card.""",
)
app.add_typer(tasks, name="evaluate")

ENGLISH_PAIRS = option(
    "--data",
    metavar="SPEC",
    default=...,
    help="Folder of tatoeba.{l3}-eng.{l3,eng} files, or xx-en=PATH; from the Hub tatoeba, xx-en=ntrex or xx-en=flores; "
    "or phrasebook:… (its test split) (repeatable).",
)
LANGUAGES = listed("--languages", help="Codes, or a group: xnli14, full28, xtreme36, laser112 (default: all).")
QUERY_LANGUAGES = listed("--query-languages", metavar="LIST...", help="Such as de,zh (default: all).")
NAME = option("--name", help="Name of the data, for the signature.")


def threshold_or_tune(word: str) -> float | str:
    try:
        return word if word == "tune" else float(word)
    except ValueError:
        raise typer.BadParameter(f"expected a number or tune, got {word!r}") from None


def _load(context: typer.Context, *, publishes: bool = False) -> SentenceTransformer:
    """Load the encoder, before any data are read and once it is known that results can be saved."""
    check_keep(context, publishes=publishes)
    check_center(context)
    return load_model(context)


def _report(context: typer.Context, task: str, result: EvaluationResult, table: str) -> None:
    """Print the results, write them as JSON, and save them with the model."""
    print_results(context, task, result.metrics, result.signature, table)
    keep_results(context, task, result)


@tasks.command("tatoeba", cls=Command)
def tatoeba(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = ENGLISH_PAIRS,
    languages: list[str] | None = LANGUAGES,
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = opts.BATCH_SIZE,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    center: model_opts.CenterBy | None = model_opts.CENTER_BY,
    center_text: list[str] | None = model_opts.CENTER_TEXT,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Translation retrieval accuracy, in both directions.

    Searches the translation of each sentence among all sentences of the other language, by cosine, for each language
    with English.

    \b
    examples:
      st-xling evaluate tatoeba my-encoder --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages xtreme36
      st-xling evaluate tatoeba my-encoder --data de-en=test.tsv --data fr-en=test.fr,test.en
      st-xling evaluate tatoeba intfloat/multilingual-e5-small --data tatoeba/v1 --prompt 'query: ' --dtype bfloat16

    The phrasebook needs no files; its test split is read unless ?split= names another.
    """
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.tatoeba_data import english_columns, load_english_pairs

    encoder = _load(context)
    pairs, name = load_english_pairs(data, languages, skip_bad_lines=skip_bad_lines)
    evaluator = TatoebaEvaluator(pairs, data_name=name, batch_size=batch_size, **EVALUATOR)
    encoder = centered(encoder, context, *english_columns(evaluator.pairs), batch_size=batch_size)
    result = evaluator.evaluate(encoder)
    _report(context, "tatoeba", result, result.table())


@tasks.command("precision", cls=Command)
def precision(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = option(
        "--data",
        metavar="SPEC",
        default=...,
        help="xx-yy=PATH, Hub id, xx-yy=ntrex or xx-yy=flores, or phrasebook:… (its test split) (repeatable).",
    ),
    at: list[str] | None = option("--at", metavar="LIST", help="Numbers of candidates (default: 1,5)."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = opts.BATCH_SIZE,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    center: model_opts.CenterBy | None = model_opts.CENTER_BY,
    center_text: list[str] | None = model_opts.CENTER_TEXT,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Translations among the N nearest sentences (P@1, P@5), in both directions.

    For any language pair, by cosine.

    \b
    examples:
      st-xling evaluate precision my-encoder --data 'zh-vi=phrasebook?split=test&size=500'
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv --at 1,5
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv --center language \\
          --center-text 'zh-vi=phrasebook?size=2000'
    """
    from st_xling.data import load_data_specs
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.evaluation import PrecisionEvaluator

    candidates = numbers("--at", at) or [1, 5]
    encoder = _load(context)
    pairs = load_data_specs(data, split="test", skip_bad_lines=skip_bad_lines)
    name = phrasebook_name(data, split="test")
    evaluator = PrecisionEvaluator(pairs, data_name=name, at=candidates, batch_size=batch_size, **EVALUATOR)
    encoder = centered(encoder, context, *evaluator.columns(), batch_size=batch_size)
    result = evaluator.evaluate(encoder)
    _report(context, "precision", result, result.table("pair"))


@tasks.command("bucc", cls=Command)
def bucc(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: str = option(
        "--data", metavar="DIR", default=..., help="Files xx-yy.SPLIT.{xx,yy,gold}, or phrasebook?size=600&gold=100."
    ),
    pairs: list[str] | None = listed(
        "--pairs",
        metavar="LIST...",
        help="Language pairs, such as de-en,fr-en (default: all).",
    ),
    split: str | None = option("--split", help="Split that is evaluated (default: test)."),
    train_split: str | None = option(
        "--train-split", help="Split that the threshold comes from (default: training; of the phrasebook: dev)."
    ),
    threshold: Any = option(
        "--threshold",
        metavar="X",
        parser=threshold_or_tune,
        help="A number instead; or tune: the best one on the gold of the evaluated split itself.",
    ),
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    retrieval: Retrieval | None = opts.RETRIEVAL,
    batch_size: int | None = opts.BATCH_SIZE,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    center: model_opts.CenterBy | None = model_opts.CENTER_BY,
    center_text: list[str] | None = model_opts.CENTER_TEXT,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Bitext mining: precision, recall and F1 of mined pairs.

    Mines sentence pairs and compares them with the gold ones. The threshold of highest F1 on the training split is
    applied to the evaluated split.

    \b
    examples:
      st-xling evaluate bucc my-encoder --data phrasebook --pairs de-en fr-en
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs de-en fr-en --json figures.json
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs zh-en --split sample --threshold 1.06

    The phrasebook needs no files: phrasebook:de,fr?size=600&gold=100&seed=0 hides 100 translations among 600
    sentences a side, for each language with English or for --pairs; its dev split gives the threshold.
    """
    from st_xling.data.spec import is_phrasebook
    from st_xling.evaluation import BuccEvaluator
    from st_xling.evaluation.bucc import publishable_thresholds

    options = given(split=split, train_split=train_split, threshold=threshold, k=k, margin=margin, retrieval=retrieval)
    options |= given(batch_size=batch_size) | EVALUATOR
    encoder = _load(context, publishes=True)
    make: Any = BuccEvaluator.from_phrasebook if is_phrasebook(data) else BuccEvaluator.from_folder
    evaluator = make(data, pairs, **options)
    encoder = centered(encoder, context, *evaluator.columns(), batch_size=batch_size)
    result = evaluator.evaluate(encoder)
    # JSON has no infinity, the threshold if nothing is correct.
    metrics = {key: value if math.isfinite(value) else None for key, value in result.metrics.items()}
    print_results(context, "bucc", metrics, result.signature, result.table("pair"))
    if keep:
        publish_thresholds(Path(model), publishable_thresholds(evaluator, result))
    keep_results(context, "bucc", replace(result, metrics={**metrics, "histograms": evaluator.histograms}))


@tasks.command("documents", cls=Command)
def documents(
    context: typer.Context,
    groups: list[str] = argument("FILE...", "Groups of st-xling align-documents --format vecalign.", default=...),
    gold: list[str] = option(
        "--gold", metavar="FILE", default=..., help="Right groups, a file for each FILE in the same order (repeatable)."
    ),
    json: Path | None = opts.JSON,
) -> None:
    """Precision, recall and F1 of aligned documents.

    Strict: groups that are the same as in gold. Lax: groups that share a source and a target sentence with one of gold.

    \b
    examples:
      st-xling align-documents book.de book.fr --model my-encoder --format vecalign --out book.groups
      st-xling evaluate documents book.groups --gold book.gold
    """
    from st_xling.evaluation.documents import evaluate_groups

    scores, signature = evaluate_groups(groups, gold)
    print_results(context, "documents", scores.as_dict(), signature, scores.table())


@tasks.command("xsim", cls=Command)
def xsim(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = ENGLISH_PAIRS,
    languages: list[str] | None = LANGUAGES,
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    plus_plus: bool = option(
        "--plus-plus",
        default=False,
        help="xsim++: also search among English sentences that differ in one place and mean something else.",
    ),
    seed: int | None = option("--seed", help="Random seed of these sentences (default: 0)."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
    batch_size: int | None = opts.BATCH_SIZE,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    center: model_opts.CenterBy | None = model_opts.CENTER_BY,
    center_text: list[str] | None = model_opts.CENTER_TEXT,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Similarity search errors by margin, in both directions.

    Share of sentences whose best match by margin is not their translation; lower is better.

    \b
    examples:
      st-xling evaluate xsim my-encoder --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate xsim my-encoder --data tatoeba/v1 --languages deu,fra
      st-xling evaluate xsim my-encoder --data de-en=test.tsv --plus-plus

    The phrasebook needs no files; its test split is read unless ?split= names another.
    """
    from st_xling.evaluation import xsim_by_language
    from st_xling.evaluation.tatoeba_data import english_columns, load_english_pairs

    encoder = _load(context)
    pairs, name = load_english_pairs(data, languages, skip_bad_lines=skip_bad_lines)
    encoder = centered(encoder, context, *english_columns(pairs), batch_size=batch_size)
    options = given(k=k, margin=margin, seed=seed, batch_size=batch_size)
    result = xsim_by_language(encoder, pairs, plus_plus=plus_plus, name=name, show_progress_bar=True, **options)
    _report(context, "xsim", result, result.table())


@tasks.command("reranking", cls=Command)
def reranking(
    context: typer.Context,
    model: str = argument("MODEL", "Cross-encoder: Hub id or folder.", default=...),
    data: list[str] = option(
        "--data",
        metavar="XX=PATH",
        default=...,
        help="Questions with passages of a language, in one of the forms below, or xx=phrasebook (repeatable).",
    ),
    split: Literal["train", "dev", "test"] | None = option(
        "--split", help="Part of the articles (default: all), or of the phrasebook (default: test)."
    ),
    query_languages: list[str] | None = QUERY_LANGUAGES,
    passage_languages: list[str] | None = listed(
        "--passage-languages", metavar="LIST...", help="Such as de,zh (default: all)."
    ),
    max_candidates: int | None = option(
        "--max-candidates", help="Maximum number of candidates of a query, drawn at random (default: all)."
    ),
    without_relevant: Literal["exclude", "zero", "error"] | None = option(
        "--without-relevant", help="Queries without a relevant candidate (default: exclude)."
    ),
    seed: int | None = opts.SEED,
    cutoff: int | None = option("--cutoff", help="Last rank that MAP counts (default: the whole list)."),
    samples: int | None = option("--samples", help="Bootstrap samples (default: 1000)."),
    examples: int | None = option(
        "--examples", help="Number of queries to list with their three best passages (default: 0)."
    ),
    name: str | None = NAME,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    token_budget: int | None = model_opts.TOKEN_BUDGET,
    autocast: Autocast | None = model_opts.AUTOCAST,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Passage re-ranking by a cross-encoder: acc@1, acc@10, MRR, MAP, nDCG@10.

    Ranks each query's candidate passages; results overall, and by query and passage language, with bootstrap intervals.

    \b
    examples:
      st-xling evaluate reranking my-reranker --data en=phrasebook --data zh=phrasebook --max-candidates 20
      st-xling evaluate reranking my-reranker --data en=xquad.en.json --data zh=xquad.zh.json --json figures.json
      st-xling evaluate reranking my-reranker --data en=insuranceQA/V2 --data zh=insuranceqa-corpus-zh
      st-xling evaluate reranking my-reranker --data zh=mlqa-dev-zh --query-languages en,zh --max-candidates 100

    Data are files in SQuAD's form, labeled pairs, the folders of InsuranceQA v2 (?pool=500) and of its translation,
    or one folder in the layout of BEIR, Mr.TyDi or MIRACL whose passages are in the language before the equals sign.
    ?size=500&seed=0 is a sample of the queries, the same in each language. The phrasebook needs no files:
    xx=phrasebook?split=test&size=300; its test split is read unless --split or ?split= names another.
    """
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.reranking.specs import load_pool_specs
    from st_xling.evaluation import EvaluationResult, RerankingEvaluator

    check_keep(context)
    cross_encoder = load_cross_encoder(context)
    counts_zero = without_relevant == "zero"
    pools = load_pool_specs(
        data,
        split=split,
        query_languages=query_languages,
        passage_languages=passage_languages,
        max_candidates=max_candidates,
        **given(without_relevant="keep" if counts_zero else without_relevant, seed=seed),
    )
    options = given(no_relevant="zero" if counts_zero else None, cutoff=cutoff, samples=samples, examples=examples)
    options |= given(name=name or phrasebook_name(data, split=split or "test"))
    evaluator = RerankingEvaluator(pools, token_budget=token_budget, autocast=autocast, **EVALUATOR, **options)
    report = evaluator.report(cross_encoder)
    print_results(context, "reranking", report.as_dict(), evaluator.signature, report.table())
    # What is saved goes to the Hub with the model; passages of the examples do not.
    metrics = replace(report, examples={}).as_dict()
    keep_results(context, "reranking", EvaluationResult(metrics, *report.rows(), evaluator.signature))


@tasks.command("retrieval", cls=Command)
def retrieval(
    context: typer.Context,
    model: str = argument("MODEL", "Hub id or folder, or bm25.", default=...),
    data: list[str] = option(
        "--data",
        metavar="XX=DIR",
        default=...,
        help="Folder of passages of a language with queries and qrels, XX=FILE.json of XQuAD-R, a data set of the Hub "
        "in the layout of BEIR, xx=miracl, xx=mlqa, or xx=phrasebook (repeatable).",
    ),
    bm25: bool = option("--bm25", default=False, help="Also evaluate BM25."),
    pool: Literal["separate", "mixed"] | None = option(
        "--pool", help="Passages of each set alone, or of all languages mixed (default: separate)."
    ),
    measures: list[str] | None = listed(
        "--measures",
        metavar="LIST...",
        help="Measures of ir_measures, such as MAP,nDCG@10 (default: MRR@100,Recall@100).",
    ),
    split: str | None = option("--split", help="Split of queries and qrels (default: test)."),
    query_languages: list[str] | None = QUERY_LANGUAGES,
    runs: Path | None = option("--runs", metavar="DIR", help="Also write rankings into this folder, as TREC runs."),
    skip_bad_lines: bool = option(
        "--skip-bad-lines", default=False, help="Skip faulty lines and unknown passages, and list them in a warning."
    ),
    batch_size: int | None = opts.BATCH_SIZE,
    name: str | None = NAME,
    keep: bool = opts.KEEP,
    json: Path | None = opts.JSON,
    prompt: str | None = model_opts.PROMPT,
    passage_prompt: str | None = model_opts.PASSAGE_PROMPT,
    prompt_name: str | None = model_opts.PROMPT_NAME,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    layer: int | None = model_opts.LAYER,
    pooling: Pooling | None = model_opts.POOLING,
    truncate_dim: int | None = model_opts.TRUNCATE_DIM,
    center: model_opts.CenterBy | None = model_opts.CENTER_BY,
    center_text: list[str] | None = model_opts.CENTER_TEXT,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Passage retrieval by language: MRR@100, Recall@100, BM25, language bias.

    Searches passages for queries; results by language, and from a mixed pool the language bias.

    \b
    examples:
      st-xling evaluate retrieval my-encoder --data 'de=phrasebook?size=300&queries=de,en' --bm25
      st-xling evaluate retrieval my-encoder --data ar=mrtydi-v1.1-arabic --data fi=mrtydi-v1.1-finnish --bm25
      st-xling evaluate retrieval my-encoder --data de=mlqa-de --data zh=mlqa-zh --pool mixed --json figures.json
      st-xling evaluate retrieval my-encoder --data en=xquad-r/en.json --data zh=xquad-r/zh.json --pool mixed \\
          --measures MAP
      st-xling evaluate retrieval bm25 --data 'fi=miracl?split=dev' --runs runs

    Data are folders in the layout of BEIR, Mr.TyDi or MIRACL, whose passages are in the language before the equals
    sign; or files of XQuAD-R, whose sentences are the passages: --pool mixed --measures MAP is LAReQA's measure, over
    the best 100 sentences (MAP@1000: over 1,000). ?size=500&seed=0 is a sample of the queries. The phrasebook needs no
    files: xx=phrasebook?split=test&size=300&seed=0&queries=xx,yy; its test split is read unless --split or ?split=
    names another. Needs the extra: pip install "st-xling\\[retrieval]".
    """
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.retrieval import load_retrieval_specs
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.evaluation.retrieval import RetrievalEvaluator, retrieval_rows, retrieval_table

    if keep and model == BM25:
        raise ValueError("--keep saves results in a model's folder: bm25 has none; remove --keep.")
    encoder = None
    if model != BM25:
        encoder = _load(context)
    elif used := sorted({*model_options(context), *(["center"] if center else [])} - {"device"}):
        raise ValueError(f"--{used[0].replace('_', '-')} is for encoders: got bm25; remove it.")
    sets = load_retrieval_specs(
        data, query_languages=query_languages, skip_bad_lines=skip_bad_lines, **given(split=split)
    )
    for part in sets:
        queries = ", ".join(f"{code} {len(texts):,}" for code, texts in part.queries.items())
        left = sum(part.n_without_relevant.values())
        more = f"; {left:,} queries without a relevant passage skipped" if left else ""
        more += f"; {part.n_absent:,} judged queries are in none of these languages" if part.n_absent else ""
        print(f"{part.language}: {len(part.passages):,} passages; queries: {queries}{more}", file=sys.stderr)
    options = given(name=name or phrasebook_name(data, split=split or "test"), pool=pool, measures=measures)
    evaluator = RetrievalEvaluator(sets, **given(batch_size=batch_size), **EVALUATOR, **options)
    reports: dict[str, RetrievalReport] = {}
    bm25_signature = evaluator.signature  # without the prompt or layer of the encoder
    if encoder is not None:
        encoder = centered(encoder, context, None, evaluator.languages, batch_size=evaluator.batch_size)
        reports[Path(model).name] = evaluator.report(encoder)
    if bm25 or encoder is None:
        reports["BM25"] = evaluator.bm25_report()
    table = retrieval_table(reports)
    if bm25 and evaluator.signature != bm25_signature:
        table += f"\nBM25: {bm25_signature}"
    metrics = {system: report.as_dict() for system, report in reports.items()}
    result = EvaluationResult(metrics, *retrieval_rows(reports), evaluator.signature)
    _report(context, "retrieval", result, table)
    if runs is not None:
        _write_runs(runs, evaluator, reports)


def _write_runs(folder: Path, evaluator: RetrievalEvaluator, reports: dict[str, RetrievalReport]) -> None:
    """Write a run for each system and label, with the queries' own ids."""
    from st_xling.evaluation.retrieval import write_run

    for system, report in reports.items():
        for pool in evaluator.pools:
            for label in dict.fromkeys(query.label for query in pool.queries):
                names = {query.id: query.id.split(":", 1)[1] for query in pool.queries if query.label == label}
                ranked = {query: report.rankings[pool.name][query] for query in names}
                write_run(folder / f"{label}.{system}.trec", ranked, tag=system.replace(" ", "_"), names=names)


@app.command("compare", cls=Command)
def compare(
    context: typer.Context,
    models: list[str] = argument(
        "MODEL", "Hub ids or folders. Options of one model follow it: 'e5?prompt=query: &name=E5&layer=7'.", default=...
    ),
    data: list[str] | None = option(
        "--data",
        metavar="SPEC",
        help="Folder of Tatoeba's, BUCC's or XQuAD-R's files; xx-en=PATH; xx=DIR or xx=FILE.json, passages as of "
        "evaluate retrieval; or phrasebook:… (default: the phrasebook's test sentences) (repeatable).",
    ),
    languages: list[str] | None = LANGUAGES,
    tasks: list[str] | None = listed(
        "--tasks", help="tatoeba,xsim,xsim++,mining,pool,hubness,speed,size,leak (default: all)."
    ),
    out: str | None = option(
        "--out", metavar="DIR", help="Folder for the page compare.html and for results, to resume from."
    ),
    samples: int | None = option("--samples", help="Bootstrap samples (default: 1000)."),
    seed: int | None = opts.SEED,
    batch_size: int | None = opts.BATCH_SIZE,
    keep: bool = option("--keep", default=False, help="Also save the results with the models, which must be folders."),
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
    """Compare encoders by many tasks: one page, with intervals and tested differences.

    Evaluates all models on the same items: Tatoeba both ways, xsim and xsim++, mining with a threshold from another
    split, a mixed pool of passages and its language bias, hubness, speed and size, and whether their recorded training
    data contain the texts. Models are ordered only where paired tests, corrected for their number, allow it.

    \b
    examples:
      st-xling compare my-encoder intfloat/multilingual-e5-small --out my-comparison
      st-xling compare my-encoder 'intfloat/multilingual-e5-small?prompt=query: ' --data tatoeba/v1 --languages de,fr \\
          --tasks tatoeba,xsim --json comparison.json
      st-xling compare my-encoder --data 'de-en=pairs.tsv?size=200' --data bucc2018

    An item is a pair of sentences, a sentence to mine, or a question. Intervals are bootstrap intervals over items. Run
    the same command again to resume from --out.
    """
    from st_xling.evaluation.compare import compare_models, load_comparison_data, parse_models

    specs = parse_models(models, **model_options(context))
    if keep:
        for each in specs:
            check_folder(Path(str(each.model)), "--keep")
    items = load_comparison_data(data or [], languages, seed=seed or 0)
    options = given(tasks=tasks, samples=samples, batch_size=batch_size)
    with resumable(out is not None):
        report = compare_models(specs, items, out=out, show_progress_bar=True, **options)
    print(report.table())
    if out is not None:
        print(f"page: {Path(out) / 'compare.html'}", file=sys.stderr)
    write_results(context, {"compare": report.as_dict(), "signature": report.signature})
    for each in report.content["models"] if keep else ():
        keep_results(context, "compare", report.result(each["name"]), Path(each["model"]))
