"""``st-xling evaluate reranking``: does a cross-encoder put the relevant passage first?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_xling.cli.figures import write_figures
from st_xling.cli.keep import add_keep, check_keep, keep

EXAMPLE = """\
examples:
  st-xling evaluate reranking my-reranker --data en=phrasebook --data zh=phrasebook --max-candidates 20
  st-xling evaluate reranking my-reranker --data en=xquad.en.json --data zh=xquad.zh.json --json figures.json
  st-xling evaluate reranking my-reranker --data en=insuranceQA/V2 --data zh=insuranceqa-corpus-zh --json figures.json
  st-xling evaluate reranking my-reranker --data zh=mlqa-dev-zh --query-languages en zh --max-candidates 100

Files in SQuAD's form, labelled pairs, the folders of InsuranceQA v2 (?pool=500) and of its translation, or one folder
in the layout of BEIR, Mr.TyDi or MIRACL whose passages are in the language before the equals sign. ?size=500&seed=0 is
a sample of the queries, the same in each language. The phrasebook needs no files: xx=phrasebook?split=test&size=300,
the same in each language; its test split is read unless --split or ?split= says otherwise.
"""

_POOLS = ("split", "query_languages", "passage_languages", "max_candidates", "without_relevant", "seed")
_EVALUATOR = ("samples", "no_relevant", "cutoff", "token_budget", "autocast", "name")


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    reranking = tasks.add_parser(
        "reranking",
        help="passage re-ranking by a cross-encoder: acc@1, acc@10, MRR, MAP",
        description="Rank each query's candidate passages; figures overall, by query and passage language, and with "
        "bootstrap intervals.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    reranking.add_argument("model", metavar="MODEL", help="cross-encoder: Hub id or folder")
    reranking.add_argument(
        "--data", required=True, action="append", metavar="XX=PATH", help="or xx=phrasebook; may be repeated"
    )
    reranking.add_argument(
        "--split",
        choices=("train", "dev", "test"),
        help="a part of the articles (default: all), or of the phrasebook (default: test)",
    )
    reranking.add_argument("--query-languages", nargs="+", metavar="XX", help="default: all")
    reranking.add_argument("--passage-languages", nargs="+", metavar="XX", help="default: all")
    reranking.add_argument("--max-candidates", type=int, metavar="N", help="drawn for a query (default: all)")
    reranking.add_argument(
        "--without-relevant",
        choices=("exclude", "keep", "error"),
        help="queries without a relevant candidate (default: exclude)",
    )
    reranking.add_argument("--no-relevant", choices=("skip", "zero"), help="those kept: left out, or 0 (default: skip)")
    reranking.add_argument("--seed", type=int, help="of tosses and draws (default: 0)")
    reranking.add_argument("--cutoff", type=int, metavar="K", help="of MAP (default: the whole list)")
    reranking.add_argument("--samples", type=int, metavar="N", help="of the bootstrap (default: 1000)")
    reranking.add_argument("--name", help="of the data, for the signature")
    reranking.add_argument("--token-budget", type=int, metavar="N", help="tokens scored at a time")
    reranking.add_argument("--autocast", choices=("bfloat16", "float16"), help="type to compute in")
    reranking.add_argument("--device", default=None, help="cpu, cuda, … (default: a GPU if there is one)")
    reranking.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    add_keep(reranking)
    reranking.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.data.reranking.specs import load_pool_specs
    from st_xling.evaluation.reranking import RerankingEvaluator
    from st_xling.models.cross_encoder import cross_encoder

    check_keep(arguments)
    asked, judged = (
        {name: getattr(arguments, name) for name in names if hasattr(arguments, name)} for names in (_POOLS, _EVALUATOR)
    )
    pools = load_pool_specs(arguments.data, **asked)
    if (name := phrasebook_name(arguments.data, split=asked.get("split", "test"))) is not None:
        judged.setdefault("name", name)
    evaluator = RerankingEvaluator(pools, show_progress_bar=True, write_csv=False, **judged)
    report = evaluator.report(cross_encoder(arguments.model, head="keep", device=arguments.device))
    print(report.table())
    print(evaluator.signature)
    write_figures(arguments.json, {"reranking": report.as_dict(), "signature": evaluator.signature})
    keep(arguments, "reranking", report.as_dict(), evaluator.signature)
