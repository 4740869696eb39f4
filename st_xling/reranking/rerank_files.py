"""Rank the passages of files for the queries of a file; the same call resumes a killed one.

Ids of queries and passages are in memory; their text is read from the disk when it is needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from st_xling.data.check import FaultLog, is_unicode
from st_xling.data.formats import is_id_header
from st_xling.mining.pipeline.rescore import load_reranker
from st_xling.mining.store import model_identity
from st_xling.mining.text import IndexedLines, is_id, json_object
from st_xling.models.pair_scorer import PairScorer, check_top_k, ranked
from st_xling.models.view import model_options
from st_xling.utils.io import atomic_writer
from st_xling.utils.options import Autocast, TextFormat, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, deliver, work_folder, work_path
from st_xling.utils.signature import name_of, sign
from st_xling.utils.terminal import progress_bar
from st_xling.utils.text import decode_line, raw_lines

# Pairs scored between two saves, and sorted by length together: more would pad hardly less.
_PAIRS = 2000

_COUNTS = ("queries", "passages", "without_candidates", "long_queries", "cut_passages")
_RANKED = "ranked.jsonl"


@helpful_arguments
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
        queries: File of :class:`TextRecords`.
        passages: The same; only ids are in memory.
        out: File, replaced if it exists; or a binary stream.
        candidates: A first stage's result in TREC's run format, see :func:`read_candidates`; by default every passage
            is a candidate for every query.
        top_k: Passages of a query that are written at most; all by default.
        token_budget: Tokens scored at a time, see :class:`~st_xling.models.pair_scorer.PairScorer`.
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in.
        device: Device to score on, for a model that is loaded; by default a GPU where there is one.
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
        places, candidates_sha256 = read_candidates(candidates, *texts)
        encoder, name = load_reranker(model, device)
        scorer = PairScorer(encoder, token_budget=token_budget, autocast=autocast, long_queries="lowest")
        identity = model_identity(encoder, name)
        task = {
            "command": "rerank",
            "model": identity.fingerprint,
            "queries": texts[0].sha256,
            "passages": texts[1].sha256,
            "candidates": candidates_sha256,
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
            for group in _groups([len(own) for own in places]):
                step = f"queries-{group.start}"
                if step not in finished:
                    own, lines = _rank(scorer, *texts, places, top_k, group)
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
        candidates="all" if candidates is None else f"{Path(candidates).name}@{candidates_sha256[:8]}",
        top_k=top_k or "all",
    )
    return RerankReport(counts, signature)


@dataclass(frozen=True)
class RerankReport:
    """Counts of a call of :func:`rerank_texts`.

    Attributes:
        counts: ``queries``: in the file; ``passages``: lines written; ``without_candidates`` and ``long_queries``
            (which leave the model no room for a passage): queries that have no lines; ``cut_passages``: pairs whose
            passage was cut to the model's length.
        signature: Everything that the result depends on.
    """

    counts: dict[str, int]
    signature: str

    def as_dict(self) -> dict[str, int]:
        """Return the counts."""
        return self.counts

    def lines(self) -> list[str]:
        """Return lines for people: what was skipped and cut, if any."""
        told = {
            "without_candidates": "queries without candidates, skipped",
            "long_queries": "queries too long for the model, skipped",
            "cut_passages": "passages cut to the model's length",
        }
        return [f"{self.counts[name]:,} {what}" for name, what in told.items() if self.counts[name]]


def _rank(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    candidates: Sequence[np.ndarray],
    top_k: int | None,
    group: range,
) -> tuple[dict[str, int], bytes]:
    """Return counts, and the ranked passages of a group of queries as lines."""
    places = candidates[group.start : group.stop]
    # A passage that several queries of the group share is read once.
    records = {place: passages[place] for place in np.unique(np.concatenate(places)).tolist()}
    texts = queries[group.start : group.stop]
    cut = scorer.cut_passages
    pairs = [(query.text, records[place].text) for query, own in zip(texts, places) for place in own.tolist()]
    logits = scorer.score(pairs, raw=True)
    counts = dict.fromkeys(_COUNTS, 0) | {"queries": len(group), "cut_passages": scorer.cut_passages - cut}
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


class TextRecord(NamedTuple):
    """A query or a passage.

    Attributes:
        id: Unique in its file.
        text: With its title before it, where the file has titles.
        language: Its code; ``None`` where the file names none.
    """

    id: str
    text: str
    language: str | None = None


class TextRecords(IndexedLines[TextRecord]):
    """The records of a file in their order; ids are in memory, and 8 bytes a line.

    A line is JSON, ``{"id": …, "text": …, "language": …}`` (``_id`` and ``title`` as in BEIR's files), or where the
    file's name holds ``.tsv``, ``id TAB text`` or ``id TAB text TAB language``. The language is optional.

    Args:
        path: UTF-8, plain or packed.
        what: Name of the records in errors: ``"queries"``, ``"passages"``.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: no JSON, no id, no text, an id twice; for a file without lines.

    Attributes:
        sha256: Hash of the file's lines.
        rows: Id → place, from 0.
        format: Name of the lines' form in :mod:`st_xling.mining.text`.
    """

    def __init__(self, path: str | Path, what: str) -> None:
        self.path, self.what = str(path), what
        self.format: TextFormat = "bucc" if ".tsv" in Path(path).suffixes else "jsonl"
        faults, digest = FaultLog(can_skip=False, what=what), hashlib.sha256()
        self.rows: dict[str, int] = {}
        for number, raw in enumerate(raw_lines(path), 1):
            digest.update(raw + b"\n")
            try:
                record = self.parse(raw, self.path, number)
            except ValueError as error:
                faults.add(path, number, "bad line", str(error))
                continue
            if record.id in self.rows:
                faults.add(path, number, "duplicate id", f"{record.id}, as in line {self.rows[record.id] + 1}")
            self.rows[record.id] = number - 1
        faults.finalize()
        if not self.rows:
            raise ValueError(f"expected {what} in {path}: got a file without lines.")
        self.sha256 = digest.hexdigest()
        super().__init__(path)

    def parse(self, raw: bytes, path: str, number: int) -> TextRecord:
        name: Any
        text: Any
        line, fault = decode_line(raw)
        if line is None:
            raise ValueError(f"expected UTF-8, got {fault}")
        if self.format == "jsonl":
            value = json_object(line)
            name, text = value.get("id", value.get("_id")), value.get("text")
            title, language = str(value.get("title") or "").strip(), value.get("language")
            if not is_id(name) or not isinstance(text, str):
                raise ValueError('expected a string or whole number "id" and a string "text"')
            text = f"{title} {text}" if title else text
        else:
            cells = line.split("\t")
            if number == 1 and is_id_header(cells):
                raise ValueError(
                    f"expected {self.what}, got the header {', '.join(cells)}; take it away: tail -n +2 {path}"
                )
            if not 2 <= len(cells) <= 3:
                raise ValueError(f"expected id TAB text, perhaps TAB language, got {len(cells)} columns")
            name, text, language = cells if len(cells) == 3 else [*cells, ""]
        if not str(name).strip() or not text.strip():
            raise ValueError("expected an id and a text that are not blank")
        if not is_unicode(f"{name}{text}"):
            raise ValueError("expected text, got half a surrogate pair")
        return TextRecord(str(name), text, str(language or "").strip() or None)


def read_candidates(
    path: str | Path | None, queries: TextRecords, passages: TextRecords
) -> tuple[list[np.ndarray], str]:
    """Read the passages of each query that a first stage found.

    Args:
        path: Lines of TREC's run format, ``query Q0 passage rank score tag``, plain or packed. Their order counts, and
            a passage twice for a query counts once. ``None``: every passage for every query.
        queries: Those that the file may name.
        passages: Likewise.
    Returns:
        For each query the places of its passages; the hash of the file's lines, or ``"all"``.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: wrong columns, an id that is unknown.
    """
    if path is None:
        return [np.arange(len(passages))] * len(queries), "all"
    faults, digest = FaultLog(can_skip=False, what="a first stage's result"), hashlib.sha256()
    places: list[dict[int, None]] = [{} for _ in range(len(queries))]
    for number, raw in enumerate(raw_lines(path), 1):
        digest.update(raw + b"\n")
        cells = raw.decode("utf-8", "replace").split()
        if len(cells) != 6:
            faults.add(path, number, "bad line", f"expected the six columns of a TREC run, got {len(cells)} columns")
        elif not _is_finite(cells[4]):
            faults.add(path, number, "bad score", f"expected a finite number, got {cells[4]!r}")
        elif unknown := [cell for cell, known in ((cells[0], queries), (cells[2], passages)) if cell not in known.rows]:
            faults.add(path, number, "unknown id", f"expected ids of the queries and passages, got {unknown[0]!r}")
        else:
            places[queries.rows[cells[0]]][passages.rows[cells[2]]] = None
    faults.finalize()
    return [np.array(list(own), dtype=np.int64) for own in places], digest.hexdigest()


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _groups(sizes: Sequence[int]) -> list[range]:
    """Return consecutive queries with about 2,000 pairs together, each group as every other run would make it."""
    pairs_before = np.cumsum(sizes) - sizes
    starts = [0, *(np.flatnonzero(np.diff(pairs_before // _PAIRS)) + 1).tolist(), len(sizes)]
    return [range(start, end) for start, end in pairwise(starts)]
