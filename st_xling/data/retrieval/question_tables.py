"""Queries with their passages beside them: tables, question-answering files, data sets of the Hub."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.delimited import split_csv
from st_xling.data.faults import FaultLog, iter_lines
from st_xling.data.pairs import SURROGATE, PairCollector
from st_xling.data.parallel import HUB_ID, READERS, read_hub
from st_xling.data.records import load_table
from st_xling.data.retrieval.passages import iter_objects
from st_xling.data.squad_form import NO_ANSWER, read_squad
from st_xling.utils.text import describe_missing, file_ending

if TYPE_CHECKING:
    from datasets import Dataset

COLUMNS = ("query", "passage")
"""Where columns have names, unless others are asked for."""

_NEGATIVE = re.compile(r"negative(?:_(\d+))?")
_POSITIONS = ["query of a line", "passage of a line"]
_SQUAD = (".json", ".json.gz")
_BY_NAME = (".jsonl", ".jsonl.gz", ".parquet")


def negative_columns(names: Iterable[str]) -> list[str]:
    """Those of the names that are hard negatives', in order: ``negative``, ``negative_1``, ``negative_2``, …

    Example:
        >>> negative_columns(["negative_10", "passage", "negative_2"])
        ['negative_2', 'negative_10']
    """
    found = {name: match for name in names if (match := _NEGATIVE.fullmatch(name))}
    return sorted(found, key=lambda name: int(found[name][1] or 0))


def read_question_table(
    place: str,
    language: str,
    *,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    split: str | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs, ``source`` the query and ``target`` a passage that answers it; perhaps with hard negatives.

    Args:
        place: A ``.jsonl`` or ``.parquet`` file; a ``.tsv`` or ``.csv`` file of two columns, or more: negatives; a
            ``.json`` file in SQuAD's form, of which the questions with an answer are read; or the id of a data set on
            the Hub.
        language: Of both sides.
        columns: Names of the query's column, the passage's, and those of negatives, where they have any; by default
            :data:`COLUMNS` and all that :func:`negative_columns` knows.
        name: Configuration of a data set on the Hub.
        split: Of a data set on the Hub.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Returns:
        The columns of parallel text, and ``negative_1``, ``negative_2``, … where there are any.
    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file of another kind, options that it does not take, faults.
    """
    languages = {"source_language": language, "target_language": language}
    path, ending = Path(place).expanduser(), file_ending(place)
    is_file = ending in (*_SQUAD, *READERS)
    if not is_file and (path.exists() or not HUB_ID.fullmatch(place)):
        endings = ", ".join([*READERS, *_SQUAD])
        raise ValueError(f"expected a file that ends in {endings}, or the id of a data set on the Hub; got {place}.")
    given = {"name": name, "split": split, "columns": None if ending in _BY_NAME else columns}
    refused = [key for key, value in given.items() if value is not None] if is_file else []
    if refused:
        raise ValueError(f"{place} is a file, which has no {', '.join(refused)}; leave these out.")
    if columns is not None and len(set(columns)) != max(len(columns), 2):
        raise ValueError(
            f"expected the columns of queries, passages and perhaps negatives, each once: got {','.join(columns)}."
        )
    if ending in _SQUAD:
        return _of_squad(path, language, skip_bad_lines=skip_bad_lines)
    pair = COLUMNS if columns is None else (columns[0], columns[1])
    if columns is None or len(columns) > 2:
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
        names, rows = _table(place, ending, faults, name=name, split=split)
        if negatives := negative_columns(names) if columns is None else columns[2:]:
            first = names[:2] if names[:2] == _POSITIONS else pair
            return _with_negatives(place, [*first, *negatives], rows, language, faults)
    if is_file:
        named = {"columns": pair} if ending in _BY_NAME else {}
        return READERS[ending](path, **languages, **named, skip_bad_lines=skip_bad_lines)
    return read_hub(place, **languages, columns=pair, name=name, split=split, skip_bad_lines=skip_bad_lines)


def _with_negatives(
    where: str, columns: list[str], rows: Iterable[tuple[int, Mapping[str, object]]], language: str, faults: FaultLog
) -> Dataset:
    """The rows with a text in each of the columns: query, passage, negatives."""
    pairs = PairCollector(where, faults, language, language)
    texts: list[list[str]] = [[] for _ in columns[2:]]
    for number, row in rows:
        query, passage, *negatives = (row.get(name) for name in columns)
        if not all(isinstance(text, str) and text.strip() and not SURROGATE.search(text) for text in negatives):
            faults.add(where, number, "no negative", f"expected text in {', '.join(columns[2:])}")
            continue
        before = len(pairs.rows["source"])
        pairs.add_unescaped(number, query, passage)
        if len(pairs.rows["source"]) > before:
            for column, text in zip(texts, negatives):
                column.append(str(text))
    dataset = pairs.dataset()
    for number, column in enumerate(texts, 1):
        dataset = dataset.add_column(f"negative_{number}", column)
    return dataset


def _table(
    place: str, ending: str, faults: FaultLog, *, name: str | None, split: str | None
) -> tuple[list[str], Iterator[tuple[int, Mapping[str, object]]]]:
    """Names of a table's columns, and its rows with their numbers, read as they are asked for.

    Columns without a name are called by their place, the third and those after it as negatives.
    """
    if ending not in READERS:
        table = load_table(place, name, split, place)
        return list(table.column_names), enumerate(iter(table), 1)
    if ending == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not Path(place).is_file():
            raise FileNotFoundError(describe_missing(place))
        try:
            file = pq.ParquetFile(place)
        except pa.ArrowInvalid:
            return [], iter(())  # read_parquet says what is wrong
        rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
        return list(file.schema_arrow.names), enumerate(rows, 1)
    lines = iter_objects(place, faults) if ending in _BY_NAME else _cut_lines(place, ending, faults)
    first = next(lines, (0, {}))
    return list(first[1]), itertools.chain([first] if first[0] else [], lines)


def _cut_lines(place: str, ending: str, faults: FaultLog) -> Iterator[tuple[int, Mapping[str, object]]]:
    width = 0
    for number, line in enumerate(iter_lines(place, faults), 1):
        cells = None if line is None else split_csv(line) if ending.startswith(".csv") else line.split("\t")
        width = width or len(cells or ())
        if cells is not None and len(cells) == width:
            yield number, dict(zip([*_POSITIONS, *(f"negative_{column}" for column in range(1, width - 1))], cells))
        elif cells is not None:
            faults.add(place, number, "wrong columns", f"expected {width}, as in the first line, got {len(cells)}")
        elif line is not None:
            faults.add(place, number, "unclosed quote", "a field begins with a quote that this line does not close")


def _of_squad(path: Path, language: str, *, skip_bad_lines: bool) -> Dataset:
    found = read_squad(path)
    pairs = PairCollector(str(path), FaultLog(skip_bad_lines=skip_bad_lines), language, language)
    for number, question in enumerate(found.questions, 1):
        if question.fault != NO_ANSWER:
            pairs.add_unescaped(number, question.text, found.paragraphs[question.paragraph])
    return pairs.dataset()
