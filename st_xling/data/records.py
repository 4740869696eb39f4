"""Tables whose columns have names: JSON lines and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import ColumnPair, NamedColumns, cells, check_named, find_columns
from st_xling.data.faults import FaultLog, ParallelTextError
from st_xling.data.languages import resolve_pair
from st_xling.data.lines import describe_missing, read_lines
from st_xling.data.pairs import PairCollector

if TYPE_CHECKING:
    from datasets import Dataset

Row = Mapping[str, object]


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
    check_named(columns, str(path))
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    objects: list[tuple[int, Row]] = []
    for number, line in enumerate(read_lines(path, faults), 1):
        if line is None:
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.add(path, number, "bad JSON", "an empty line" if not line.strip() else str(error))
            continue
        if isinstance(value, dict):
            objects.append((number, value))
        else:
            faults.add(path, number, "bad JSON", f"expected an object, got {type(value).__name__}")

    pair = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    chosen = None
    for _, row in objects:
        chosen = find_columns(list(row), columns=columns, languages=pair, translation_keys=translation_keys(row))
        if chosen:
            break
    if objects and chosen is None:
        number, row = objects[0]
        faults.add_beyond_repair(path, "missing key", no_columns(columns, list(row), f"line {number}"))
    pairs = PairCollector(str(path), faults, *(_settle(pair, chosen) if chosen else pair))
    if chosen:
        collect_records(objects, pairs, chosen, source_language, target_language)
    return pairs.dataset()


def read_parquet(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a Parquet file; columns, languages and faults as in ``read_jsonl``, with rows counted from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_named(columns, str(path))
    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    pair = resolve_pair(path, source_language, target_language, swapped_on_purpose=columns is not None)
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
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
            batches = file.iter_batches(columns=needed_columns(schema.names, chosen))
            rows = (row for batch in batches for row in batch.to_pylist())
            collect_records(enumerate(rows, 1), pairs, chosen, source_language, target_language)
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error
    return pairs.dataset()


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
