"""``st-xling evaluate``: an encoder or a cross-encoder by one task; a table, and a signature."""

from __future__ import annotations

import argparse
import logging
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.cli.keep import check_keep, keep, publish
from st_xling.cli.model_options import (
    MODEL,
    VIEW,
    VIEW_OF_PASSAGES,
    centered,
    check_center,
    load_cross_encoder,
    load_model,
)
from st_xling.cli.options import JSON, KEEP, Command, Options, command, print_results, set_options

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.evaluation.results import EvaluationResult
    from st_xling.evaluation.retrieval import RetrievalEvaluator, RetrievalReport


logger = logging.getLogger(__name__)

BM25 = "bm25"


def _bucc_threshold(word: str) -> float | str:
    return word if word == "tune" else float(word)


ENGLISH_PAIRS = Options("""
--data DIR        folder of tatoeba.{l3}-eng.{l3,eng} files; or phrasebook:…, or xx-en=PATH (required,
                  repeatable)
--languages LIST  codes, joined by commas, or a group: xnli14, full28, xtreme36, laser112 (default: all)
--skip-bad-lines  leave faulty lines out, and say how many
""")
BATCH = Options("--batch-size N  most texts of a batch (default: as suits the device)")


def _model(arguments: argparse.Namespace, *, publishes: bool = False) -> SentenceTransformer:
    """The encoder, before any data are read and once it is known that results can be kept."""
    check_keep(arguments, publishes=publishes)
    check_center(arguments)
    return load_model(arguments)


def _report(arguments: argparse.Namespace, task: str, result: EvaluationResult, table: str) -> None:
    """Print the results, write them, and save them with the model."""
    print_results(arguments, task, result.metrics, result.signature, table)
    keep(arguments, task, result)


@command("tatoeba", ENGLISH_PAIRS, BATCH, JSON, VIEW, KEEP)
def tatoeba(arguments: argparse.Namespace) -> None:
    """Translation retrieval accuracy, both directions.

    Does a sentence find its translation among all of the other language, by cosine? Each language with English.

    MODEL  Hub id or folder

    examples:
      st-xling evaluate tatoeba my-encoder --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate tatoeba my-encoder --data tatoeba/v1 --languages xtreme36
      st-xling evaluate tatoeba my-encoder --data de-en=test.tsv --data fr-en=test.fr,test.en
      st-xling evaluate tatoeba intfloat/multilingual-e5-small --data tatoeba/v1 --prompt 'query: ' --dtype bfloat16

    The phrasebook needs no files; its test split is read unless ?split= says otherwise.
    """
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.tatoeba_data import english_columns, load_english_pairs

    model = _model(arguments)
    text = load_english_pairs(arguments.data, arguments.languages, skip_bad_lines=arguments.skip_bad_lines)
    evaluator = TatoebaEvaluator(
        text.pairs, data_name=text.name, batch_size=arguments.batch_size, show_progress_bar=True, write_csv=False
    )
    model = centered(model, arguments, *english_columns(evaluator.pairs), batch_size=arguments.batch_size)
    result = evaluator.evaluate(model)
    _report(arguments, "tatoeba", result, result.table())


@command("precision", BATCH, JSON, VIEW, KEEP, at={"default": [1, 5]})
def precision(arguments: argparse.Namespace) -> None:
    """Translations among the N nearest (P@1, P@5), both directions.

    How often is a translation among the N nearest sentences, by cosine? Any language pair.

    MODEL             Hub id or folder
    --data SPEC       xx-yy=PATH, Hub id, phrasebook:… (its test split) (required, repeatable)
    --at NUMBERS      numbers of candidates (default: 1,5)
    --skip-bad-lines  leave faulty lines out, and say how many

    examples:
      st-xling evaluate precision my-encoder --data 'zh-vi=phrasebook?split=test&size=500'
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv --at 1,5
      st-xling evaluate precision my-encoder --data zh-vi=test.tsv --center language \\
          --center-text 'zh-vi=phrasebook?size=2000'
    """
    from st_xling.data import load_data_specs
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.evaluation import PrecisionEvaluator

    model = _model(arguments)
    data = load_data_specs(arguments.data, split="test", skip_bad_lines=arguments.skip_bad_lines)
    evaluator = PrecisionEvaluator(
        data,
        data_name=phrasebook_name(arguments.data, split="test"),
        at=arguments.at,
        batch_size=arguments.batch_size,
        show_progress_bar=True,
        write_csv=False,
    )
    model = centered(model, arguments, *evaluator.columns(), batch_size=arguments.batch_size)
    result = evaluator.evaluate(model)
    _report(arguments, "precision", result, result.table("pair"))


@command("bucc", BATCH, JSON, VIEW, KEEP, threshold={"type": _bucc_threshold})
def bucc(arguments: argparse.Namespace) -> None:
    """Bitext mining: precision, recall and F1 of mined pairs.

    Mine sentence pairs and compare them with gold. The threshold of highest F1 on the training split is applied to
    the split that is evaluated.

    MODEL                  Hub id or folder
    --data DIR             files xx-yy.SPLIT.{xx,yy,gold}, or phrasebook?size=600&gold=100 (required)
    --pairs LIST...        language pairs, as in the files' names: de-en,fr-en (default, of the phrasebook alone: its
                           languages with English)
    --split SPLIT          the part that is evaluated (default: test)
    --train-split SPLIT    the part that gives the threshold (default: training; of the phrasebook: dev)
    --threshold X          a number in its place; or tune: the best on the gold that it is then evaluated by
    --k N                  neighbors that make up a sentence's neighborhood (default: 4)
    --margin {ratio,distance,absolute}  how a cosine is compared with those of the neighbors (default: ratio)
    --retrieval {max,intersect,forward,backward}  which candidates are chosen (default: max)

    examples:
      st-xling evaluate bucc my-encoder --data phrasebook --pairs de-en fr-en
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs de-en fr-en --json figures.json
      st-xling evaluate bucc my-encoder --data bucc2018 --pairs zh-en --split sample --threshold 1.06

    The phrasebook needs no files: phrasebook:de,fr?size=600&gold=100&seed=0 hides 100 translations among 600
    sentences a side, for each language with English or for --pairs; the development split gives the threshold.
    """
    from st_xling.data.spec import is_phrasebook
    from st_xling.evaluation import BuccEvaluator
    from st_xling.evaluation.base import SignedEvaluator
    from st_xling.evaluation.bucc import publishable_thresholds

    if arguments.pairs is None and not is_phrasebook(arguments.data):
        raise ValueError(f"--pairs says which files of {arguments.data} to read: got none; give e.g. --pairs de-en.")
    model = _model(arguments, publishes=True)
    make: Any = BuccEvaluator.from_phrasebook if is_phrasebook(arguments.data) else BuccEvaluator.from_folder
    options = set_options(arguments, make, BuccEvaluator, SignedEvaluator) | {
        "show_progress_bar": True,
        "write_csv": False,
    }
    options.pop("truncate_dim", None)  # the model's
    evaluator = make(arguments.data, **(options | {"pairs": arguments.pairs}))
    model = centered(model, arguments, *evaluator.columns(), batch_size=arguments.batch_size)
    result = evaluator.evaluate(model)
    # JSON has no infinity, the threshold where nothing is correct.
    metrics = {key: value if math.isfinite(value) else None for key, value in result.metrics.items()}
    histograms = {pair: histogram.as_dict() for pair, histogram in evaluator.histograms.items()}  # the card draws them
    print_results(arguments, "bucc", metrics, result.signature, result.table("pair"))
    if arguments.keep:  # the thresholds that mean something elsewhere go into the model's mining.json
        thresholds, left_out = publishable_thresholds(evaluator, result)
        for pair, why in left_out.items():
            logger.warning("the threshold of %s is not published: %s", pair, why)
        publish(Path(arguments.model), thresholds)
    keep(arguments, "bucc", replace(result, metrics={**metrics, "histograms": histograms}))


@command("xsim", ENGLISH_PAIRS, BATCH, JSON, VIEW, KEEP)
def xsim(arguments: argparse.Namespace) -> None:
    """Similarity search errors by margin, both directions.

    Share of sentences whose best match by margin is not their translation; lower is better.

    MODEL            Hub id or folder
    --k N            neighbors that make up a sentence's neighborhood (default: 4)
    --margin {ratio,distance,absolute}  how a cosine is compared with those of the neighbors (default: ratio)
    --plus-plus      also among English sentences that differ in one place and mean something else: a negation or an
                     opposite, another number, another name (xsim++); with the share of errors by each
    --seed N         of those (default: 0)

    examples:
      st-xling evaluate xsim my-encoder --data 'phrasebook:de,fr?split=test&size=500'
      st-xling evaluate xsim my-encoder --data tatoeba/v1 --languages deu,fra
      st-xling evaluate xsim my-encoder --data de-en=test.tsv --plus-plus

    The phrasebook needs no files; its test split is read unless ?split= says otherwise.
    """
    from st_xling.evaluation import xsim_by_language
    from st_xling.evaluation.tatoeba_data import english_columns, load_english_pairs

    model = _model(arguments)
    text = load_english_pairs(arguments.data, arguments.languages, skip_bad_lines=arguments.skip_bad_lines)
    options = set_options(arguments, xsim_by_language) | {"show_progress_bar": True}
    model = centered(model, arguments, *english_columns(text.pairs), batch_size=arguments.batch_size)
    report = xsim_by_language(**(options | {"model": model, "pairs": text.pairs, "name": text.name}))
    _report(arguments, "xsim", report.result(), report.table())


@command("reranking", JSON, MODEL, KEEP)
def reranking(arguments: argparse.Namespace) -> None:
    """Passage re-ranking by a cross-encoder: acc@1, acc@10, MRR, MAP.

    Rank each query's candidate passages; results overall, by query and passage language, and with bootstrap
    intervals.

    MODEL                                 cross-encoder: Hub id or folder
    --data XX=PATH                        questions with passages of a language, in one of the forms below, or
                                          xx=phrasebook (required, repeatable)
    --split {train,dev,test}              part of the articles (default: all), or of the phrasebook (default: test)
    --query-languages LIST...             such as de,zh (default: all)
    --passage-languages LIST...           likewise (default: all)
    --max-candidates N                    most candidates of a query, the others drawn by lot (default: all)
    --without-relevant {exclude,zero,error}  queries without a relevant candidate: left out (default), counted as 0, or
                                          an error
    --seed N                              of what is drawn (default: 0)
    --cutoff N                            rank that MAP looks to (default: the whole list)
    --samples N                           samples of the bootstrap (default: 1000)
    --examples N                          queries to list with their three best passages (default: 0)
    --name NAME                           name of the data, for the signature
    --token-budget N                      tokens scored at a time
    --autocast {bfloat16,float16}         multiply matrices in this type, the rest as loaded (default: as loaded)

    examples:
      st-xling evaluate reranking my-reranker --data en=phrasebook --data zh=phrasebook --max-candidates 20
      st-xling evaluate reranking my-reranker --data en=xquad.en.json --data zh=xquad.zh.json --json figures.json
      st-xling evaluate reranking my-reranker --data en=insuranceQA/V2 --data zh=insuranceqa-corpus-zh
      st-xling evaluate reranking my-reranker --data zh=mlqa-dev-zh --query-languages en,zh --max-candidates 100

    Files in SQuAD's form, labelled pairs, the folders of InsuranceQA v2 (?pool=500) and of its translation, or one
    folder in the layout of BEIR, Mr.TyDi or MIRACL whose passages are in the language before the equals sign.
    ?size=500&seed=0 is a sample of the queries, the same in each language. The phrasebook needs no files:
    xx=phrasebook?split=test&size=300, the same in each language; its test split is read unless --split or ?split=
    says otherwise.
    """
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.reranking.specs import load_pool_specs
    from st_xling.evaluation import EvaluationResult, RerankingEvaluator

    check_keep(arguments)
    model = load_cross_encoder(arguments)
    scored = {}
    if arguments.without_relevant == "zero":
        arguments.without_relevant, scored = "keep", {"no_relevant": "zero"}
    pools = load_pool_specs(arguments.data, **set_options(arguments, load_pool_specs))
    arguments.name = arguments.name or phrasebook_name(arguments.data, split=arguments.split or "test")
    options = set_options(arguments, RerankingEvaluator) | scored
    options.pop("seed", None)  # of the sample, not of the bootstrap
    evaluator = RerankingEvaluator(pools, show_progress_bar=True, write_csv=False, **options)
    report = evaluator.report(model)
    print_results(arguments, "reranking", report.as_dict(), evaluator.signature, report.table())
    # Passages of the examples stay at home: what is kept goes to the Hub with the model.
    metrics = replace(report, examples={}).as_dict()
    keep(arguments, "reranking", EvaluationResult(metrics, *report.rows(), evaluator.signature))


@command("retrieval", JSON, VIEW_OF_PASSAGES, KEEP)
def retrieval(arguments: argparse.Namespace) -> None:
    """Passage retrieval by language: MRR@100, Recall@100; BM25; language bias.

    Search passages for queries; results by language, and from a mixed pool the language bias.

    MODEL                    Hub id or folder, or bm25
    --data XX=DIR            folder of passages of a language, with queries and qrels; or XX=FILE.json of XQuAD-R, or
                             xx=phrasebook (required, repeatable)
    --bm25                   BM25's results beside the model's
    --runs DIR               also write rankings into this folder, as TREC runs
    --skip-bad-lines         leave faulty lines and unknown passages out, and say how many
    --split SPLIT            part of queries and qrels (default: test)
    --query-languages LIST...  such as de,zh (default: all that a folder has; of the phrasebook: the passages')
    --pool {separate,mixed}  passages of each set alone (default), or of all languages mixed
    --measures LIST...       of ir_measures, such as MAP,nDCG@10 (default: MRR@100,Recall@100)
    --batch-size N           most texts of a batch (default: as suits the device)
    --name NAME              name of the data, for the signature

    examples:
      st-xling evaluate retrieval my-encoder --data 'de=phrasebook?size=300&queries=de,en' --bm25
      st-xling evaluate retrieval my-encoder --data ar=mrtydi-v1.1-arabic --data fi=mrtydi-v1.1-finnish --bm25
      st-xling evaluate retrieval my-encoder --data de=mlqa-de --data zh=mlqa-zh --pool mixed --json figures.json
      st-xling evaluate retrieval my-encoder --data en=xquad-r/en.json --data zh=xquad-r/zh.json --pool mixed \\
          --measures MAP
      st-xling evaluate retrieval bm25 --data 'fi=miracl?split=dev' --runs runs

    A folder in the layout of BEIR, Mr.TyDi or MIRACL, whose passages are in the language before the equals sign; or
    files of XQuAD-R, whose sentences are the passages: --pool mixed --measures MAP is LAReQA's measure, over the best
    100 sentences (MAP@1000: over 1,000). ?size=500&seed=0 is a sample of the queries. MODEL may be bm25. The
    phrasebook needs no files: xx=phrasebook?split=test&size=300&seed=0&queries=xx,yy, of which the test split is read
    unless --split or ?split= says otherwise. Needs the extra: pip install "st-xling[retrieval]".
    """
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.retrieval import load_retrieval_specs
    from st_xling.evaluation.base import SignedEvaluator
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.evaluation.retrieval import RetrievalEvaluator, retrieval_table
    from st_xling.evaluation.retrieval.evaluator import retrieval_rows
    from st_xling.models import load_encoder

    if arguments.keep and arguments.model == BM25:
        raise ValueError("--keep saves results in a model's folder: got bm25, which has none; leave --keep out.")
    model = None
    if arguments.model != BM25:
        model = _model(arguments)
    elif used := sorted(
        {*set_options(arguments, load_encoder), *(["center"] if arguments.center else [])} - {"device"}
    ):
        raise ValueError(f"--{used[0].replace('_', '-')} is for encoders: got bm25; leave it out.")
    sets = load_retrieval_specs(arguments.data, **set_options(arguments, load_retrieval_specs))
    _print_sets(sets)
    arguments.name = arguments.name or phrasebook_name(arguments.data, split=arguments.split or "test")
    options = set_options(arguments, RetrievalEvaluator, SignedEvaluator)
    options.pop("truncate_dim", None)  # the model's
    evaluator = RetrievalEvaluator(sets, show_progress_bar=True, write_csv=False, **options)
    reports: dict[str, RetrievalReport] = {}
    of_bm25 = evaluator.signature  # a prompt or a layer changes nothing of it
    if model is not None:
        model = centered(model, arguments, None, evaluator.languages, batch_size=evaluator.batch_size)
        reports[Path(arguments.model).name] = evaluator.report(model)
    if arguments.bm25 or model is None:
        reports["BM25"] = evaluator.bm25_report()
    table = retrieval_table(reports)
    if arguments.bm25 and evaluator.signature != of_bm25:
        table += f"\nBM25: {of_bm25}"
    metrics = {name: report.as_dict() for name, report in reports.items()}
    result = EvaluationResult(metrics, *retrieval_rows(reports), evaluator.signature)
    _report(arguments, "retrieval", result, table)
    if arguments.runs is not None:
        _write_runs(Path(arguments.runs), evaluator, reports)


def _print_sets(sets: Any) -> None:
    """What was read, and what of it cannot be evaluated."""
    for part in sets:
        queries = ", ".join(f"{code} {len(texts):,}" for code, texts in part.queries.items())
        left = sum(part.n_without_relevant.values())
        more = f"; {left:,} queries without a relevant passage left out" if left else ""
        more += f"; {part.n_absent:,} judged queries are in none of these languages" if part.n_absent else ""
        print(f"{part.language}: {len(part.passages):,} passages; queries: {queries}{more}", file=sys.stderr)


def _write_runs(folder: Path, evaluator: RetrievalEvaluator, reports: dict[str, RetrievalReport]) -> None:
    """A run for each system and label, under the queries' own ids."""
    from st_xling.evaluation.retrieval import write_run

    for system, report in reports.items():
        for pool in evaluator.pools:
            for label in dict.fromkeys(query.label for query in pool.queries):
                names = {query.id: query.id.split(":", 1)[1] for query in pool.queries if query.label == label}
                ranked = {query: report.rankings[pool.name][query] for query in names}
                write_run(folder / f"{label}.{system}.trec", ranked, tag=system.replace(" ", "_"), names=names)


TASKS: tuple[Command, ...] = (tatoeba, precision, bucc, xsim, reranking, retrieval)


def add_parser(commands: Any) -> None:
    """Add ``evaluate`` and its tasks to the commands."""
    evaluate = commands.add_parser(
        "evaluate",
        help="evaluate an encoder or a cross-encoder",
        description="Evaluate a model by one task: a table, and a signature that says what was measured. Each task's "
        "--help has examples; --keep saves results with the model, for its card.",
    )
    tasks = evaluate.add_subparsers(title="tasks", required=True, metavar="TASK")
    for task in TASKS:
        task.add_parser(tasks)
