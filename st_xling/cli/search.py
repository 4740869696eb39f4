"""``st-xling search``: passages for a question, found by a bi-encoder and put in order by a cross-encoder."""

from __future__ import annotations

import argparse
import json
from typing import Any

from st_xling.cli.rerank import add_scoring_options

EXAMPLE = """\
examples:
  st-xling encode my-encoder p.jsonl --format jsonl --out p.store
  st-xling search 'Wo liegt Hanoi?' --encoder my-encoder --store p.store --passages p.jsonl --reranker my-reranker

The store has a row for each line of the passages, {"id": ..., "text": ..., "language": ...}; a language that is not
given is identified, and then shown with a question mark.
"""

_OPTIONS = (*("reranker", "top_k", "candidates", "prompt", "token_budget", "autocast", "device", "memory_mib"),)
_SHOWN_CHARS = 90


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    search = commands.add_parser(
        "search",
        help="search passages of several languages, in two stages",
        description="Find the passages nearest to each query in a store, and let a cross-encoder put them in order.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    search.add_argument("queries", metavar="QUERY", nargs="+", help="in any language of the models")
    search.add_argument("--encoder", required=True, metavar="MODEL", help="bi-encoder of the store: Hub id or folder")
    search.add_argument("--store", required=True, metavar="STORE", help="of st-xling encode")
    search.add_argument("--passages", required=True, metavar="FILE", help="that were encoded: JSON lines or TSV")
    search.add_argument("--reranker", metavar="MODEL", help="cross-encoder (default: none, the order of the cosines)")
    search.add_argument("--top-k", type=int, metavar="N", help="passages shown for a query (default: 10)")
    search.add_argument("--candidates", type=int, metavar="N", help="passages that are re-ranked (default: 100)")
    search.add_argument("--prompt", metavar="WORDS", help="put before each query for the bi-encoder, such as 'query: '")
    search.add_argument("--format", choices=("table", "jsonl"), default="table", help="of the output (default: table)")
    search.add_argument("--memory-mib", type=int, metavar="N", help="for one block of the search (default: 256)")
    add_scoring_options(search)
    search.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Search, print what was found."""
    from st_xling.reranking import search_texts

    options = {name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)}
    found = search_texts(
        arguments.queries, arguments.encoder, arguments.store, arguments.passages, progress=True, **options
    )
    for query, hits in zip(arguments.queries, found):
        if arguments.format == "jsonl":
            for hit in hits:
                print(json.dumps({"query": query, **hit.as_dict()}, ensure_ascii=False))
            continue
        print(query)
        width = max([2, *(len(hit.passage_id) for hit in hits)])
        for hit in hits:
            language = f"{hit.language}{'?' if hit.identified else ''}"
            text = " ".join(hit.text.split())
            short = text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
            print(f"{hit.rank:4}  {hit.score:8.4f}  {language:<6}  {hit.passage_id:<{width}}  {short}")
