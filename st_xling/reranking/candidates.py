"""Which passages are ranked for each query: a first stage's result, or all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.data.faults import FaultLog
from st_xling.reranking.text_records import TextRecords, json_object
from st_xling.utils.text import raw_lines


class FirstStage:
    """Passages of each query, in a first stage's order.

    A line is one of: TREC's run format, ``query Q0 passage rank score tag``, taken in the order of the lines; JSON of
    one passage, ``{"query_id": …, "passage_id": …}``, as ``st-xling rerank`` writes; JSON of all passages of a query,
    ``{"query_id": …, "passage_ids": […]}``. A query may come again later; a passage twice for a query counts once.

    Args:
        path: UTF-8, also ``.gz`` and ``.xz``.
        queries: Those that it may name.
        passages: Likewise.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: bad JSON, wrong columns, an id that is unknown.

    Attributes:
        sha256: Of the file's lines.
    """

    def __init__(self, path: str | Path, queries: TextRecords, passages: TextRecords) -> None:
        faults, digest = FaultLog(can_skip=False, what="a first stage's result"), hashlib.sha256()
        found: dict[int, list[int]] = {}
        for number, raw in enumerate(raw_lines(path), 1):
            digest.update(raw + b"\n")
            try:
                query, names = _parse(raw.decode("utf-8"))
                row = _known(query, queries)
                found.setdefault(row, []).extend(_known(name, passages) for name in names)
            except ValueError as error:
                faults.add(path, number, "bad line", str(error))
        faults.settle()
        self._found = {row: np.array(list(dict.fromkeys(places)), dtype=np.int64) for row, places in found.items()}
        self.sha256 = digest.hexdigest()

    def of(self, query: int) -> np.ndarray:
        """Places of the passages of the query at a place; none if it has none."""
        return self._found.get(query, np.empty(0, dtype=np.int64))


class AllPassages:
    """Every passage for every query."""

    sha256 = "all"

    def __init__(self, passages: TextRecords) -> None:
        self._places = np.arange(len(passages))

    def of(self, query: int) -> np.ndarray:
        return self._places


Candidates = FirstStage | AllPassages


def groups(candidates: Candidates, queries: int, *, pairs: int) -> Iterator[range]:
    """Consecutive queries with about so many pairs together, each group as every other run would make it."""
    start = count = 0
    for query in range(queries):
        count += len(candidates.of(query))
        if count >= pairs:
            yield range(start, query + 1)
            start, count = query + 1, 0
    if start < queries:
        yield range(start, queries)


def _parse(line: str) -> tuple[str, list[str]]:
    if not line.lstrip().startswith("{"):
        cells = line.split()
        if len(cells) != 6:
            raise ValueError(f"expected JSON or the six columns of a TREC run, got {len(cells)} columns")
        return cells[0], [cells[2]]
    value = json_object(line)
    names = value.get("passage_ids", [value.get("passage_id")])
    if not isinstance(names, list) or not all(map(_is_id, [value.get("query_id"), *names])):
        raise ValueError('expected a "query_id" and a "passage_id" or a list "passage_ids"')
    return str(value["query_id"]), list(map(str, names))


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _known(name: str, records: TextRecords) -> int:
    if name not in records.rows:
        raise ValueError(f"unknown id {name!r}: it is none of the {len(records):,} {records.what} of {records.path}")
    return records.rows[name]
