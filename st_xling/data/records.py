"""Tables whose columns have names: JSON lines and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import ColumnPair, NamedColumns, cells, check_named, find_columns
from st_xling.data.faults import FaultLog, ParallelTextError
from st_xling.data.lines import read_lines
from st_xling.data.pairs import PairCollector
from st_xling.utils.languages import resolve_pair
from st_xling.utils.text import describe_missing

if TYPE_CHECKING:
    from datasets import Dataset

Row = Mapping[str, object]

PARQUET_ROWS = 10_000
"""Rows read at a time."""


def read_jsonl(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a file with one JSON object a line, plain or gzipped.

    The keys are those of ``columns``, else ``source``/``target``, ``src``/``tgt``, ``sentence1``/``sentence2``, the
    languages asked for or named by the file, or the only two keys if both are two-letter codes; all of these also
    inside ``{"translation": {"de": ..., "en": ...}}``. They are settled by the first object in which any of these is
    found, and hold for all lines.

    Args:
        path: The file.
        source_language: Language of the source side; else the row's own ``source_language``, if it has one; else from a
            name like ``de-en.jsonl``; else the key, if it is a language code; else ``"und"``.
        target_language: The same, of the target side.
        columns: Names of the two keys.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
        ValueError: If ``columns`` are not two names.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    lines = [(1, read_lines(path, faults))]
    for pairs in collect_jsonl(path, lines, faults, source_language, target_language, columns):  # noqa: B007
        pass
    return pairs.dataset()


def collect_jsonl(
    path: str | Path,
    parts: Iterable[tuple[int, Sequence[str | None]]],
    faults: FaultLog,
    source_language: str | None,
    target_language: str | None,
    columns: ColumnPair | None,
) -> Iterator[PairCollector]:
    """The pairs of a file that comes in parts: number of the first line, lines. Yields one collector after each part.

    The keys are settled by the first part that holds an object.
    """
    check_named(columns, str(path))
    pair = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    chosen, pairs = None, PairCollector(str(path), faults, *pair)
    for first_line, lines in parts:
        objects = list(json_objects(path, lines, faults, first_line))
        if objects and chosen is None:
            chosen = _first_columns(objects, path, faults, columns, pair)
            if chosen:
                pairs = PairCollector(str(path), faults, *_settle(pair, chosen))
        if chosen:
            collect_records(objects, pairs, chosen, source_language, target_language)
        yield pairs


def json_objects(
    path: str | Path, lines: Sequence[str | None], faults: FaultLog, first_line: int
) -> Iterator[tuple[int, Row]]:
    """The objects of numbered lines; a line that is none is noted."""
    for number, line in enumerate(lines, first_line):
        if line is None:
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.add(path, number, "bad JSON", "an empty line" if not line.strip() else str(error))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            faults.add(path, number, "bad JSON", f"expected an object, got {type(value).__name__}")


def _first_columns(
    objects: Sequence[tuple[int, Row]],
    path: str | Path,
    faults: FaultLog,
    columns: ColumnPair | None,
    pair: tuple[str | None, str | None],
) -> NamedColumns | None:
    for _, row in objects:
        chosen = find_columns(list(row), columns=columns, languages=pair, translation_keys=translation_keys(row))
        if chosen:
            return chosen
    number, row = objects[0]
    faults.add_beyond_repair(path, "missing key", no_columns(columns, list(row), f"line {number}"))
    return None


def read_parquet(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a Parquet file; columns, languages and faults as in ``read_jsonl``, with rows counted from 1."""
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    for pairs in collect_parquet(path, faults, source_language, target_language, columns):  # noqa: B007
        pass
    return pairs.dataset()


def collect_parquet(
    path: str | Path,
    faults: FaultLog,
    source_language: str | None,
    target_language: str | None,
    columns: ColumnPair | None,
) -> Iterator[PairCollector]:
    """The pairs of a Parquet file, a batch of rows at a time. Yields one collector, first empty, after each batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_named(columns, str(path))
    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    pair = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            keys: list[str] = []
            if "translation" in schema.names and pa.types.is_struct(schema.field("translation").type):
                keys = [field.name for field in schema.field("translation").type]
            chosen = find_columns(schema.names, columns=columns, languages=pair, translation_keys=keys)
            if chosen is None:
                faults.add_beyond_repair(path, "missing key", no_columns(columns, schema.names, "the file"))
                faults.settle()
                raise AssertionError("settle raises for what is beyond repair")
            pairs = PairCollector(str(path), faults, *_settle(pair, chosen))
            yield pairs
            first_row = 1
            for batch in file.iter_batches(PARQUET_ROWS, columns=needed_columns(schema.names, chosen)):
                numbered = enumerate(batch.to_pylist(), first_row)
                collect_records(numbered, pairs, chosen, source_language, target_language)
                first_row += len(batch)
                yield pairs
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error


def collect_records(
    rows: Iterable[tuple[int, Row]],
    pairs: PairCollector,
    chosen: NamedColumns,
    source_language: str | None,
    target_language: str | None,
) -> None:
    """Add the chosen cells of numbered rows to ``pairs``.

    A row's own ``source_language`` and ``target_language`` hold where the caller asked for none.
    """
    for number, row in rows:
        pair = cells(row, chosen)
        if pair is None:
            names = f"{chosen.source!r} and {chosen.target!r}"
            pairs.faults.add(pairs.where, number, "missing key", f"expected {names}, got {', '.join(row) or 'none'}")
            continue
        own = (row.get("source_language"), row.get("target_language"))
        pairs.add_unescaped(
            number,
            *pair,
            own[0] if source_language is None and isinstance(own[0], str) else None,
            own[1] if target_language is None and isinstance(own[1], str) else None,
        )


def needed_columns(names: Iterable[str], chosen: NamedColumns) -> list[str]:
    """Of all columns, those that ``collect_records`` looks at."""
    sentences = {"translation"} if chosen.nested else {chosen.source, chosen.target}
    return [name for name in names if name in sentences | {"source_language", "target_language"}]


def translation_keys(row: Row) -> list[str]:
    """The keys of a row's ``translation``, if it has one."""
    translation = row.get("translation")
    return list(translation) if isinstance(translation, Mapping) else []


def no_columns(columns: ColumnPair | None, names: Iterable[str], where: str) -> str:
    """Says which columns were looked for in vain."""
    wanted = " and ".join(map(repr, columns)) if columns else "source/target, src/tgt, sentence1/sentence2 or languages"
    return f"expected {wanted}, got {', '.join(names) or 'none'} in {where}"


def _settle(pair: tuple[str | None, str | None], chosen: NamedColumns) -> tuple[str | None, str | None]:
    return pair[0] or chosen.source_language, pair[1] or chosen.target_language
