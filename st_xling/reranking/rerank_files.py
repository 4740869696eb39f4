"""Files of queries and passages in, ranked passages out; killed at any moment, the same call goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
from tqdm import tqdm

from st_xling.mining.embedding.model_identity import model_identity
from st_xling.mining.pipeline.rescore import load_reranker
from st_xling.models.scoring.pair_scorer import PairScorer
from st_xling.models.scoring.ranking import check_top_k, ranked
from st_xling.reranking.candidates import AllPassages, Candidates, FirstStage, groups
from st_xling.reranking.rerank_report import RerankReport
from st_xling.reranking.text_records import TextRecords
from st_xling.utils.deliver import Output, deliver, work_folder, work_path
from st_xling.utils.io import append_line, naming_full_disk, read_journal, write_atomic
from st_xling.utils.paths import check_outputs

# Pairs scored between two saves, and sorted by length together: more would pad hardly less.
_PAIRS = 2000

_COUNTS = ("queries", "passages", "without_candidates", "long_queries", "cut_passages")


def rerank_texts(
    model: Any,
    queries: str | Path,
    passages: str | Path,
    out: Output,
    *,
    candidates: str | Path | None = None,
    top_k: int | None = None,
    token_budget: int | None = None,
    autocast: str | None = None,
    device: str | None = None,
    work: str | Path | None = None,
    keep_work: bool = False,
    progress: bool = False,
) -> RerankReport:
    """Rank each query's candidates by a cross-encoder, and write them query by query, best first.

    A line of the result: ``{"query_id", "rank", "passage_id", "score", "language", "text"}``, the language ``null``
    where the file of passages names none. A query without candidates, or so long that it leaves the model no room for a
    passage, has no lines; both are counted.

    What is ranked is kept in ``work`` from time to time. Called again after it was killed, the same call goes on from
    there and ends with the same bytes, on the same machine and device.

    Args:
        model: A cross-encoder of one label, or the Hub id or folder of one.
        queries: File of :class:`~st_xling.reranking.text_records.TextRecords`.
        passages: The same; only ids are in memory.
        out: File, replaced if it exists; or a binary stream.
        candidates: A first stage's result, see :class:`~st_xling.reranking.candidates.FirstStage`; by default
            every passage is a candidate for every query.
        top_k: Passages of a query that are written at most; all by default.
        token_budget: Tokens scored at a time, see :class:`~st_xling.models.scoring.pair_scorer.PairScorer`.
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in.
        device: Where to score, for a model that is loaded; by default a GPU where there is one.
        work: Folder of the work; by default ``OUT.work``, or for a stream one that does not outlive the call.
        keep_work: Leave it when all is done.
        progress: Show a bar on stderr.
    Returns:
        Figures and signature.
    Raises:
        ValueError: For faulty files, unknown ids, options out of range, a model without a head of one score, or a work
            folder of another task.
        OSError: For a full disk; what was done before stays.
    """
    check_top_k(top_k)
    check_outputs({"out": out}, [queries, passages, candidates, model], folders={"work": work_path(out, work)})
    with ExitStack() as stack:
        asked, found = TextRecords(queries, "queries"), TextRecords(passages, "passages")
        for records in (asked, found):
            stack.callback(records.close)
        chosen = AllPassages(found) if candidates is None else FirstStage(candidates, asked, found)
        encoder, name = load_reranker(model, device)
        scorer = PairScorer(encoder, token_budget=token_budget, autocast=autocast, long_queries="lowest")
        identity = model_identity(encoder, name)
        task = {
            "command": "rerank",
            "model": identity.fingerprint,
            "queries": asked.sha256,
            "passages": found.sha256,
            "candidates": chosen.sha256,
            "top_k": top_k,
            "token budget": scorer.token_budget,
            "autocast": autocast,
            "activation": str(scorer.activation),
        }
        folder = stack.enter_context(work_folder(out, work, task))
        counts = _rank_all(scorer, asked, found, chosen, top_k, folder.path, progress=progress)
        # A copy: as long as the journal stands, so does the file it speaks of.
        deliver(folder.path / "ranked.jsonl", out, keep=True)
        if not keep_work:
            folder.remove()
    first = "all" if candidates is None else f"{Path(candidates).name}@{chosen.sha256[:8]}"
    return RerankReport.of(counts, identity, queries=asked, passages=found, candidates=first, top_k=top_k)


def _rank_all(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    candidates: Candidates,
    top_k: int | None,
    folder: Path,
    *,
    progress: bool,
) -> dict[str, int]:
    """Write what is not yet written; the journal says what is."""
    path, journal = folder / "ranked.jsonl", folder / "journal.jsonl"
    done = _done(journal, path)
    with (
        naming_full_disk(path),
        path.open("ab") as stream,
        tqdm(total=len(queries), initial=done["next"], unit="query", desc="re-ranking", disable=not progress) as bar,
    ):
        stream.truncate(done["bytes"])  # what was written after the last save may be half a line
        for group in groups(candidates, len(queries), pairs=_PAIRS):
            if group.start < done["next"]:
                continue
            counts = _rank(scorer, queries, passages, candidates, top_k, group, stream)
            stream.flush()
            os.fsync(stream.fileno())
            done = {"next": group.stop, "bytes": path.stat().st_size} | {
                key: done[key] + counts[key] for key in _COUNTS
            }
            append_line(journal, json.dumps(done))
            bar.update(len(group))
    return done


def _done(journal: Path, path: Path) -> dict[str, int]:
    """The last entry of the journal of which ``path`` holds all bytes; what comes after it leaves the journal.

    A journal may outlive its file: the folder was copied in part, or the power failed.
    """
    start = {"next": 0, "bytes": 0, **dict.fromkeys(_COUNTS, 0)}
    size = path.stat().st_size if path.exists() else 0
    is_good = lambda entry: _is_entry(entry, start.keys()) and entry["bytes"] <= size  # noqa: E731
    good = list(takewhile(is_good, read_journal(journal)))
    if journal.exists():
        write_atomic(journal, "".join(json.dumps(entry) + "\n" for entry in good).encode())
    return good[-1] if good else start


def _is_entry(entry: Any, keys: Collection[str]) -> bool:
    return isinstance(entry, dict) and entry.keys() == keys and all(type(value) is int for value in entry.values())


def _rank(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    candidates: Candidates,
    top_k: int | None,
    group: range,
    stream: IO[bytes],
) -> dict[str, int]:
    places = [candidates.of(query) for query in group]
    records = {place: passages[place] for place in np.unique(np.concatenate(places)).tolist()}
    asked = queries[group.start : group.stop]
    cut = scorer.counts.cut_passages
    pairs = [(query.text, records[place].text) for query, own in zip(asked, places) for place in own.tolist()]
    logits = scorer.score(pairs, raw=True)
    counts = {key: 0 for key in _COUNTS} | {"queries": len(group), "cut_passages": scorer.counts.cut_passages - cut}
    ends = np.cumsum([len(own) for own in places])
    for query, own, scores in zip(asked, places, np.split(logits, ends[:-1])):
        if not len(own) or np.isneginf(scores).all():
            counts["long_queries" if len(own) else "without_candidates"] += 1
            continue
        best = [(records[int(own[found.index])], found.score) for found in ranked(scorer, scores, top_k)]
        stream.writelines(ranked_lines(query.id, best))
        counts["passages"] += len(best)
    return counts


def ranked_lines(query_id: str, best: Sequence[tuple[Any, float]]) -> list[bytes]:
    """A query's ranked passages, a line of JSON each.

    Args:
        query_id: Of the query.
        best: Passages with their scores, best first.
    """
    rows = [
        {
            "query_id": query_id,
            "rank": rank,
            "passage_id": passage.id,
            # As many digits as a float32 has.
            "score": float(f"{score:.7g}"),
            "language": passage.language,
            "text": passage.text,
        }
        for rank, (passage, score) in enumerate(best, 1)
    ]
    return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
