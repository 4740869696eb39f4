"""``st-xling rerank`` and ``search``: passages for queries, put in order by a cross-encoder."""

from __future__ import annotations

import argparse
import json

from st_xling.cli.model_options import ENCODER, MODEL, load_cross_encoder, load_model
from st_xling.cli.options import JSON, Options, command, output, print_report, set_options, write_results

_SHOWN_CHARS = 90

SCORING = Options("""
--token-budget N               tokens scored at a time (default: 2048, on a GPU 16384)
--autocast {bfloat16,float16}  multiply matrices in this type, the rest as loaded (default: as loaded)
""")


@command("rerank", SCORING, MODEL, JSON)
def rerank(arguments: argparse.Namespace) -> None:
    """Rank passages for queries by a cross-encoder.

    Score each query's candidate passages, in whatever languages, and write them best first.

    MODEL              cross-encoder: Hub id or folder
    --queries FILE     queries: JSON lines or TSV, also .gz, .xz, .bz2 and .zst (required)
    --passages FILE    passages, likewise (required)
    --out FILE         file of the ranked passages, or - for stdout (required)
    --overwrite        replace an earlier file of --out
    --candidates FILE  a first stage's result: TREC's run format, or JSON lines with query_id and passage_id or
                       passage_ids (default: every passage for every query)
    --top-k N          passages written for a query (default: all)
    --work DIR         folder of what is done so far, until all is (default: OUT.work)
    --keep-work        leave that folder

    examples:
      st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl --out ranked.jsonl --top-k 10
      st-xling rerank my-reranker --queries q.tsv --passages p.tsv.gz --candidates bm25.trec --out - | head

    A line of queries and passages is {"id": ..., "text": ..., "language": ...} (the language may be left out), or
    with .tsv in the name id TAB text, perhaps TAB language. Run the same command again to resume from OUT.work
    after a kill or an interrupt.
    """
    from st_xling.reranking import rerank_texts

    options = set_options(arguments, rerank_texts) | {"model": load_cross_encoder(arguments), "progress": True}
    with output(arguments) as out:
        report = rerank_texts(**(options | {"out": out}))
    print_report(arguments, "rerank", report, f"{report.passages:,} passages for {report.queries:,} queries")


@command("search", SCORING, ENCODER, JSON, max_candidates={"dest": "candidates"})
def search(arguments: argparse.Namespace) -> None:
    """Search passages of several languages, in two stages.

    Find the passages nearest to each query in a store, and let a cross-encoder put them in order.

    QUERY...                in any language of the models
    --model MODEL           encoder that made the store: Hub id or folder (required)
    --store STORE           store of the passages, of st-xling encode, or .npy file (required)
    --passages FILE         the passages: JSON lines or TSV (required)
    --format {table,jsonl}  form of the output (default: table)
    --reranker MODEL        cross-encoder that puts them in order (default: none, the cosines do)
    --top-k N               passages shown for a query (default: 10)
    --max-candidates N      passages of a query that are re-ranked (default: 100)
    --memory-mib N          memory for one block of the search (default: 256)

    examples:
      st-xling encode my-encoder p.jsonl --text-format jsonl --out p.store
      st-xling search 'Wo liegt Hanoi?' --model my-encoder --store p.store --passages p.jsonl --reranker my-reranker

    The store has a row for each line of the passages, {"id": ..., "text": ..., "language": ...}; a language that is
    not given is identified, and then shown with a question mark.
    """
    from st_xling.models.view import prompt_text
    from st_xling.reranking import search_texts

    encoder = load_model(arguments, prompted=False)
    prompt = prompt_text(encoder, arguments.prompt, arguments.prompt_name)
    options = set_options(arguments, search_texts) | {"encoder": encoder, "prompt": prompt, "progress": True}
    results = search_texts(arguments.query, **options)
    found = [{"query": query, "hits": [hit.as_dict() for hit in hits]} for query, hits in zip(arguments.query, results)]
    write_results(arguments, {"search": found})
    for query, hits in zip(arguments.query, results):
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
