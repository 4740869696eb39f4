"""Rank the passages of files for the queries of a file; the same call resumes a killed one.

Ids of queries and passages are in memory; their text is read from the disk when it is needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import closing
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
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder, work_path
from st_xling.utils.signature import name_of, sign
from st_xling.utils.terminal import progress_bar
from st_xling.utils.text import decode_line, raw_lines

# Pairs scored between two saves, and sorted by length together: more would pad hardly less.
_PAIRS_PER_STEP = 2000

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
    with (
        closing(TextRecords(queries, "queries")) as query_records,
        closing(TextRecords(passages, "passages")) as passage_records,
    ):
        candidate_rows, candidates_sha256 = read_candidates(candidates, query_records, passage_records)
        encoder, name = load_reranker(model, device)
        scorer = PairScorer(encoder, token_budget=token_budget, autocast=autocast, long_queries="lowest")
        identity = model_identity(encoder, name)
        task = {
            "command": "rerank",
            "model": identity.fingerprint,
            "queries": query_records.sha256,
            "passages": passage_records.sha256,
            "candidates": candidates_sha256,
            "top_k": top_k,
            "token budget": scorer.token_budget,
            "autocast": autocast,
            "activation": str(scorer.activation),
        }
        with work_folder(out, work, task) as folder:
            counts = _rank_all(scorer, query_records, passage_records, candidate_rows, top_k, folder, progress=progress)
            deliver(folder.path / _RANKED, out)
            if work is None:
                folder.remove()
    settings = {
        **model_options(encoder),
        "queries": f"{Path(queries).name}@{query_records.sha256[:8]}",
        "passages": f"{Path(passages).name}@{passage_records.sha256[:8]}",
    }
    candidates_name = "all" if candidates is None else f"{Path(candidates).name}@{candidates_sha256[:8]}"
    signature = sign(
        "rerank",
        f"model:{identity}",
        *(f"{name}:{value}" for name, value in settings.items()),
        candidates=candidates_name,
        top_k=top_k or "all",
    )
    return RerankReport(counts, signature)


def _rank_all(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    candidate_rows: Sequence[np.ndarray],
    top_k: int | None,
    folder: ResumableFolder,
    *,
    progress: bool,
) -> dict[str, int]:
    """Rank the candidates of all queries, write the lines of :func:`rerank_texts`, and return their counts.

    Args:
        scorer: Scorer of the cross-encoder.
        queries: Queries.
        passages: Passages.
        candidate_rows: Rows of each query's passages.
        top_k: As for :func:`rerank_texts`.
        folder: Work folder, in which each group of queries is a step with its counts.
        progress: Show a bar on stderr.
    """
    counts = dict.fromkeys(_COUNTS, 0)
    finished = folder.steps
    with (
        atomic_writer(folder.path / _RANKED) as stream,
        progress_bar(total=len(queries), unit="queries", desc="re-ranking", show=progress) as bar,
    ):
        for group in _query_groups([len(rows) for rows in candidate_rows]):
            step = f"queries-{group.start}"
            if step not in finished:
                group_counts, lines = _rank(scorer, queries, passages, candidate_rows, top_k, group)
                with folder.writing(step, f"{step}.jsonl", counts=group_counts) as path:
                    path.write_bytes(lines)
            saved_counts = folder.listed[step]["counts"]
            for count in _COUNTS:
                counts[count] += saved_counts[count]
            stream.write((folder.path / f"{step}.jsonl").read_bytes())
            bar.update(len(group))
    return counts


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
        """Describe what was skipped and cut, if anything, a line each."""
        descriptions = {
            "without_candidates": "queries without candidates, skipped",
            "long_queries": "queries too long for the model, skipped",
            "cut_passages": "passages cut to the model's length",
        }
        lines = []
        for name, description in descriptions.items():
            if self.counts[name]:
                lines.append(f"{self.counts[name]:,} {description}")
        return lines


def _rank(
    scorer: PairScorer,
    queries: TextRecords,
    passages: TextRecords,
    candidate_rows: Sequence[np.ndarray],
    top_k: int | None,
    group: range,
) -> tuple[dict[str, int], bytes]:
    """Return counts, and the ranked passages of a group of queries as lines."""
    group_queries = queries[group.start : group.stop]
    group_rows = candidate_rows[group.start : group.stop]
    # A passage that several queries of the group share is read once.
    records = {row: passages[row] for row in np.unique(np.concatenate(group_rows)).tolist()}
    pairs: list[tuple[str, str]] = []
    for query, rows in zip(group_queries, group_rows):
        pairs += [(query.text, records[row].text) for row in rows.tolist()]
    cut_before = scorer.cut_passages
    logits = scorer.score(pairs, raw=True)
    counts = dict.fromkeys(_COUNTS, 0)
    counts["queries"] = len(group)
    counts["cut_passages"] = scorer.cut_passages - cut_before
    ends = np.cumsum([len(rows) for rows in group_rows])
    lines = []
    for query, rows, query_logits in zip(group_queries, group_rows, np.split(logits, ends[:-1])):
        if not len(rows):
            counts["without_candidates"] += 1
            continue
        if np.isneginf(query_logits).all():
            counts["long_queries"] += 1
            continue
        for rank, hit in enumerate(ranked(scorer, query_logits, top_k), 1):
            passage = records[int(rows[hit.index])]
            line = {
                "query_id": query.id,
                "rank": rank,
                "passage_id": passage.id,
                "score": float(f"{hit.score:.7g}"),  # as many digits as a float32 has
                "language": passage.language,
                "text": passage.text,
            }
            lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            counts["passages"] += 1
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
        rows: Row of each record by its id, from 0.
        format: Name of the lines' form in :mod:`st_xling.mining.text`.
    """

    def __init__(self, path: str | Path, what: str) -> None:
        self.path = str(path)
        self.what = what
        self.format: TextFormat = "bucc" if ".tsv" in Path(path).suffixes else "jsonl"
        self.rows: dict[str, int] = {}
        faults = FaultLog(can_skip=False, what=what)
        digest = hashlib.sha256()
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
        line, fault = decode_line(raw)
        if line is None:
            raise ValueError(f"expected UTF-8, got {fault}")
        record = _parse_json(line) if self.format == "jsonl" else self._parse_cells(line.split("\t"), path, number)
        if not record.id.strip() or not record.text.strip():
            raise ValueError("expected an id and a text that are not blank")
        if not is_unicode(f"{record.id}{record.text}"):
            raise ValueError("expected text, got half a surrogate pair")
        return record

    def _parse_cells(self, cells: Sequence[str], path: str, number: int) -> TextRecord:
        if number == 1 and is_id_header(cells):
            raise ValueError(
                f"expected {self.what}, got the header {', '.join(cells)}; take it away: tail -n +2 {path}"
            )
        if not 2 <= len(cells) <= 3:
            raise ValueError(f"expected id TAB text, perhaps TAB language, got {len(cells)} columns")
        language = cells[2].strip() if len(cells) == 3 else ""
        return TextRecord(cells[0], cells[1], language or None)


def _parse_json(line: str) -> TextRecord:
    """Parse a record of one of the layouts of :class:`TextRecords`."""
    value = json_object(line)
    name = value.get("id", value.get("_id"))
    text = value.get("text")
    title = str(value.get("title") or "").strip()
    language = str(value.get("language") or "").strip()
    if not is_id(name) or not isinstance(text, str):
        raise ValueError('expected a string or whole number "id" and a string "text"')
    if title:
        text = f"{title} {text}"
    return TextRecord(str(name), text, language or None)


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
        For each query the rows of its passages; the hash of the file's lines, or ``"all"``.

    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: wrong columns, an id that is unknown.
    """
    if path is None:
        return [np.arange(len(passages))] * len(queries), "all"
    faults = FaultLog(can_skip=False, what="a first stage's result")
    digest = hashlib.sha256()
    # Rows of each query's passages, in the order of the file; a dictionary, so that each is there once.
    rows_by_query: list[dict[int, None]] = [{} for _ in range(len(queries))]
    for number, raw in enumerate(raw_lines(path), 1):
        digest.update(raw + b"\n")
        cells = raw.decode("utf-8", "replace").split()
        if len(cells) != 6:
            faults.add(path, number, "bad line", f"expected the six columns of a TREC run, got {len(cells)} columns")
            continue
        query_id, _, passage_id, _, score, _ = cells
        if not _is_finite(score):
            faults.add(path, number, "bad score", f"expected a finite number, got {score!r}")
        elif query_id not in queries.rows or passage_id not in passages.rows:
            unknown_id = query_id if query_id not in queries.rows else passage_id
            faults.add(path, number, "unknown id", f"expected ids of the queries and passages, got {unknown_id!r}")
        else:
            rows_by_query[queries.rows[query_id]][passages.rows[passage_id]] = None
    faults.finalize()
    return [np.array(list(rows), dtype=np.int64) for rows in rows_by_query], digest.hexdigest()


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _query_groups(sizes: Sequence[int]) -> list[range]:
    """Return consecutive queries with about 2,000 pairs together, each group as every other run would make it."""
    pairs_before = np.cumsum(sizes) - sizes
    starts = [0, *(np.flatnonzero(np.diff(pairs_before // _PAIRS_PER_STEP)) + 1).tolist(), len(sizes)]
    return [range(start, end) for start, end in pairwise(starts)]
