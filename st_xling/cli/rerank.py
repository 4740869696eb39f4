"""``st-xling rerank`` and ``search``: order passages for queries by a cross-encoder."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.model_options import load_cross_encoder, load_model
from st_xling.cli.options import argument, given, option, output, print_report, write_results
from st_xling.utils.options import Autocast, Backend, Dtype, Pooling

MAX_SHOWN_CHARS = 90


@app.command("rerank", cls=Command)
def rerank(
    context: typer.Context,
    model: str = argument("MODEL", "Cross-encoder: Hub id or folder.", default=...),
    queries: str = option(
        "--queries", metavar="FILE", default=..., help="Queries: JSON lines or TSV, also compressed."
    ),
    passages: str = option("--passages", metavar="FILE", default=..., help="Passages: JSON lines or TSV."),
    out: str = option("--out", metavar="FILE", default=..., help="File of the ranked passages, or - for stdout."),
    candidates: str | None = option(
        "--candidates",
        metavar="FILE",
        help="Result of a first stage: TREC's run format, or JSON lines with query_id and passage_id or "
        "passage_ids (default: every passage for every query).",
    ),
    top_k: int | None = option("--top-k", help="Passages written per query (default: all)."),
    overwrite: bool = opts.OVERWRITE,
    work: str | None = option(
        "--work", metavar="DIR", help="Work folder, kept at the end (default: OUT.work, which is removed)."
    ),
    json: Path | None = opts.JSON,
    token_budget: int | None = model_opts.TOKEN_BUDGET,
    autocast: Autocast | None = model_opts.AUTOCAST,
    device: str | None = model_opts.DEVICE,
    dtype: Dtype | None = model_opts.DTYPE,
    backend: Backend | None = model_opts.BACKEND,
    revision: str | None = model_opts.REVISION,
    trust_remote_code: bool = model_opts.TRUST_REMOTE_CODE,
) -> None:
    """Rank passages for queries by a cross-encoder.

    Scores each query's candidate passages, in whatever languages, and writes them best first.

    \b
    examples:
      st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl --out ranked.jsonl --top-k 10
      st-xling rerank my-reranker --queries q.tsv --passages p.tsv.gz --candidates bm25.trec --out - | head

    A line of queries and passages is {"id": ..., "text": ..., "language": ...} (the language is optional), or with .tsv
    in the name id TAB text, perhaps TAB language. Run the same command again to resume from OUT.work.
    """
    from st_xling.reranking import rerank_texts

    cross_encoder = load_cross_encoder(context)
    with output(context) as opened:
        report = rerank_texts(
            cross_encoder,
            queries,
            passages,
            opened,
            candidates=candidates,
            top_k=top_k,
            token_budget=token_budget,
            autocast=autocast,
            device=device,
            work=work,
            progress=True,
        )
    print_report(context, report, f"{report.passages:,} passages for {report.queries:,} queries")


@app.command("search", cls=Command)
def search(
    context: typer.Context,
    query: list[str] = argument("QUERY", "Queries in any language of the models.", default=...),
    model: str = option("--model", metavar="MODEL", default=..., help="Encoder that made the store: Hub id or folder."),
    store: str = option(
        "--store", metavar="STORE", default=..., help="Store of the passages, of st-xling encode, or .npy file."
    ),
    passages: str = option("--passages", metavar="FILE", default=..., help="The passages: JSON lines or TSV."),
    reranker: str | None = option(
        "--reranker", metavar="MODEL", help="Cross-encoder that orders the passages (default: none)."
    ),
    top_k: int | None = option("--top-k", help="Passages shown per query (default: 10)."),
    max_candidates: int | None = option("--max-candidates", help="Passages re-ranked per query (default: 100)."),
    format: Literal["table", "jsonl"] = option("--format", default="table", help="Format of the output."),
    memory_mib: int | None = opts.MEMORY_MIB,
    json: Path | None = opts.JSON,
    token_budget: int | None = model_opts.TOKEN_BUDGET,
    autocast: Autocast | None = model_opts.AUTOCAST,
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
    """Search passages of several languages, in two stages.

    Finds the passages nearest to each query in a store, and lets a cross-encoder order them.

    \b
    examples:
      st-xling encode my-encoder p.jsonl --text-format jsonl --out p.store
      st-xling search 'Wo liegt Hanoi?' --model my-encoder --store p.store --passages p.jsonl --reranker my-reranker

    The store has a row for each line of the passages, {"id": ..., "text": ..., "language": ...}. A missing language is
    identified, and shown with a question mark.
    """
    from st_xling.models.view import prompt_text
    from st_xling.reranking import search_texts

    encoder = load_model(context, without=("prompt", "prompt_name"))
    results = search_texts(
        query,
        encoder,
        store,
        passages,
        reranker=reranker,
        prompt=prompt_text(encoder, prompt, prompt_name),
        token_budget=token_budget,
        autocast=autocast,
        device=device,
        progress=True,
        **given(top_k=top_k, candidates=max_candidates, memory_mib=memory_mib),
    )
    found = [{"query": each, "hits": [hit.as_dict() for hit in hits]} for each, hits in zip(query, results)]
    write_results(context, {"search": found})
    for each, hits in zip(query, results):
        if format == "jsonl":
            for hit in hits:
                print(json_module.dumps({"query": each, **hit.as_dict()}, ensure_ascii=False))
            continue
        print(each)
        width = max([2, *(len(hit.passage_id) for hit in hits)])
        for hit in hits:
            language = f"{hit.language}{'?' if hit.identified else ''}"
            text = " ".join(hit.text.split())
            short = text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"
            print(f"{hit.rank:4}  {hit.score:8.4f}  {language:<6}  {hit.passage_id:<{width}}  {short}")
