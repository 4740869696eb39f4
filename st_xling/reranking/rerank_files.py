"""Rank the passages of files for the queries of a file; the same call resumes a killed one."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.pipeline.rescore import load_reranker
from st_xling.mining.store import model_identity
from st_xling.models.pair_scorer import PairScorer, check_top_k, ranked
from st_xling.models.view import model_options
from st_xling.reranking.records import FirstStage, TextRecords
from st_xling.utils.choices import Autocast
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer
from st_xling.utils.loaded import name_of
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, deliver, work_folder, work_path
from st_xling.utils.signature import sign

# Pairs scored between two saves, and sorted by length together: more would pad hardly less.
_PAIRS = 2000

_COUNTS = ("queries", "passages", "without_candidates", "long_queries", "cut_passages")
_RANKED = "ranked.jsonl"


def rerank_texts(
    model: Any,
    queries: str | Path,
    passages: str | Path,
    out: Output,
    *,
    candidates: str | Path | None = None,
    top_k: int | None = None,
    token_budget: int | None = None,
    autocast: Autocast | None = None,
    device: str | None = None,
    work: str | Path | None = None,
    progress: bool = False,
) -> RerankReport:
    """Rank each query's candidates by a cross-encoder, and write them query by query, best first.

    A line of the result: ``{"query_id", "rank", "passage_id", "score", "language", "text"}``, the language ``null``
    where the file of passages names none. A query without candidates, or so long that it leaves the model no room for a
    passage, has no lines; both are counted.

    What is ranked is kept in ``work`` from time to time. Repeat the same call to resume a killed one.

    Args:
        model: A cross-encoder of one label, or the Hub id or folder of one.
        queries: File of :class:`~st_xling.reranking.records.TextRecords`.
        passages: The same; only ids are in memory.
        out: File, replaced if it exists; or a binary stream.
        candidates: A first stage's result, see :class:`~st_xling.reranking.records.FirstStage`; by default
            every passage is a candidate for every query.
        top_k: Passages of a query that are written at most; all by default.
        token_budget: Tokens scored at a time, see :class:`~st_xling.models.pair_scorer.PairScorer`.
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in.
        device: Where to score, for a model that is loaded; by default a GPU where there is one.
        work: Work folder, which is kept at the end; by default ``OUT.work``, or for a stream a temporary one, which are
            removed.
        progress: Show a bar on stderr.
    Returns:
        Counts and signature.
    Raises:
        ValueError: For faulty files, unknown ids, options out of range, a model without a head of one score, or a work
            folder of another task.
        OSError: For a full disk; what was done before stays.
    """
    check_top_k(top_k)
    check_outputs({"out": out}, [queries, passages, candidates, name_of(model)], folders={"work": work_path(out, work)})
    with ExitStack() as stack:
        texts = TextRecords(queries, "queries"), TextRecords(passages, "passages")
        for records in texts:
            stack.callback(records.close)
        first_stage = FirstStage(candidates, *texts)
        encoder, name = load_reranker(model, device)
        scorer = PairScorer(encoder, token_budget=token_budget, autocast=autocast, long_queries="lowest")
        identity = model_identity(encoder, name)
        task = {
            "command": "rerank",
            "model": identity.fingerprint,
            "queries": texts[0].sha256,
            "passages": texts[1].sha256,
            "candidates": first_stage.sha256,
            "top_k": top_k,
            "token budget": scorer.token_budget,
            "autocast": autocast,
            "activation": str(scorer.activation),
        }
        folder = stack.enter_context(work_folder(out, work, task))
        counts, finished = dict.fromkeys(_COUNTS, 0), folder.steps
        with (
            atomic_writer(folder.path / _RANKED) as stream,
            progress_bar(total=len(texts[0]), unit="queries", desc="re-ranking", show=progress) as bar,
        ):
            # Each group of queries is a step of the folder, with its counts.
            for group in first_stage.groups(_PAIRS):
                step = f"queries-{group.start}"
                if step not in finished:
                    own, lines = _rank(scorer, *texts, first_stage, top_k, group)
                    with folder.writing(step, f"{step}.jsonl", counts=own) as path:
                        path.write_bytes(lines)
                own = folder.listed[step]["counts"]
                counts = {name: counts[name] + own[name] for name in _COUNTS}
                stream.write((folder.path / f"{step}.jsonl").read_bytes())
                bar.update(len(group))
        deliver(folder.path / _RANKED, out)
        if work is None:
            folder.remove()
    files = {records.what: f"{Path(records.path).name}@{records.sha256[:8]}" for records in texts}
    signature = sign(
        "rerank",
        f"model:{identity}",
        *(f"{name}:{value}" for name, value in {**model_options(encoder), **files}.items()),
        candidates="all" if candidates is None else f"{Path(candidates).name}@{first_stage.sha256[:8]}",
        top_k=top_k or "all",
    )
    return RerankReport(**counts, signature=signature)


@dataclass(frozen=True)
class RerankReport:
    """Counts of a call of :func:`rerank_texts`.

    Attributes:
        queries: In the file.
        passages: Lines written.
        without_candidates: Queries that had none, and have no lines.
        long_queries: Queries that leave the model no room for a passage, and have no lines.
        cut_passages: Pairs whose passage was cut to the model's length.
        signature: What the result depends on.
    """

    queries: int
    passages: int
    without_candidates: int
    long_queries: int
    cut_passages: int
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """The counts, without the signature."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """Lines for people: what was skipped and cut, if any."""
        counts = {
            "queries without candidates, skipped": self.without_candidates,
            "queries too long for the model, skipped": self.long_queries,
            "passages cut to the model's length": self.cut_passages,
        }
        return [f"{count:,} {what}" for what, count in counts.items() if count]


def _rank(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    first_stage: FirstStage,
    top_k: int | None,
    group: range,
) -> tuple[dict[str, int], bytes]:
    """Counts, and the ranked passages of a group of queries as lines."""
    places = [first_stage.of(query) for query in group]
    # A passage that several queries of the group share is read once.
    records = {place: passages[place] for place in np.unique(np.concatenate(places)).tolist()}
    texts = queries[group.start : group.stop]
    cut = scorer.counts.cut_passages
    pairs = [(query.text, records[place].text) for query, own in zip(texts, places) for place in own.tolist()]
    logits = scorer.score(pairs, raw=True)
    counts = dict.fromkeys(_COUNTS, 0) | {"queries": len(group), "cut_passages": scorer.counts.cut_passages - cut}
    ends = np.cumsum([len(own) for own in places])
    lines = []
    for query, own, scores in zip(texts, places, np.split(logits, ends[:-1])):
        if not len(own) or np.isneginf(scores).all():
            counts["long_queries" if len(own) else "without_candidates"] += 1
            continue
        best = [(records[int(own[hit.index])], hit.score) for hit in ranked(scorer, scores, top_k)]
        for rank, (passage, score) in enumerate(best, 1):
            line = {
                "query_id": query.id,
                "rank": rank,
                "passage_id": passage.id,
                "score": float(f"{score:.7g}"),  # as many digits as a float32 has
                "language": passage.language,
                "text": passage.text,
            }
            lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        counts["passages"] += len(best)
    return counts, b"".join(lines)
