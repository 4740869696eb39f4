"""Queries with lists of passages, as FlagEmbedding, DPR and Tevatron write them: a row for each relevant passage."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.check import FaultLog
from st_xling.data.columns import Layout, NumberedRow
from st_xling.data.formats import FORMATS, titled_text
from st_xling.data.pair_source import PairReader, PairSource
from st_xling.utils.file_endings import KEYED_ENDINGS
from st_xling.utils.text import is_blank, unpacked_ending

logger = logging.getLogger(__name__)

QUERIES = ("query", "question", "anchor")
POSITIVES = ("pos", "positive", "positives", "positive_passages", "positive_ctxs", "passage", "passages")
NEGATIVES = (
    "neg",
    "negative",
    "negatives",
    "hard_negatives",
    "negative_passages",
    "hard_negative_ctxs",
    "negative_ctxs",
)
"""Names of columns, in order of preference."""


class ListColumns(NamedTuple):
    """Columns of queries with lists of passages.

    Attributes:
        query: Column of the query.
        positive: Column of the relevant passages, or of the one.
        negatives: Columns of hard negatives, of which the first that has any is read.
    """

    query: str
    positive: str
    negatives: tuple[str, ...]


def find_lists(path: str | Path, columns: Sequence[str] | None) -> ListColumns | None:
    """Return the columns of a file whose first row has lists of passages; ``None`` for any other file.

    Args:
        path: JSON lines, JSON or Parquet.
        columns: Names of the columns of queries, positives and negatives, if they are chosen.
    """
    if not Path(path).is_file():
        return None
    row = _first_row(path)
    if columns is not None:
        query, positive, *negatives = columns
    else:
        query = next((name for name in QUERIES if name in row), "")
        positive = next((name for name in POSITIVES if name in row), "")
        negatives = [name for name in NEGATIVES if name in row]
    if query not in row or positive not in row:
        return None
    has_lists = any(isinstance(row.get(name), list) for name in (positive, *negatives))
    return ListColumns(query, positive, tuple(negatives)) if has_lists else None


def is_table(path: str | Path) -> bool:
    """Return whether a JSON file has rows of queries, and not the paragraphs of SQuAD's form."""
    row = _first_row(path)
    return bool(row) and "paragraphs" not in row and any(name in row for name in (*QUERIES, *POSITIVES))


def _first_row(path: str | Path) -> Mapping[str, Any]:
    ending = unpacked_ending(path)
    if ending not in KEYED_ENDINGS:
        return {}
    rows = FORMATS[ending](path, FaultLog(skip_bad_lines=True))
    _, row = next(rows, (0, {}))
    return row if isinstance(row, Mapping) else {}


def open_lists(path: Path, columns: ListColumns, language: str) -> PairSource:
    """Return the pairs of a file: each query with each of its relevant passages, and hard negatives next to them.

    Each row gets as many negatives as the row with the fewest of those that have any; the first of its list.

    Args:
        path: The file.
        columns: Of :func:`find_lists`.
        language: Language of queries and passages.
    """
    rows = _query_rows(path, columns, FaultLog(skip_bad_lines=True))
    counts = {len(row.negatives) for row in rows}
    least = min(counts - {0}, default=0)
    names = [columns.query, columns.positive, *columns.negatives]
    logger.info("%s: reads %s", path, ", ".join(names))
    if least < max(counts, default=0):
        logger.warning(
            "%s: hard negatives read of each query: %d, the fewest that one has, of up to %d", path, least, max(counts)
        )
    where = (str(path), str(path))
    reader = partial(listed_rows, str(path), columns=tuple(columns), negatives=least)
    layout = Layout(tuple(range(least + 2)), (language, language), width=least + 2)
    return PairSource((PairReader(reader, layout, where),), str(path), (path,))


def listed_rows(path: str, faults: FaultLog, *, columns: tuple[Any, ...], negatives: int) -> Iterator[NumberedRow]:
    """Yield a row for each relevant passage: query, passage, and the first ``negatives`` of its hard negatives."""
    for row in _query_rows(Path(path), ListColumns(*columns), faults):
        if len(row.negatives) < negatives:
            expected = "expected a list of hard negatives, as in other rows, got none"
            faults.add(path, row.number, "no negatives", expected)
            continue
        for positive in row.positives:
            yield row.number, [row.query, positive, *row.negatives[:negatives]]


class _QueryRow(NamedTuple):
    """A query with its relevant passages and hard negatives; ``number`` is that of its row in the file."""

    number: int
    query: str
    positives: Sequence[str]
    negatives: Sequence[str]


def _query_rows(path: Path, columns: ListColumns, faults: FaultLog) -> Iterator[_QueryRow]:
    for number, row in FORMATS[unpacked_ending(path)](path, faults):
        assert isinstance(row, Mapping)
        query = row.get(columns.query)
        positives = _listed_texts(row.get(columns.positive))
        negatives = [_listed_texts(row.get(name)) for name in columns.negatives]
        if not isinstance(query, str) or is_blank(query) or not positives:
            faults.add(
                path, number, "no query or passage", f"expected {columns.query} and {columns.positive} with text"
            )
        elif None in negatives:
            faults.add(path, number, "no text", f"expected texts in {', '.join(columns.negatives)}")
        else:
            first_negatives = next(filter(None, negatives), [])
            yield _QueryRow(number, query, positives, first_negatives)


def _listed_texts(value: Any) -> list[str] | None:
    """Return the texts of a list of texts or of passages with a title, or of one; ``None`` for anything else."""
    if value is None:
        return []
    texts = []
    passages = value if isinstance(value, list) else [value]
    for passage in passages:
        text = titled_text(passage) if isinstance(passage, Mapping) else passage
        if not isinstance(text, str) or is_blank(text):
            return None
        texts.append(text)
    return texts
