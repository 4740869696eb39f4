"""Search in two stages: a bi-encoder finds passages in a store, a cross-encoder puts them in order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sentence_transformers.base.modules import Router

from st_xling.mining.pipeline.rescore import load_reranker
from st_xling.mining.search.exact import nearest_rows
from st_xling.mining.store import model_identity
from st_xling.mining.text import MiningText
from st_xling.mining.vectors import PrecomputedEmbeddings
from st_xling.models import load_encoder
from st_xling.models.encoding import Role, count_truncated, encode, warn_of_truncated
from st_xling.models.pair_scorer import PairScorer, check_top_k, ranked
from st_xling.reranking.rerank_files import TextRecord, TextRecords
from st_xling.utils.identify import likeliest_language
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.options import Autocast, helpful_arguments
from st_xling.utils.signature import name_of


class Hit(NamedTuple):
    """A passage found for a query.

    Attributes:
        rank: From 1.
        passage_id: Id of the passage.
        score: The cross-encoder's; without one, the cosine.
        cosine: Cosine of query and passage, by the bi-encoder.
        language: Language of the passage, from its file or else identified.
        identified: True if it was identified.
        text: The passage.
    """

    rank: int
    passage_id: str
    score: float
    cosine: float
    language: str
    identified: bool
    text: str


@helpful_arguments
def search_texts(
    queries: Sequence[str],
    encoder: Any,
    store: str | Path | np.ndarray,
    passages: str | Path,
    *,
    reranker: Any = None,
    top_k: int = 10,
    candidates: int = 100,
    prompt: str | None = None,
    token_budget: int | None = None,
    autocast: Autocast | None = None,
    device: str | None = None,
    memory_mib: int = 256,
    progress: bool = False,
) -> list[list[Hit]]:
    """Find the best passages for each query.

    Args:
        queries: In any language of the models.
        encoder: The bi-encoder that made the store, or its Hub id or folder.
        store: Store of ``st-xling encode``, or a ``.npy`` file or array: a row for each line of ``passages``.
        passages: File of :class:`~st_xling.reranking.rerank_files.TextRecords`.
        reranker: A cross-encoder of one label, or its Hub id or folder; without one, the order is the cosines'.
        top_k: Passages returned for a query at most.
        candidates: Passages of a query that the cross-encoder reads; at least ``top_k``.
        prompt: Put before every query for the bi-encoder.
        token_budget: Tokens scored at a time, see :class:`~st_xling.models.pair_scorer.PairScorer`.
        autocast: ``"bfloat16"`` or ``"float16"`` for the cross-encoder to compute in.
        device: Device to compute on; by default a GPU where there is one.
        memory_mib: Bound on one block of the search, in MiB.
        progress: Show bars on stderr.

    Returns:
        A list for each query, best first.

    Raises:
        ValueError: For options out of range, faulty passages, a store of another text or another encoder, a blank
            query, or one that leaves the cross-encoder no room for a passage.
    """
    check_top_k(top_k)
    if reranker is not None and candidates < top_k:
        raise ValueError(f"candidates must be at least top_k: got {candidates} and {top_k}; read more, or show fewer.")
    if not queries or not all(query.strip() for query in queries):
        raise ValueError("expected queries that are not blank, and at least one.")
    with closing(TextRecords(passages, "passages")) as records:
        vectors = PrecomputedEmbeddings.open(store, rows=len(records))
        vectors.check(MiningText(passages, format=records.format))
        embeddings = _embed(queries, encoder, vectors, prompt=prompt, device=device)
        nearest_count = top_k if reranker is None else candidates
        search_device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        nearest = nearest_rows(
            embeddings,
            vectors.rows,
            k=min(nearest_count, len(records)),
            device=search_device,
            memory_mib=memory_mib,
            progress=progress,
        )
        best: list[list[_ScoredRow]] = []
        for rows, cosines in zip(nearest.indices.tolist(), nearest.similarities.tolist()):
            best.append([_ScoredRow(row, cosine, cosine) for row, cosine in zip(rows, cosines)])
        if reranker is not None:
            model, _ = load_reranker(reranker, device)
            scorer = PairScorer(model, token_budget=token_budget, autocast=autocast, progress=progress)
            best = _rerank(scorer, queries, records, best, top_k)
        results = []
        for scored_rows in best:
            hits = [_hit(rank, records[scored.row], scored) for rank, scored in enumerate(scored_rows, 1)]
            results.append(hits)
        return results


class _ScoredRow(NamedTuple):
    """A passage by its row, with its score and the cosine of query and passage."""

    row: int
    score: float
    cosine: float


def _rerank(
    scorer: PairScorer,
    queries: Sequence[str],
    records: TextRecords,
    nearest: Sequence[Sequence[_ScoredRow]],
    top_k: int,
) -> list[list[_ScoredRow]]:
    """Return the best of the nearest passages of each query by a cross-encoder, best first."""
    pairs: list[tuple[str, str]] = []
    for query, candidates in zip(queries, nearest):
        pairs += [(query, records[candidate.row].text) for candidate in candidates]
    ends = np.cumsum([len(candidates) for candidates in nearest])
    logits = np.split(scorer.score(pairs, raw=True), ends[:-1])
    reranked = []
    for candidates, query_logits in zip(nearest, logits):
        best = ranked(scorer, query_logits, top_k)
        reranked.append([candidates[hit.index]._replace(score=hit.score) for hit in best])
    return reranked


def _embed(
    queries: Sequence[str], encoder: Any, vectors: PrecomputedEmbeddings, *, prompt: str | None, device: str | None
) -> np.ndarray:
    """Embed the queries by the model of the store. *Shape:* ``(queries, dim)``"""
    if isinstance(encoder, str):
        model = load_encoder(encoder, device=device)
    elif isinstance(encoder, LazyModel):
        model = encoder.load()
    else:
        model = encoder
    identity = model_identity(model, name_of(encoder))
    store_model = vectors.identity
    if store_model is not None and store_model.fingerprint and store_model.fingerprint != identity.fingerprint:
        raise ValueError(
            f"the queries must be encoded by the model of the store: got {identity}, but {vectors.path} is of "
            f"{store_model}; name that one, or encode the passages again."
        )
    if vectors.store is not None and (language := vectors.store.manifest.settings.get("language")):
        raise ValueError(
            f"queries are centered by the joint mean of the model: {vectors.path} is centered by that of {language}; "
            "encode the passages without --language."
        )
    # The query encoder, where there are two; one encoder takes --prompt as it is.
    role: Role = "query" if isinstance(model[0], Router) else "text"
    warn_of_truncated(count_truncated(model, queries, prompt), len(queries), model)
    return encode(model, queries, prompt=prompt, role=role)


def _hit(rank: int, record: TextRecord, scored: _ScoredRow) -> Hit:
    return Hit(
        rank=rank,
        passage_id=record.id,
        score=scored.score,
        cosine=scored.cosine,
        language=record.language or likeliest_language(record.text),
        identified=record.language is None,
        text=record.text,
    )
