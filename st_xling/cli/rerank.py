"""``st-xling rerank``: queries and passages to ranked passages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from st_xling.cli.mining_options import output

EXAMPLE = """\
examples:
  st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl --out ranked.jsonl --top-k 10
  st-xling rerank my-reranker --queries q.tsv --passages p.tsv.gz --candidates bm25.trec --out - | head

A line of queries and passages is {"id": ..., "text": ..., "language": ...} (the language may be left out), or with .tsv
in the name id TAB text, perhaps TAB language. Killed or interrupted, the same command goes on from OUT.work, and ends
with the same bytes.
"""

_OPTIONS = ("candidates", "top_k", "token_budget", "autocast", "device", "work", "keep_work")


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    rerank = commands.add_parser(
        "rerank",
        help="rank passages for queries by a cross-encoder",
        description="Score each query's candidate passages, in whatever languages, and write them best first.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    rerank.add_argument("model", metavar="MODEL", help="cross-encoder: Hub id or folder")
    rerank.add_argument("--queries", required=True, metavar="FILE", help="JSON lines or TSV, also .gz and .xz")
    rerank.add_argument("--passages", required=True, metavar="FILE", help="the same")
    rerank.add_argument(
        "--candidates",
        metavar="FILE",
        help="a first stage's result: TREC's run format, or JSON lines with query_id and passage_id or passage_ids "
        "(default: every passage for every query)",
    )
    rerank.add_argument("--out", required=True, metavar="FILE", help="file of the ranked passages, or - for stdout")
    rerank.add_argument("--top-k", type=int, metavar="N", help="passages written for a query (default: all)")
    add_scoring_options(rerank)
    rerank.add_argument("--work", metavar="DIR", help="where work is kept until it is done (default: OUT.work)")
    rerank.add_argument("--keep-work", action="store_true", help="leave it there")
    rerank.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    rerank.set_defaults(run=run)


def add_scoring_options(parser: Any) -> None:
    """How a cross-encoder computes."""
    parser.add_argument(
        "--token-budget", type=int, metavar="N", help="tokens scored at a time (default: 2048, on a GPU 16384)"
    )
    parser.add_argument("--autocast", choices=("bfloat16", "float16"), help="type to compute in (default: the model's)")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")


def run(arguments: argparse.Namespace) -> None:
    """Rank, say what was done, print the signature: on stderr where stdout holds the passages."""
    from st_xling.cli.figures import write_figures
    from st_xling.reranking import rerank_texts

    options = {name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)}
    with output(arguments) as out:
        report = rerank_texts(arguments.model, arguments.queries, arguments.passages, out, progress=True, **options)
    says = sys.stderr if arguments.out == "-" else sys.stdout
    told = f"{report.passages:,} passages for {report.queries:,} queries: {arguments.out}"
    for line in [*report.lines(), told, report.signature]:
        print(line, file=says)
    write_figures(arguments.json, {"rerank": report.as_dict(), "signature": report.signature})
