"""``st-xling evaluate retrieval``: does a query find its passage? By language, beside BM25."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.cli.encoder_view import add_view, check_view, load_view
from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep

if TYPE_CHECKING:
    from st_xling.evaluation.retrieval import RetrievalEvaluator, RetrievalReport

EXAMPLE = """\
examples:
  st-xling evaluate retrieval my-encoder --data 'de=phrasebook?size=300&queries=de,en' --bm25
  st-xling evaluate retrieval my-encoder --data ar=mrtydi-v1.1-arabic --data fi=mrtydi-v1.1-finnish --bm25
  st-xling evaluate retrieval my-encoder --data de=mlqa-de --data zh=mlqa-zh --pool mixed --json figures.json
  st-xling evaluate retrieval my-encoder --data en=xquad-r/en.json --data zh=xquad-r/zh.json --pool mixed --measures MAP
  st-xling evaluate retrieval bm25 --data 'fi=miracl?split=dev' --runs runs

A folder in the layout of BEIR, Mr.TyDi or MIRACL, whose passages are in the language before the equals sign; or files
of XQuAD-R, whose sentences are the passages: --pool mixed --measures MAP is LAReQA's measure, over the best 100
sentences (MAP@1000: over 1,000). ?size=500&seed=0 is a sample of the queries. MODEL may be bm25. The phrasebook needs
no files: xx=phrasebook?split=test&size=300&seed=0&queries=xx,yy, of which the test split is read unless --split or
?split= says otherwise. Needs the extra: pip install "st-xling[retrieval]".
"""

BM25 = "bm25"
_SETS = ("split", "query_languages")
_EVALUATOR = ("pool", "measures", "batch_size", "name", "truncate_dim")


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    retrieval = tasks.add_parser(
        "retrieval",
        help="passage retrieval by language: MRR@100, Recall@100; BM25; language bias",
        description="Search passages for queries; figures by language, and from a mixed pool the language bias.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    retrieval.add_argument("model", metavar="MODEL", help="Hub id or folder, or bm25")
    retrieval.add_argument(
        "--data",
        required=True,
        action="append",
        metavar="XX=DIR",
        help="or XX=FILE.json of XQuAD-R, or xx=phrasebook; may be repeated",
    )
    retrieval.add_argument("--split", help="of queries and qrels (default: test)")
    retrieval.add_argument(
        "--query-languages", nargs="+", metavar="XX", help="default: all that a folder has (phrasebook: the passages')"
    )
    retrieval.add_argument(
        "--pool", choices=("separate", "mixed"), help="passages of each set alone (default), or of all languages mixed"
    )
    retrieval.add_argument("--measures", nargs="+", metavar="NAME", help="default: MRR@100 Recall@100")
    retrieval.add_argument("--bm25", action="store_true", default=False, help="BM25's figures beside the model's")
    retrieval.add_argument("--runs", type=Path, default=None, metavar="DIR", help="also write rankings as TREC runs")
    retrieval.add_argument(
        "--skip-bad-lines", action="store_true", default=False, help="leave out faulty lines and unknown passages"
    )
    retrieval.add_argument("--batch-size", type=int, help="texts embedded at a time (default: 64)")
    retrieval.add_argument("--truncate-dim", type=int, metavar="N", help="cut embeddings to this many dimensions")
    retrieval.add_argument("--name", help="of the data, for the signature")
    retrieval.add_argument("--device", default=None, help="cpu, cuda, … (default: a GPU if there is one)")
    retrieval.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    add_view(retrieval, passages=True)
    add_keep(retrieval)
    retrieval.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.retrieval import load_retrieval_specs
    from st_xling.evaluation.retrieval import RetrievalEvaluator, retrieval_table

    if arguments.keep and arguments.model == BM25:
        raise ValueError("--keep keeps figures with a model's folder: got bm25, which has none; leave --keep out.")
    check_keep(arguments)
    check_view(arguments, encoder=arguments.model != BM25)
    asked, judged = (
        {name: getattr(arguments, name) for name in names if hasattr(arguments, name)} for names in (_SETS, _EVALUATOR)
    )
    sets = load_retrieval_specs(arguments.data, skip_bad_lines=arguments.skip_bad_lines, **asked)
    if (name := phrasebook_name(arguments.data, split=asked.get("split", "test"))) is not None:
        judged.setdefault("name", name)
    _tell(sets)
    evaluator = RetrievalEvaluator(sets, show_progress_bar=True, write_csv=False, **judged)
    reports: dict[str, RetrievalReport] = {}
    without_view = evaluator.signature  # BM25's: a prompt or a layer changes nothing of it
    if arguments.model != BM25:
        model, evaluator.view = load_view(
            arguments, None, evaluator.languages, batch_size=evaluator.batch_size, device=arguments.device
        )
        reports[Path(arguments.model).name] = evaluator.report(model)
    if arguments.bm25 or arguments.model == BM25:
        reports["BM25"] = evaluator.bm25_report()
    print(retrieval_table(reports))
    if arguments.bm25 and evaluator.signature != without_view:
        print(f"BM25: {without_view}")
    print(evaluator.signature)
    if arguments.runs is not None:
        _write_runs(arguments.runs, evaluator, reports)
    figures = {name: report.as_dict() for name, report in reports.items()}
    write_figures(arguments.json, {"retrieval": figures, "signature": evaluator.signature})
    keep(arguments, "retrieval", figures, evaluator.signature)


def _tell(sets: Any) -> None:
    """What was read, and what of it cannot be judged."""
    for found in sets:
        queries = ", ".join(f"{code} {len(asked):,}" for code, asked in found.queries.items())
        left = sum(found.n_without_relevant.values())
        more = f"; {left:,} queries without a relevant passage left out" if left else ""
        more += f"; {found.n_absent:,} judged queries are in none of these languages" if found.n_absent else ""
        print(f"{found.language}: {len(found.passages):,} passages; queries: {queries}{more}", file=sys.stderr)


def _write_runs(folder: Path, evaluator: RetrievalEvaluator, reports: dict[str, RetrievalReport]) -> None:
    """A run for each system and label, under the queries' own ids."""
    from st_xling.evaluation.retrieval import write_run

    for system, report in reports.items():
        for pool in evaluator.pools:
            for label in dict.fromkeys(query.label for query in pool.queries):
                names = {query.id: query.id.split(":", 1)[1] for query in pool.queries if query.label == label}
                found = {query: report.rankings[pool.name][query] for query in names}
                write_run(folder / f"{label}.{system}.trec", found, tag=system.replace(" ", "_"), names=names)
