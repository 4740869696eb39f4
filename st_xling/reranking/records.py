"""Queries and passages of a file by id, their text left on the disk until it is needed; candidates of each query."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from st_xling.data.check import FaultLog
from st_xling.mining.text import IndexedLines, is_id, json_object
from st_xling.utils.choices import TextFormat
from st_xling.utils.text import decode_line, raw_lines


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
        what: What the records are, for errors: ``"queries"``, ``"passages"``.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: no JSON, no id, no text, an id twice; for a file without lines.

    Attributes:
        sha256: Of the file's lines.
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
        line, fault = decode_line(raw)
        if line is None:
            raise ValueError(f"expected UTF-8, got {fault}")
        if self.format == "jsonl":
            record = _json_record(line)
        else:
            cells = line.split("\t")
            if not 2 <= len(cells) <= 3:
                raise ValueError(f"expected id TAB text, perhaps TAB language, got {len(cells)} columns")
            record = TextRecord(cells[0], cells[1], (cells[2].strip() or None) if len(cells) == 3 else None)
        if not record.id.strip() or not record.text.strip():
            raise ValueError("expected an id and a text that are not blank")
        return record

    def place_of(self, name: str) -> int:
        """The place of an id, from 0; raises ``ValueError`` for one that no record has."""
        if name not in self.rows:
            raise ValueError(f"unknown id {name!r}: it is none of the {len(self):,} {self.what} of {self.path}")
        return self.rows[name]


def _json_record(line: str) -> TextRecord:
    value = json_object(line)
    name, text = value.get("id", value.get("_id")), value.get("text")
    title, language = value.get("title") or "", value.get("language")
    if not is_id(name) or not isinstance(text, str):
        raise ValueError('expected a string or whole number "id" and a string "text"')
    return TextRecord(str(name), f"{title.strip()} {text}" if str(title).strip() else text, language or None)


class FirstStage:
    """Passages of each query, in a first stage's order; without a first stage, every passage for every query.

    A line is one of: TREC's run format, ``query Q0 passage rank score tag``, taken in the order of the lines; or JSON,
    ``{"query_id": …, "passage_id": …}``, as ``st-xling rerank`` writes. A query may come again later; a passage twice
    for a query counts once.

    Args:
        path: UTF-8, plain or packed; ``None`` for every passage.
        queries: Those that it may name.
        passages: Likewise.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: bad JSON, wrong columns, an id that is unknown.

    Attributes:
        sha256: Of the file's lines; ``"all"`` without one.
    """

    def __init__(self, path: str | Path | None, queries: TextRecords, passages: TextRecords) -> None:
        self._queries = len(queries)
        self._places: dict[int, np.ndarray] = {}
        self._others, self.sha256 = np.arange(len(passages)), "all"  # of a query that is not named
        if path is None:
            return
        faults, digest = FaultLog(can_skip=False, what="a first stage's result"), hashlib.sha256()
        places: dict[int, list[int]] = {}
        for number, raw in enumerate(raw_lines(path), 1):
            digest.update(raw + b"\n")
            try:
                query, passage = _candidate(raw.decode("utf-8"))
                places.setdefault(queries.place_of(query), []).append(passages.place_of(passage))
            except ValueError as error:
                faults.add(path, number, "bad line", str(error))
        faults.finalize()
        # A passage that a query has twice keeps its first place.
        self._places = {query: np.array(list(dict.fromkeys(own)), dtype=np.int64) for query, own in places.items()}
        self._others, self.sha256 = np.empty(0, dtype=np.int64), digest.hexdigest()

    def of(self, query: int) -> np.ndarray:
        """Places of the passages of the query at a place; empty if it has none."""
        return self._places.get(query, self._others)

    def groups(self, pairs: int) -> Iterator[range]:
        """Consecutive queries with about so many pairs together, each group as every other run would make it."""
        start = count = 0
        for query in range(self._queries):
            count += len(self.of(query))
            if count >= pairs:
                yield range(start, query + 1)
                start, count = query + 1, 0
        if start < self._queries:
            yield range(start, self._queries)


def _candidate(line: str) -> tuple[str, str]:
    """Return the ids of a query and of a passage."""
    if not line.lstrip().startswith("{"):
        cells = line.split()
        if len(cells) != 6:
            raise ValueError(f"expected JSON or the six columns of a TREC run, got {len(cells)} columns")
        return cells[0], cells[2]
    value = json_object(line)
    if not all(map(is_id, ids := (value.get("query_id"), value.get("passage_id")))):
        raise ValueError('expected a "query_id" and a "passage_id"')
    return str(ids[0]), str(ids[1])
