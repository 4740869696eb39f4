"""Rows whose columns have names: JSON lines, Parquet, data sets of the Hub; and which columns hold the sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.data.faults import FaultLog, ParallelTextError, StreamFaultLog, iter_lines
from st_xling.data.pairs import COLUMNS, PairRow, is_unescaped_pair, text_features
from st_xling.utils.languages import UNKNOWN, is_two_letter_code, pair_in_name, resolve_pair
from st_xling.utils.text import describe_missing

if TYPE_CHECKING:
    from datasets import IterableDataset

ColumnPair = tuple[int, int] | tuple[str, str]
"""A choice of columns: two positions counted from 0, or two names."""

Languages = tuple["str | None", "str | None"]
"""Of source and target, where they are known."""

Record = Mapping[str, object]

NAMED_PAIRS = (("source", "target"), ("src", "tgt"), ("sentence1", "sentence2"))
"""Column names taken as source and target, in this order of preference."""

LOOKED_AT = 1000
"""Objects of a stream of JSON lines that are looked at for their keys."""

_PARQUET_ROWS = 10_000


class NamedColumns(NamedTuple):
    """The columns to read.

    Attributes:
        source: Name of the column (or key of ``translation``) with the source sentences.
        target: The same, of the target sentences.
        source_language: Language that the name itself states, as in a column ``de``.
        target_language: The same, of the target side.
        nested: Whether the names are keys of a column ``translation`` of ``{"de": ..., "en": ...}``.
    """

    source: str
    target: str
    source_language: str | None = None
    target_language: str | None = None
    nested: bool = False

    @property
    def languages(self) -> Languages:
        return self.source_language, self.target_language


def find_columns(
    names: Sequence[str],
    *,
    columns: ColumnPair | None = None,
    languages: Languages = (None, None),
    translation_keys: Sequence[str] = (),
) -> NamedColumns | None:
    """The first that fits: the ``columns`` named, source/target, src/tgt, sentence1/sentence2, the languages asked for,
    two columns that are both language codes; then the same of the keys of a column ``translation``.

    Args:
        names: The names of all columns.
        columns: Two names, to choose them outright.
        languages: The languages asked for, where known.
        translation_keys: The keys of a ``translation`` column, if there is one.
    Returns:
        The two columns, or ``None`` if nothing fits.
    """
    if columns is not None:
        source, target = (str(column) for column in columns)
        for candidates, nested in ((names, False), (translation_keys, True)):
            if source in candidates and target in candidates:
                return _with_languages(source, target, nested)
        return None
    for source, target in NAMED_PAIRS:
        if source in names and target in names:
            return NamedColumns(source, target)
    return _language_columns(names, languages, False) or _language_columns(translation_keys, languages, True)


def jsonl_rows(faults: FaultLog, path: str, languages: Languages, columns: ColumnPair | None) -> Iterator[PairRow]:
    """The pairs of a file with one JSON object a line, as ``read_jsonl`` says."""
    check_names(columns, path)
    pair = resolve_pair(path, *languages, swapped_on_purpose=columns is not None)
    objects = json_objects(path, iter_lines(path, faults), faults, 1)
    first: list[tuple[int, Record]] = []
    chosen = None
    # A stream may have no end, and holds what it has looked at.
    for number, row in islice(objects, LOOKED_AT if isinstance(faults, StreamFaultLog) else None):
        first.append((number, row))
        keys = row.get("translation")
        keys = list(keys) if isinstance(keys, Mapping) else []
        if chosen := find_columns(list(row), columns=columns, languages=pair, translation_keys=keys):
            yield from _record_rows(chain(first, objects), faults, path, chosen, pair, languages)
            return
    if first:
        where = f"line {first[0][0]}"
        faults.add_beyond_repair(path, "missing key", _no_columns(columns, list(first[0][1]), where))


def parquet_rows(faults: FaultLog, path: str, languages: Languages, columns: ColumnPair | None) -> Iterator[PairRow]:
    """The pairs of a Parquet file; columns, languages and faults as of JSON lines, with rows counted from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_names(columns, path)
    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    pair = resolve_pair(path, *languages, swapped_on_purpose=columns is not None)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            keys: list[str] = []
            if "translation" in schema.names and pa.types.is_struct(schema.field("translation").type):
                keys = [field.name for field in schema.field("translation").type]
            chosen = find_columns(schema.names, columns=columns, languages=pair, translation_keys=keys)
            if chosen is None:
                faults.add_beyond_repair(path, "missing key", _no_columns(columns, schema.names, "the file"))
                return
            batches = file.iter_batches(_PARQUET_ROWS, columns=_needed(schema.names, chosen))
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            yield from _record_rows(enumerate(rows, 1), faults, path, chosen, pair, languages)
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error


def hub_columns(
    table: Any, where: str, name: str | None, languages: Languages, columns: ColumnPair | None
) -> tuple[NamedColumns, Languages]:
    """The columns to read of a table that :func:`load_table` has loaded, and its languages; raises as ``read_hub``."""
    named = pair_in_name(name or "")
    if named[0] != named[1] and named[0] and (languages[0] == named[1] or languages[1] == named[0]):
        named = (named[1], named[0])  # the columns are chosen by language, so that either direction can be read
    pair = (languages[0] or named[0], languages[1] or named[1])
    feature = table.features.get("translation")
    keys = getattr(feature, "languages", feature)  # of a Translation, or of a plain struct
    keys = list(keys) if isinstance(keys, (dict, list, tuple)) else []
    chosen = find_columns(table.column_names, columns=columns, languages=pair, translation_keys=keys)
    if chosen is None:
        faults = FaultLog()
        faults.add_beyond_repair(where, "missing key", _no_columns(columns, table.column_names, where))
        faults.finalize()
    assert chosen is not None
    return chosen, pair


def hub_rows(
    faults: FaultLog, table: Any, where: str, chosen: NamedColumns, languages: Languages, requested: Languages
) -> Iterator[PairRow]:
    """The pairs of a table whose columns :func:`hub_columns` has chosen."""
    batches = table.with_format(None).select_columns(_needed(table.column_names, chosen)).iter(batch_size=1000)
    rows = (dict(zip(batch, values)) for batch in batches for values in zip(*batch.values()))
    yield from _record_rows(enumerate(rows, 1), faults, where, chosen, languages, requested)


def stream_hub(table: Any, *, skip_bad_lines: bool, **options: Any) -> IterableDataset:
    """The same as a stream, with the shards of ``table``; faults raise, or warn, a thousand rows at a time.

    Args:
        table: An ``IterableDataset``.
        skip_bad_lines: Drop faulty rows, with a warning, instead of raising.
        options: Of :func:`hub_rows`.
    """
    names = _needed(table.column_names, options["chosen"])
    return table.select_columns(names).map(
        partial(_hub_batch, skip_bad_lines=skip_bad_lines, **options),
        batched=True,
        with_indices=True,
        remove_columns=names,
        features=text_features(),
    )


def _hub_batch(
    batch: dict[str, list[Any]], numbers: list[int], *, skip_bad_lines: bool, **options: Any
) -> dict[str, list[str]]:
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    rows = (dict(zip(batch, values)) for values in zip(*batch.values()))
    pairs = list(_record_rows(((number + 1, row) for number, row in zip(numbers, rows)), faults, **options))
    faults.finalize()
    return {column: [pair[place] for pair in pairs] for place, column in enumerate(COLUMNS)}


def load_table(dataset_id: str | Path, name: str | None, split: str | None, where: str, *, stream: bool = False) -> Any:
    """One split of a dataset of the Hub or of a folder; raises as ``read_hub``."""
    import datasets

    folder = Path(dataset_id)
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(str(folder))
            if split and isinstance(loaded, datasets.DatasetDict):
                loaded = loaded[split]
        else:
            loaded = datasets.load_dataset(str(dataset_id), name, split=split, streaming=stream)
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        reason = (str(error).splitlines() or [""])[0]
        nearby = "" if folder.is_dir() else f" As a file: {describe_missing(folder)}."
        raise ValueError(
            f"expected a file, a Moses prefix, a folder or the id of a dataset on the Hub, got {where}"
            f"{f' with split {split}' if split else ''}; the Hub says: {type(error).__name__}: {reason}.{nearby} "
            "Check the spelling, the network (HF_HUB_OFFLINE), and name= (the configuration) and split=."
        ) from error
    if isinstance(loaded, (datasets.Dataset, datasets.IterableDataset)):
        return loaded
    if "train" in loaded or len(loaded) == 1:
        return loaded["train"] if "train" in loaded else next(iter(loaded.values()))
    raise ValueError(f"{where}: expected a split to choose, got none for {', '.join(loaded)}; pass e.g. split='test'")


def json_objects(
    path: str | Path, lines: Iterable[str | None], faults: FaultLog, first_line: int
) -> Iterator[tuple[int, Record]]:
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


def _record_rows(
    rows: Iterable[tuple[int, Record]],
    faults: FaultLog,
    where: str,
    chosen: NamedColumns,
    languages: Languages,
    requested: Languages,
) -> Iterator[PairRow]:
    """The chosen cells of numbered rows; a row's own languages hold where the caller requested none."""
    defaults = [code or stated or UNKNOWN for code, stated in zip(languages, chosen.languages)]
    for number, row in rows:
        cells: object = row.get("translation") if chosen.nested else row
        if not isinstance(cells, Mapping) or chosen.source not in cells or chosen.target not in cells:
            names = f"{chosen.source!r} and {chosen.target!r}"
            faults.add(where, number, "missing key", f"expected {names}, got {', '.join(row) or 'none'}")
            continue
        source, target = cells[chosen.source], cells[chosen.target]
        if is_unescaped_pair(faults, where, number, source, target):
            own = (row.get("source_language"), row.get("target_language"))
            codes = (
                said if code is None and isinstance(said, str) and said else default
                for said, code, default in zip(own, requested, defaults)
            )
            yield (source, target, *codes)


def _language_columns(names: Sequence[str], languages: Languages, nested: bool) -> NamedColumns | None:
    source, target = languages
    if source in names and target in names and source != target:
        return _with_languages(str(source), str(target), nested)
    # Only where there are no other columns: "id" may be a row number, "is" a flag.
    if len(names) != 2 or not (nested or all(is_two_letter_code(name) for name in names)):
        return None
    if source == names[1] or target == names[0]:
        names = names[::-1]
    if source not in (None, names[0]) or target not in (None, names[1]):
        return None
    return _with_languages(names[0], names[1], nested)


def _with_languages(source: str, target: str, nested: bool) -> NamedColumns:
    # Three letters prove nothing: "src" and "ref" have them too.
    if nested or (is_two_letter_code(source) and is_two_letter_code(target)):
        return NamedColumns(source, target, source, target, nested)
    return NamedColumns(source, target)


def check_names(columns: ColumnPair | None, where: str) -> None:
    """Refuse anything but two different names, with a ``ValueError``."""
    if columns is not None and (len(set(columns)) != 2 or not all(isinstance(column, str) for column in columns)):
        raise ValueError(f"columns of {where} must be two different names, got {columns!r}; pass e.g. ('de', 'en')")


def _needed(names: Iterable[str], chosen: NamedColumns) -> list[str]:
    """Of all columns, those that :func:`_record_rows` looks at."""
    sentences = {"translation"} if chosen.nested else {chosen.source, chosen.target}
    return [name for name in names if name in sentences | {"source_language", "target_language"}]


def _no_columns(columns: ColumnPair | None, names: Iterable[str], where: str) -> str:
    wanted = " and ".join(map(repr, columns)) if columns else "source/target, src/tgt, sentence1/sentence2 or languages"
    return f"expected {wanted}, got {', '.join(names) or 'none'} in {where}"
