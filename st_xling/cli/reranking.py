"""``st-xling rerank`` and ``search``: order passages for queries by a cross-encoder."""

from __future__ import annotations

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import SEARCH, app, with_options
from st_xling.cli.options import argument, given, option, options_of, required
from st_xling.cli.results import output, print_report, write_results
from st_xling.cli.rules import Needs

MAX_SHOWN_CHARS = 90
SEARCH_RULES = (
    Needs(("max_candidates", "token_budget", "autocast"), "reranker", "the cross-encoder that orders the passages"),
)
WORK = option("--work DIR", "Work folder, which is kept (default: OUT.work, which is removed).")


@app.command("rerank", cls=with_options(model_opts.ScoringOptions, model_opts.LoadOptions), rich_help_panel=SEARCH)
def rerank(
    context: typer.Context,
    model: str = model_opts.CROSS_ENCODER,
    queries: str = required("--queries FILE", "Queries: JSON lines or TSV, also compressed."),
    passages: str = required("--passages FILE", "Passages: JSON lines or TSV."),
    out: str = required("--out FILE", "File of the ranked passages, or - for stdout."),
    candidates: str | None = option("--candidates FILE", "TREC run of a first stage (default: all passages for all)."),
    top_k: int | None = option("--top-k", "Passages written per query (default: all)."),
    overwrite: bool = opts.OVERWRITE,
    work: str | None = WORK,
) -> None:
    """Rank passages for queries by a cross-encoder.

    Scores each query's candidate passages, in whatever languages, and writes them best first.

    \b
    examples:
      st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl \\
          --out ranked.jsonl --top-k 10
      st-xling rerank my-reranker --queries q.tsv --passages p.tsv.gz \\
          --candidates bm25.trec --out - | head

    A line of queries and passages is {"id": ..., "text": ..., "language": ...} (the language is optional), or with .tsv
    in the name id TAB text, perhaps TAB language. Run the same command again to resume from OUT.work.
    """
    from st_xling.reranking import rerank_texts

    cross_encoder = model_opts.lazy_cross_encoder(context, model)
    scoring = options_of(context, model_opts.ScoringOptions)
    with output(context, out, work) as opened:
        report = rerank_texts(
            cross_encoder,
            queries,
            passages,
            opened,
            candidates=candidates,
            top_k=top_k,
            token_budget=scoring.token_budget,
            autocast=scoring.autocast,
            device=options_of(context, model_opts.LoadOptions).device,
            work=work,
            progress=True,
        )
    print_report(context, report, "{passages:,} passages for {queries:,} queries".format(**report.counts))


@app.command(
    "search",
    cls=with_options(model_opts.ScoringOptions, model_opts.EncoderOptions, rules=SEARCH_RULES),
    rich_help_panel=SEARCH,
)
def search(
    context: typer.Context,
    query: list[str] = argument("QUERY", "Queries in any language of the models."),
    model: str = required("--model MODEL", "Encoder that made the store: Hub id or folder."),
    store: str = required("--store STORE", "Store of the passages, of st-xling encode, or .npy file."),
    passages: str = required("--passages FILE", "The passages: JSON lines or TSV."),
    reranker: str | None = option("--reranker MODEL", "Cross-encoder that orders the passages (default: none)."),
    top_k: int | None = option("--top-k", "Passages shown per query (default: 10)."),
    max_candidates: int | None = option("--max-candidates", "Passages re-ranked per query (default: 100)."),
    memory_mib: int | None = opts.MEMORY_MIB,
) -> None:
    """Search passages of several languages, in two stages.

    Finds the passages nearest to each query in a store, and lets a cross-encoder order them.

    \b
    examples:
      st-xling encode my-encoder p.jsonl --text-format jsonl --out p.store
      st-xling search 'Wo liegt Hanoi?' --model my-encoder --store p.store \\
          --passages p.jsonl --reranker my-reranker

    The store has a row for each line of the passages, {"id": ..., "text": ..., "language": ...}. A missing language is
    identified, and shown with a question mark.
    """
    from st_xling.reranking import search_texts

    embedding = model_opts.embedding_model(context, model)
    scoring = options_of(context, model_opts.ScoringOptions)
    results = search_texts(
        query,
        embedding.model,
        store,
        passages,
        reranker=reranker,
        prompt=embedding.prompt,
        token_budget=scoring.token_budget,
        autocast=scoring.autocast,
        device=embedding.device,
        progress=True,
        **given(top_k=top_k, candidates=max_candidates, memory_mib=memory_mib),
    )
    content = []
    for text, hits in zip(query, results):
        content.append({"query": text, "hits": [hit._asdict() for hit in hits]})
    write_results(context, {"search": content})
    for text, hits in zip(query, results):
        print(text)
        width = max([2, *(len(hit.passage_id) for hit in hits)])
        for hit in hits:
            language = f"{hit.language}{'?' if hit.identified else ''}"
            passage = " ".join(hit.text.split())
            if len(passage) > MAX_SHOWN_CHARS:
                passage = f"{passage[: MAX_SHOWN_CHARS - 1]}…"
            print(f"{hit.rank:4}  {hit.score:8.4f}  {language:<6}  {hit.passage_id:<{width}}  {passage}")
