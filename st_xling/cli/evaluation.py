"""``st-xling evaluate``, ``compare`` and ``transfer``: evaluate encoders and cross-encoders."""

from __future__ import annotations

import dataclasses
import math
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import EVALUATE, TRAIN, TYPER, Command, Group, app, with_options
from st_xling.cli.options import argument, flag, given, listed, number_or, option, options_of, required, whole_numbers
from st_xling.cli.results import check_keep, keep_results, print_results, resumable, write_results
from st_xling.cli.rules import Given, Inapplicable, Needs
from st_xling.evaluation.results import EvaluationResult
from st_xling.utils.options import Margin, Retrieval

if TYPE_CHECKING:
    from st_xling.data.retrieval import RetrievalSet
    from st_xling.evaluation.retrieval import RetrievalEvaluator, RetrievalReport


BM25 = "bm25"
ENCODER_FIELDS = (*dataclasses.fields(model_opts.EvaluationOptions), *dataclasses.fields(model_opts.EncoderOptions))
ENCODER_OPTIONS = [field.name for field in ENCODER_FIELDS]


def _has_no_encoder(arguments: Given) -> str:
    return "bm25 is no encoder, and has no folder" if arguments.values["model"] == BM25 else ""


def _is_not_centered(arguments: Given) -> str:
    if arguments.values["center"] in ("joint", "language"):
        return ""
    return "it needs --center joint or --center language"


CENTERING = Inapplicable(("center_text",), _is_not_centered)
RETRIEVAL_RULES = (Inapplicable(("passage_prompt", *ENCODER_OPTIONS), _has_no_encoder), CENTERING)
XSIM_RULES = (Needs(("seed",), "plus_plus", "the sentences that it draws"), CENTERING)
evaluating = partial(with_options, model_opts.EvaluationOptions, model_opts.EncoderOptions)
ENCODER_COMMAND = evaluating(rules=[CENTERING])
"""Class of a command that evaluates an encoder."""

evaluate_app = typer.Typer(
    **TYPER,
    cls=Group,
    help="""Evaluate an encoder or a cross-encoder.

    Prints a table, and a signature of what was measured. --keep saves results with the model, for its card.""",
)
app.add_typer(evaluate_app, name="evaluate", rich_help_panel=EVALUATE)

ENGLISH_PAIRS = required("--data SPEC", "Folder of Tatoeba's files, tatoeba, xx-en=PATH, or phrasebook:… (repeatable).")
TEST_LANGUAGES = listed("--languages", "Codes, or a group: xnli14, full28, xtreme36, laser112 (default: all).")
paper_option = partial(option, panel="In place of the paper's values")
query_option = partial(option, panel="Queries")
QUERY_LANGUAGES = listed("--query-languages LIST...", "Such as de,zh (default: all).", panel="Queries")


def _report(context: typer.Context, task: str, result: EvaluationResult, table: str) -> None:
    """Print the results, write them as JSON, and with ``--keep`` save them with the model."""
    print_results(context, task, result.metrics, result.signature, table)
    if context.params["keep"]:
        keep_results(context, task, result, Path(context.params["model"]))


@evaluate_app.command("tatoeba", cls=ENCODER_COMMAND)
def tatoeba(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = ENGLISH_PAIRS,
    languages: list[str] | None = TEST_LANGUAGES,
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
) -> None:
    """Translation retrieval accuracy, in both directions.

    Searches the translation of each sentence among all sentences of the other language, by cosine, for each language
    with English.

    \b
    examples:
      st-xling evaluate tatoeba my-encoder \\
          --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate tatoeba my-encoder --data tatoeba/v1 \\
          --languages xtreme36
      st-xling evaluate tatoeba my-encoder --data de-en=test.tsv \\
          --data fr-en=test.fr,test.en
      st-xling evaluate tatoeba intfloat/multilingual-e5-small \\
          --data tatoeba/v1 --prompt 'query: ' --dtype bfloat16

    Tatoeba's files are tatoeba.{l3}-eng.{l3,eng}; tatoeba, xx-en=ntrex and xx-en=flores are downloaded. The phrasebook
    needs no files; its test split is read unless ?split= names another.
    """
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.tatoeba import load_english_pairs

    options = model_opts.check_evaluated(context, model)
    pairs, name = load_english_pairs(data, languages, skip_bad_lines=skip_bad_lines)
    evaluator = TatoebaEvaluator(pairs, data_name=name, batch_size=options.batch_size, show_progress_bar=True)
    encoder = model_opts.load_evaluated(context, model)
    encoder = model_opts.centered(encoder, options, [*evaluator.pairs, "eng"])
    result = evaluator.evaluate(encoder)
    _report(context, "tatoeba", result, result.table())


@evaluate_app.command("precision", cls=ENCODER_COMMAND)
def precision(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = required("--data SPEC", "xx-yy=PATH, Hub id, xx-yy=ntrex, or phrasebook:… (repeatable)."),
    at: list[str] | None = option("--at LIST", "Numbers of candidates (default: 1,5).", callback=whole_numbers),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
) -> None:
    """Translations among the N nearest sentences (P@1, P@5), in both directions.

    For any language pair, by cosine.

    \b
    examples:
      st-xling evaluate precision my-encoder \\
          --data 'zh-vi=phrasebook?split=test&size=500'
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv --at 1,5
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv \\
          --center language --center-text 'zh-vi=phrasebook?size=2000'
    """
    from st_xling.data import load_data_specs
    from st_xling.data.spec import data_name
    from st_xling.evaluation import PrecisionEvaluator

    options = model_opts.check_evaluated(context, model)
    pairs = load_data_specs(data, split="test", skip_bad_lines=skip_bad_lines, identify=True)
    name = data_name(data, split="test")
    settings = given(at=at and [*map(int, at)], batch_size=options.batch_size)
    evaluator = PrecisionEvaluator(pairs, data_name=name, show_progress_bar=True, **settings)
    encoder = model_opts.load_evaluated(context, model)
    encoder = model_opts.centered(encoder, options, evaluator.columns()[1])
    result = evaluator.evaluate(encoder)
    _report(context, "precision", result, result.table("pair"))


@evaluate_app.command("bucc", cls=ENCODER_COMMAND)
def bucc(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: str = required("--data DIR", "Files xx-yy.SPLIT.{xx,yy,gold}, or phrasebook?size=600&gold=100."),
    pairs: list[str] | None = listed("--pairs LIST...", "Language pairs, such as de-en,fr-en (default: all)."),
    split: str | None = option("--split", "Split that is evaluated (default: test)."),
    threshold: Any = option("--threshold X", "A number, or tune: the best of that split.", parser=number_or("tune")),
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    retrieval: Retrieval | None = opts.RETRIEVAL,
) -> None:
    """Bitext mining: precision, recall and F1 of mined pairs.

    Mines sentence pairs and compares them with the gold ones. The threshold of highest F1 on the training split is
    applied to the evaluated split.

    \b
    examples:
      st-xling evaluate bucc my-encoder --data phrasebook \\
          --pairs de-en fr-en
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs de-en fr-en \\
          --json figures.json
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs zh-en \\
          --split sample --threshold 1.06

    The phrasebook needs no files: phrasebook:de,fr?size=600&gold=100&seed=0 hides 100 translations among 600
    sentences a side, for each language with English or for --pairs; its dev split gives the threshold.
    """
    from st_xling.evaluation import BuccEvaluator
    from st_xling.evaluation.bucc import publishable_thresholds
    from st_xling.mining.thresholds import publish_thresholds

    options = model_opts.check_evaluated(context, model, publishes=True)
    settings = given(split=split, threshold=threshold, k=k, margin=margin, retrieval=retrieval)
    evaluator = BuccEvaluator.from_spec(data, pairs, batch_size=options.batch_size, show_progress_bar=True, **settings)
    encoder = model_opts.load_evaluated(context, model)
    encoder = model_opts.centered(encoder, options, evaluator.languages)
    result = evaluator.evaluate(encoder)
    # JSON has no infinity, the threshold if nothing is correct.
    metrics = {key: value if math.isfinite(value) else None for key, value in result.metrics.items()}
    print(result.table("pair"), result.signature, sep="\n")
    write_results(context, {"bucc": metrics, "sentences": result.sentences, "signature": result.signature})
    if options.keep:
        thresholds = publishable_thresholds(evaluator, result)
        if thresholds:
            path = publish_thresholds(model, thresholds)
            print(f"thresholds for {', '.join(thresholds)}: {path}", file=sys.stderr)
        result = dataclasses.replace(result, metrics={**metrics, "histograms": result.histograms})
        keep_results(context, "bucc", result, Path(model))


@evaluate_app.command("documents", cls=Command)
def documents(
    context: typer.Context,
    groups: list[str] = argument(
        "FILE...", "Groups of align-documents --format vecalign, Vecalign, Bertalign or hunalign."
    ),
    gold: list[str] = required("--gold FILE", "Right groups, a file for each FILE in the same order (repeatable)."),
) -> None:
    """Precision, recall and F1 of aligned documents.

    Strict: groups that are the same as in gold. Lax: groups that share a source and a target sentence with one of gold.

    \b
    examples:
      st-xling align-documents book.de book.fr --model my-encoder \\
          --format vecalign --out book.groups
      st-xling evaluate documents book.groups --gold book.gold
    """
    from st_xling.evaluation.alignment import evaluate_groups

    result = evaluate_groups(groups, gold)
    print_results(context, "documents", result.metrics, result.signature, result.table("groups"))


@evaluate_app.command("xsim", cls=evaluating(rules=XSIM_RULES))
def xsim(
    context: typer.Context,
    model: str = model_opts.MODEL,
    data: list[str] = ENGLISH_PAIRS,
    languages: list[str] | None = TEST_LANGUAGES,
    k: int | None = opts.NEIGHBORS,
    margin: Margin | None = opts.MARGIN,
    plus_plus: bool = flag("--plus-plus", "xsim++: also search among English sentences that differ in one place."),
    seed: int | None = option("--seed", "Random seed of these sentences (default: 0)."),
    skip_bad_lines: bool = opts.SKIP_BAD_LINES,
) -> None:
    """Similarity search errors by margin, in both directions.

    Share of sentences whose best match by margin is not their translation; lower is better.

    \b
    examples:
      st-xling evaluate xsim my-encoder \\
          --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate xsim my-encoder --data tatoeba/v1 \\
          --languages deu,fra
      st-xling evaluate xsim my-encoder --data de-en=test.tsv --plus-plus

    The phrasebook needs no files; its test split is read unless ?split= names another.
    """
    from st_xling.evaluation import xsim_by_language
    from st_xling.evaluation.tatoeba import load_english_pairs

    options = model_opts.check_evaluated(context, model)
    pairs, name = load_english_pairs(data, languages, skip_bad_lines=skip_bad_lines)
    encoder = model_opts.load_evaluated(context, model)
    encoder = model_opts.centered(encoder, options, [*pairs, "eng"])
    settings = given(k=k, margin=margin, seed=seed, batch_size=options.batch_size)
    result = xsim_by_language(encoder, pairs, plus_plus=plus_plus, name=name, show_progress_bar=True, **settings)
    _report(context, "xsim", result, result.table())


@evaluate_app.command("reranking", cls=with_options(model_opts.ScoringOptions, model_opts.LoadOptions))
def reranking(
    context: typer.Context,
    model: str = model_opts.CROSS_ENCODER,
    data: list[str] = required("--data XX=PATH", "Questions with passages of a language, see above (repeatable)."),
    split: Literal["train", "dev", "test"] | None = query_option(
        "--split", "Part of the articles (default: all), or of the phrasebook (default: test)."
    ),
    query_languages: list[str] | None = QUERY_LANGUAGES,
    max_candidates: int | None = option("--max-candidates", "Candidates per query, drawn at random (default: all)."),
    seed: int | None = opts.SEED,
    samples: int | None = option("--samples", "Bootstrap samples (default: 1000)."),
    examples: int | None = option("--examples", "Queries to list with their three best passages (default: 0)."),
    name: str | None = option("--name", "Name of the data, for the signature."),
    keep: bool = opts.KEEP,
) -> None:
    """Passage re-ranking by a cross-encoder: acc@1, acc@10, MRR, MAP, nDCG@10.

    Ranks each query's candidate passages; results overall, and by query and passage language, with bootstrap intervals.

    \b
    examples:
      st-xling evaluate reranking my-reranker --data en=phrasebook \\
          --data zh=phrasebook --max-candidates 20
      st-xling evaluate reranking my-reranker --data en=xquad.en.json \\
          --data zh=xquad.zh.json --json figures.json
      st-xling evaluate reranking my-reranker --data en=insuranceQA/V2 \\
          --data zh=insuranceqa-corpus-zh
      st-xling evaluate reranking my-reranker --data zh=mlqa-dev-zh \\
          --query-languages en,zh --max-candidates 100

    Data are files in SQuAD's form, labeled pairs, the folders of InsuranceQA v2 and of its translation,
    or one folder in the layout of BEIR, Mr.TyDi or MIRACL whose passages are in the language before the equals sign.
    ?size=500&seed=0 is a sample of the queries, the same in each language. The phrasebook needs no files:
    xx=phrasebook?split=test&size=300; its test split is read unless --split or ?split= names another.
    """
    from st_xling.data.reranking.specs import load_pool_specs
    from st_xling.data.spec import data_name
    from st_xling.evaluation import RerankingEvaluator

    if keep:
        check_keep(Path(model))
    pools = load_pool_specs(
        data, split=split, query_languages=query_languages, max_candidates=max_candidates, **given(seed=seed)
    )
    cross_encoder = model_opts.load_cross_encoder(context, model)
    scoring = options_of(context, model_opts.ScoringOptions)
    name = name or data_name(data, split=split or "test")
    settings = given(samples=samples, examples=examples, data_name=name)
    evaluator = RerankingEvaluator(pools, show_progress_bar=True, **vars(scoring), **settings)
    report = evaluator.report(cross_encoder)
    print_results(context, "reranking", report.as_dict(), report.signature, report.table())
    if keep:
        # What is saved goes to the Hub with the model; passages of the examples do not.
        metrics = dataclasses.replace(report, examples={}).as_dict()
        result = EvaluationResult(metrics, *report.rows(), report.signature)
        keep_results(context, "reranking", result, Path(model))


@evaluate_app.command("retrieval", cls=evaluating(rules=RETRIEVAL_RULES))
def retrieval(
    context: typer.Context,
    model: str = argument("MODEL", "Hub id or folder, or bm25."),
    data: list[str] = required("--data XX=DIR", "Passages of a language with queries, see above (repeatable)."),
    bm25: bool = flag("--bm25", "Also evaluate BM25."),
    pool: Literal["separate", "mixed"] | None = option("--pool", "Each set alone, or all mixed (default: separate)."),
    measures: list[str] | None = listed("--measures LIST...", "Such as MAP,nDCG@10 (default: MRR@100,Recall@100)."),
    split: str | None = query_option("--split", "Split of queries and qrels (default: test)."),
    query_languages: list[str] | None = QUERY_LANGUAGES,
    runs: Path | None = option("--runs DIR", "Also write rankings and judgments into this folder, as TREC has them."),
    skip_bad_lines: bool = flag("--skip-bad-lines", "Skip faulty lines and unknown passages, with a warning."),
    passage_prompt: str | None = model_opts.PASSAGE_PROMPT,
) -> None:
    """Passage retrieval by language: MRR@100, Recall@100, BM25, language bias.

    Searches passages for queries; results by language, and from a mixed pool the language bias.

    \b
    examples:
      st-xling evaluate retrieval my-encoder \\
          --data 'de=phrasebook?size=300&queries=de,en' --bm25
      st-xling evaluate retrieval my-encoder --data ar=mrtydi-v1.1-arabic \\
          --data fi=mrtydi-v1.1-finnish --bm25
      st-xling evaluate retrieval my-encoder --data de=mlqa-de \\
          --data zh=mlqa-zh --pool mixed --json figures.json
      st-xling evaluate retrieval my-encoder --data en=xquad-r/en.json \\
          --data zh=xquad-r/zh.json --pool mixed --measures MAP
      st-xling evaluate retrieval bm25 --data 'fi=miracl?split=dev' \\
          --runs runs

    Data are folders in the layout of BEIR, Mr.TyDi or MIRACL, whose passages are in the language before the equals
    sign; a data set of the Hub in the layout of BEIR, xx=miracl or xx=mlqa; or files of XQuAD-R, whose sentences are
    the passages: --pool mixed --measures MAP is LAReQA's measure, over the best 100 sentences (MAP@1000: over 1,000).
    ?size=500&seed=0 is a sample of the queries. The phrasebook needs no
    files: xx=phrasebook?split=test&size=300&seed=0&queries=xx,yy; its test split is read unless --split or ?split=
    names another. Needs the extra: pip install "st-xling\\[retrieval]".
    """
    from st_xling.data.retrieval import load_retrieval_specs
    from st_xling.data.spec import data_name
    from st_xling.evaluation.retrieval import RetrievalEvaluator, check_run_ids, retrieval_rows, retrieval_table

    has_encoder = model != BM25
    options = options_of(context, model_opts.EvaluationOptions)
    if has_encoder:
        options = model_opts.check_evaluated(context, model)
    sets = load_retrieval_specs(
        data, query_languages=query_languages, skip_bad_lines=skip_bad_lines, **given(split=split)
    )
    for retrieval_set in sets:
        print(_summarize_set(retrieval_set), file=sys.stderr)
    settings = given(pool=pool, measures=measures, batch_size=options.batch_size)
    name = data_name(data, split=split or "test")
    evaluator = RetrievalEvaluator(sets, data_name=name, show_progress_bar=True, **settings)
    if runs is not None:
        check_run_ids(evaluator.pools)
    reports: dict[str, RetrievalReport] = {}
    if has_encoder:
        encoder = model_opts.load_evaluated(context, model, passage_prompt=passage_prompt)
        encoder = model_opts.centered(encoder, options, evaluator.languages)
        reports[Path(model).name] = evaluator.report(encoder)
    if bm25 or not has_encoder:
        reports["BM25"] = evaluator.bm25_report()
    table = retrieval_table(reports)
    signature = next(iter(reports.values())).signature  # of the encoder, if there is one
    if "BM25" in reports and reports["BM25"].signature != signature:
        table += f"\nBM25: {reports['BM25'].signature}"
    metrics = {system: report.as_dict() for system, report in reports.items()}
    result = EvaluationResult(metrics, *retrieval_rows(reports), signature)
    _report(context, "retrieval", result, table)
    if runs is not None:
        _write_runs(runs, evaluator, reports)


def _summarize_set(retrieval_set: RetrievalSet) -> str:
    """Return a line on the size of a set: passages, queries by language, and those that are skipped."""
    queries = ", ".join(f"{code} {len(texts):,}" for code, texts in retrieval_set.queries.items())
    line = f"{retrieval_set.language}: {len(retrieval_set.passages):,} passages; queries: {queries}"
    if retrieval_set.n_without_relevant:
        line += f"; {retrieval_set.n_without_relevant:,} queries that are not judged skipped"
    return line


def _write_runs(folder: Path, evaluator: RetrievalEvaluator, reports: dict[str, RetrievalReport]) -> None:
    """Write a run for each system and label, and the judgments of each label."""
    from st_xling.evaluation.retrieval import write_judgments, write_run

    for pool in evaluator.pools:
        for label in dict.fromkeys(query.label for query in pool.queries):
            queries = [query for query in pool.queries if query.label == label]
            write_judgments(folder / f"{label}.qrels", queries, pool.passage_ids)
            for system, report in reports.items():
                ranked = {query.id: report.rankings[pool.name][query.id] for query in queries}
                if without_hits := sum(not hits for hits in ranked.values()):
                    # Here they count as 0; trec_eval and most of its relatives take means over the queries of a run.
                    print(
                        f"{label}, {system}: queries without a hit: {without_hits:,}; they have no line in the run; "
                        "trec_eval counts them as 0 with -c",
                        file=sys.stderr,
                    )
                write_run(folder / f"{label}.{system}.trec", ranked, tag=system.replace(" ", "_"))


@app.command("compare", cls=with_options(model_opts.EncoderOptions), rich_help_panel=EVALUATE)
def compare(
    context: typer.Context,
    models: list[str] = argument(
        "MODEL", "Hub ids or folders, with their options: 'e5?prompt=query: &name=E5&layer=7'."
    ),
    data: list[str] | None = option("--data SPEC", "In a form below (default: the phrasebook's text) (repeatable)."),
    languages: list[str] | None = TEST_LANGUAGES,
    tasks: list[str] | None = listed("--tasks", "tatoeba,xsim,xsim++,mining,pool,retrieval,speed,size (default: all)."),
    out: str | None = option("--out DIR", "Folder for the page compare.html and for results, to resume from."),
    samples: int | None = option("--samples", "Bootstrap samples (default: 1000)."),
    seed: int | None = opts.SEED,
    batch_size: int | None = opts.BATCH_SIZE,
) -> None:
    """Compare encoders by many tasks: one page, with intervals and tested differences.

    Evaluates all models on the same items: Tatoeba both ways, xsim and xsim++, mining with a threshold from another
    split, a mixed pool of passages and its language bias, retrieval from each set alone, speed and size. Models are
    ordered only where paired tests, corrected for their number, allow it.

    \b
    examples:
      st-xling compare my-encoder intfloat/multilingual-e5-small \\
          --out my-comparison
      st-xling compare my-encoder \\
          'intfloat/multilingual-e5-small?prompt=query: ' --data tatoeba/v1 \\
          --languages de,fr --tasks tatoeba,xsim --json comparison.json
      st-xling compare my-encoder --data 'de-en=pairs.tsv?size=200' \\
          --data bucc2018

    Data are folders of Tatoeba's, BUCC's or XQuAD-R's files; xx-en=PATH; passages, xx=DIR or xx=FILE.json, as evaluate
    retrieval takes them; or phrasebook:… An item is a pair of sentences, a sentence to mine, or a question. Intervals
    are bootstrap intervals over items. Run the same command again to resume from --out.
    """
    from st_xling.evaluation.compare import compare_models, load_comparison_data, parse_models

    specs = parse_models(models, **options_of(context, model_opts.EncoderOptions).given())
    items = load_comparison_data(data or [], languages, seed=seed or 0)
    settings = given(tasks=tasks, samples=samples, batch_size=batch_size)
    with resumable(out is not None):
        report = compare_models(specs, items, out=out, show_progress_bar=True, **settings)
    print(report.table())
    if out is not None:
        print(f"page: {Path(out) / 'compare.html'}", file=sys.stderr)
    write_results(context, {"compare": report.content, "signature": report.signature})


@app.command("transfer", cls=Command, rich_help_panel=TRAIN)
def transfer(
    context: typer.Context,
    task: Literal["xnli", "pawsx", "pos"] = argument(None, "Inference, paraphrases, or part-of-speech tags."),
    model: str = argument("MODEL", "Encoder: Hub id or folder."),
    train: list[str] = required("--train XX=FILE...", "Files to fine-tune on (repeatable)."),
    test: list[str] = required("--test XX=FILE...", "Files to evaluate on, a column of the table each (repeatable)."),
    out: Path = required("--out DIR", "Folder for the model and its results."),
    hold_out: float | None = option("--hold-out", "Test on this share of the rows, train on the others; see above."),
    resume: bool = flag("--resume", "Resume an interrupted run in --out."),
    overwrite: bool = opts.OVERWRITE,
    epochs: float | None = paper_option("--epochs", "Passes over the training rows."),
    max_steps: int | None = paper_option("--max-steps", "Steps, instead of epochs."),
    batch_size: int | None = paper_option("--batch-size", "Rows per step."),
    learning_rate: float | None = paper_option("--learning-rate", "Peak learning rate."),
    schedule: Literal["constant", "linear", "cosine"] | None = paper_option("--schedule", "Fall of the learning rate."),
    max_length: int | None = paper_option("--max-length", "Tokens of a pair or sentence (default: 128 at most)."),
    seed: int | None = paper_option("--seed", "Seed of the head, dropout and the order of rows (default: 0)."),
    keep: bool = opts.KEEP,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Fine-tune an encoder on English and evaluate it in every language: xnli, pawsx, pos.

    \b
    examples:
      st-xling transfer xnli my-encoder --train en=multinli.jsonl \\
          --test en=xnli.test.tsv de=xnli.test.tsv --out nli
      st-xling transfer pawsx my-encoder --train en=en/train.tsv \\
          --test de=de/test_2k.tsv fr=fr/test_2k.tsv --out para
      st-xling transfer pos my-encoder --train en=en_ewt-ud-train.conllu \\
          --test ar=ar_padt-ud-test.conllu.gz --out tags

    Fine-tuning follows the papers: XNLI 2 epochs of batch 256 at 5e-5 (DAP); PAWS-X 5 and POS 10 epochs of batch 32 at
    2e-5 (AMBER). Scores are accuracy; of POS also the F1 of runs of tags that XTREME prints.

    Several files of a language are joined; FILE?size=1000&seed=0 is a sample of its rows. --hold-out is for sets of one
    split that are line-aligned in all languages.
    """
    from st_xling.models import load_encoder
    from st_xling.models.load import cast_to_saved_dtype
    from st_xling.training import cross_lingual_transfer as fine_tuning
    from st_xling.training.run_folder import RunFolder
    from st_xling.utils.lazy_model import LazyModel

    if keep:
        check_keep(Path(model))
    RunFolder(out, start=model, inputs=[train, test], resume=resume, overwrite=overwrite).check()

    def load() -> Any:
        return cast_to_saved_dtype(
            load_encoder(model, device="cpu", revision=revision, trust_remote_code=trust_remote_code)
        )

    encoder = LazyModel(model, load, revision)  # loaded after the files are read
    options = dataclasses.replace(
        fine_tuning.TASKS[task].options,
        **given(epochs=epochs, max_steps=max_steps, batch_size=batch_size, learning_rate=learning_rate),
        **given(schedule=schedule, max_length=max_length, seed=seed),
    )
    content = fine_tuning.transfer(
        task,
        encoder,
        train,
        test,
        out,
        hold_out=hold_out,
        options=options,
        command=context.obj.line,
        resume=resume,
        overwrite=overwrite,
    )
    result = EvaluationResult(content, *fine_tuning.result_rows(content), content["signature"])
    print_results(context, "transfer", content, result.signature, result.table())
    if keep:
        keep_results(context, f"transfer-{task}", result, Path(model))
