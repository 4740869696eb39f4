"""Tables of any kind, row by row, and which of their columns hold the sentences.

Tab- and comma-separated lines, JSON lines, Parquet, data sets of the Hub: each gives numbered rows, a list of cells or
a mapping, and names of columns where it has them. :func:`choose_columns` looks for the sentences among these names.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.faults import FaultLog, ParallelTextError, numbered_lines
from st_xling.data.pairs import PairRow, is_pair
from st_xling.utils.languages import (
    LANGUAGE_NAMES,
    UNKNOWN,
    canonical_language,
    is_evident_code,
    match_language,
    pair_in_name,
    resolve_pair,
)
from st_xling.utils.text import describe_missing, file_ending, unpacked_name

logger = logging.getLogger(__name__)

Columns = Sequence[int] | Sequence[str]
"""A choice of columns: source, target and perhaps hard negatives; positions counted from 0, or names."""

Languages = tuple["str | None", "str | None"]
"""Of source and target, where they are known."""

Row = tuple[int, "list[str] | Mapping[str, Any]"]
"""Number of a line or row, counted from 1, and its cells."""

PARALLEL_NAMES = (("source", "target"), ("src", "tgt"), ("sentence1", "sentence2"), ("anchor", "positive"))
"""Names of columns taken as source and target, in this order of preference."""

QUERY_NAMES = (*product(("query", "question", "anchor"), ("passage", "positive", "answer")), *PARALLEL_NAMES)
"""The same of queries and the passages that answer them."""

TEXT_KEYS = ("text", "contents")
"""Keys of JSON lines that hold a text or passage of one language."""

_LANGUAGE_COLUMNS = ("source_language", "target_language")
_NEGATIVE = re.compile(r"negative(?:_(\d+))?", re.IGNORECASE)
_QUOTED_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=,|\Z)')
_CODE_OF_NAME = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
_PARQUET_ROWS = 10_000


class Layout(NamedTuple):
    """Where the rows of a table keep their sentences.

    Attributes:
        keys: Names or positions of the columns of source and target, then of hard negatives.
        languages: Of source and target, in rows that do not say their own.
        language_keys: Columns in which rows say it; ``None`` where there is none, or the caller chose the language.
        nested: Whether source and target are keys of a column ``translation`` of ``{"de": ..., "en": ...}``.
        header: Whether the first row of a delimited file names its columns.
        width: Cells in every row of a delimited file; ``None``: at least as many as ``keys`` reach.
    """

    keys: tuple[Any, ...] = ("source", "target")
    languages: tuple[str, ...] = (UNKNOWN, UNKNOWN)
    language_keys: tuple[Any, ...] = (None, None)
    nested: bool = False
    header: bool = False
    width: int | None = None

    @property
    def negatives(self) -> int:
        """How many hard negatives each row has."""
        return len(self.keys) - 2

    @property
    def column_names(self) -> list[str]:
        """The columns that are read, by name."""
        keys = ("translation", *self.keys[2:]) if self.nested else self.keys
        return [*keys, *filter(None, self.language_keys)]


def negative_columns(names: Iterable[str]) -> list[str]:
    """Those of the names that are hard negatives', in order: ``negative``, ``negative_1``, ``negative_2``, …

    Example:
        >>> negative_columns(["negative_10", "passage", "negative_2"])
        ['negative_2', 'negative_10']
    """
    matches = {name: match for name in names if (match := _NEGATIVE.fullmatch(str(name).strip()))}
    return sorted(matches, key=lambda name: int(matches[name][1] or 0))


def choose_columns(
    names: Sequence[str],
    where: str,
    *,
    columns: Columns | None = None,
    requested: Languages = (None, None),
    named: Languages = (None, None),
    translation_keys: Sequence[str] = (),
    known: Iterable[tuple[str, str]] = PARALLEL_NAMES,
) -> Layout | None:
    """The columns to read, the first that fits; ``None`` if nothing does.

    These are the ``columns`` named; a pair that is ``known``; ``english`` and ``non_english``, as the parallel sets of
    sentence-transformers have them; columns that are called by the two languages; the only two columns, if both are
    language codes; then the languages as keys of a column ``translation``. Upper and lower case are the same.

    Args:
        names: The names of all columns.
        where: What is read; a warning names columns that are not.
        columns: Two names, to choose them outright, perhaps with those of negatives behind them.
        requested: The languages asked for.
        named: Those asked for or else in the name of the file.
        translation_keys: The keys of a ``translation`` column, if there is one.
        known: Pairs of names, in order of preference.
    """
    found, nested = None, False
    stated: Languages = (None, None)
    if columns is not None:
        found = tuple(columns) if set(columns) <= set(names) else None
        if found is None and set(columns) <= set(translation_keys):
            found, nested = tuple(columns), True
    else:
        spelled = {str(name).strip().lower(): name for name in reversed(names)}
        pair = next((pair for pair in known if spelled.keys() >= set(pair)), None)
        if pair is not None:
            found = (spelled[pair[0]], spelled[pair[1]])
        elif spelled.keys() >= {"english", "non_english"}:
            found, stated = _english_pair(spelled, named)
        elif (found := _language_pair(names, named)) is None:
            found = _language_pair(translation_keys, named, nested=True)
            nested = found is not None
        if found is not None and not nested:
            found = (*found, *negative_columns(names))
    if found is None:
        return None
    if nested or all(is_evident_code(str(name)) for name in found[:2]):
        stated = (str(found[0]), str(found[1]))
    # A column chosen by name states its language better than the name of the file.
    order = (requested, named, stated) if columns is None else (requested, stated, named)
    languages = tuple(next(filter(None, codes), UNKNOWN) for codes in zip(*order))
    says = tuple(name if code is None and name in names else None for name, code in zip(_LANGUAGE_COLUMNS, requested))
    layout = Layout(found, languages, says, nested)
    ignored = [str(name) for name in names if name not in (*layout.column_names, *_LANGUAGE_COLUMNS)]
    if ignored and columns is None:
        read = ", ".join(map(str, layout.keys))
        logger.warning("%s: columns read: %s; no objective sees the others: %s", where, read, ", ".join(ignored))
    return layout


def _english_pair(spelled: Mapping[str, str], named: Languages) -> tuple[tuple[str, str], Languages]:
    """English second, unless the languages that are known say otherwise."""
    one, other = (code and canonical_language(code) for code in named)
    codes = ("en", next((code for code in named if code and canonical_language(code) != "eng"), None))
    first = one == "eng" or (other is not None and other != "eng")
    names = ("english", "non_english")[:: 1 if first else -1]
    return (spelled[names[0]], spelled[names[1]]), (codes if first else codes[::-1])


def _language_pair(names: Sequence[str], languages: Languages, nested: bool = False) -> tuple[str, str] | None:
    by_code = {_code(name): name for name in reversed(names)}
    source, target = (by_code.get((code and match_language(code, by_code)) or "") for code in languages)
    if source and target and source != target:
        return source, target
    # Only where there are no other columns: "id" may be a row number, "is" a flag.
    if len(names) != 2 or not (nested or all(is_evident_code(str(name)) for name in names)):
        return None
    one, other = names
    if source == other or target == one:
        one, other = other, one
    # A language that is asked for and is neither column's leaves no choice.
    fits = [code is None or found == name for code, found, name in zip(languages, (source, target), (one, other))]
    return (one, other) if all(fits) else None


def _code(name: str) -> str:
    """Return the language code of a column: itself, or of a name such as ``German``."""
    text = str(name).strip()
    return _CODE_OF_NAME.get(text.lower()) or text


def check_columns(columns: Columns | None, where: str, *, by_name: bool = False) -> None:
    """Refuse anything but two or more different names or positions, with a ``ValueError``."""
    if columns is None:
        return
    named = all(isinstance(column, str) for column in columns)
    numbered = not by_name and all(isinstance(column, int) and column >= 0 for column in columns)
    if len(columns) < 2 or len(set(columns)) != len(columns) or not (named or numbered):
        what = "names, got {!r}; pass e.g. ('de', 'en')"
        what = what if by_name else "positions counted from 0, or names of a header, got {!r}; pass e.g. (0, 1)"
        raise ValueError(f"columns of {where} must be two different {what.format(columns)}")


def file_layout(
    path: str, kind: str, requested: Languages, columns: Columns | None, known: Iterable[tuple[str, str]]
) -> Layout:
    """Looks for the columns of a file, in its header, its first rows or its schema.

    Args:
        path: The file.
        kind: ``.tsv``, ``.csv``, ``.jsonl`` or ``.parquet``.
        requested: The languages asked for; they come before those of the file's name.
        columns: To read; ``None``: see :func:`choose_columns`.
        known: Of that. Lines of questions (:data:`QUERY_NAMES`) without a header may have negatives behind a pair.
    Raises:
        ParallelTextError, ValueError: No columns fit, or the languages are those of the file's name turned round.
    """
    check_columns(columns, path, by_name=kind in (".jsonl", ".parquet"))
    named = resolve_pair(path, *requested, swapped_on_purpose=columns is not None)
    options: dict[str, Any] = {"requested": requested, "named": named, "known": known}
    if kind in (".tsv", ".csv"):
        return _delimited_layout(path, kind, columns, options)
    return _first_layout(_named_columns(path, kind), path, columns, options)


def _first_layout(
    named: Iterable[tuple[list[str], list[str], str]], where: str, columns: Columns | None, options: dict[str, Any]
) -> Layout:
    """The columns of the first names among which some fit; a ``ParallelTextError`` where none do."""
    first: tuple[list[str], str] | None = None
    for names, keys, place in named:
        if layout := choose_columns(names, where, columns=columns, translation_keys=keys, **options):
            return layout
        first = first or (names, place)
    if first is not None:
        known = "source/target, src/tgt, sentence1/sentence2, anchor/positive, english/non_english or languages"
        wanted, faults = " and ".join(map(repr, columns)) if columns else known, FaultLog()
        fact = f"expected {wanted}, got {', '.join(first[0]) or 'none'} in {first[1]}"
        faults.add_beyond_repair(where, "missing key", fact)
        faults.finalize()
    return Layout()  # nothing that can be read: reading says what is wrong


def _named_columns(path: str, kind: str) -> Iterator[tuple[list[str], list[str], str]]:
    """Names of the columns, keys of ``translation`` and where they stand: of each object, or of a Parquet file."""
    if kind == ".jsonl":
        for number, row in json_objects(path, FaultLog(skip_bad_lines=True)):
            keys = row.get("translation")
            yield list(row), list(keys) if isinstance(keys, Mapping) else [], f"line {number}"
        return
    import pyarrow as pa

    with open_parquet(path) as file:
        schema = file.schema_arrow
        keys = schema.field("translation").type if "translation" in schema.names else None
        yield schema.names, [field.name for field in keys] if keys and pa.types.is_struct(keys) else [], "the file"


def _delimited_layout(path: str, kind: str, columns: Columns | None, options: dict[str, Any]) -> Layout:
    by_name = columns is not None and isinstance(columns[0], str)
    first = next(delimited_rows(path, kind, FaultLog(skip_bad_lines=True)), (0, []))[1]
    layout = choose_columns(first, path, columns=columns if by_name else None, **options) if len(first) > 1 else None
    if layout and not by_name and not any(options["named"]) and all(len(str(key)) == 2 for key in layout.keys[:2]):
        layout = None  # two bare codes are no header unless asked for: "no,si" may well be a pair
    if layout is None and by_name:
        raise ValueError(f"{path}: expected the columns {columns!r} in the header, got {first}; pass names it has")
    if layout is None:
        languages = tuple(code or UNKNOWN for code in options["named"])
        if columns is not None:
            return Layout(tuple(columns), languages)
        width = max(2, len(first)) if options["known"] is QUERY_NAMES else 2
        return Layout(tuple(range(width)), languages, width=width)
    if kind == ".tsv":
        logger.warning("%s: the first line, %s, names the columns and is taken for no pair", path, ", ".join(first))
    keys = tuple(columns) if columns and not by_name else tuple(map(first.index, layout.keys))
    says = tuple(None if name is None else first.index(name) for name in layout.language_keys)
    return layout._replace(keys=keys, language_keys=says, header=True, width=len(first))


def file_rows(faults: FaultLog, path: str, kind: str, layout: Layout) -> Iterator[PairRow]:
    """The pairs of a file whose columns :func:`file_layout` has found."""
    rows: Iterator[Row]
    if kind == ".jsonl":
        rows = json_objects(path, faults)
    elif kind == ".parquet":
        rows = parquet_rows(path, layout.column_names)
    else:
        rows = delimited_rows(path, kind, faults)
        if layout.header:
            next(rows, None)
    return pair_rows(faults, path, rows, layout)


def pair_rows(faults: FaultLog, where: str, rows: Iterable[Row], layout: Layout) -> Iterator[PairRow]:
    """Source, target, their languages and the negatives of every row that has them all."""
    names = ["source", "target", *(f"negative_{number + 1}" for number in range(layout.negatives))]
    says, least = any(key is not None for key in layout.language_keys), 0
    for number, row in rows:
        cells: Any = row
        if isinstance(row, list):
            least = least or max(layout.keys) + 1
            if len(row) != layout.width if layout.width else len(row) < least:
                wanted = str(layout.width or f"at least {least}")
                faults.add(where, number, "wrong column count", f"expected {wanted}, got {len(row)}")
                continue
        else:
            cells = row.get("translation") if layout.nested else row
            if not isinstance(cells, Mapping) or any(key not in cells for key in layout.keys):
                wanted = " and ".join(map(repr, layout.keys))
                faults.add(where, number, "missing key", f"expected {wanted}, got {', '.join(row) or 'none'}")
                continue
        texts = [cells[key] for key in layout.keys]
        if not is_pair(faults, where, number, names, texts):
            continue
        codes = layout.languages
        if says:
            keyed = row if isinstance(row, Mapping) else dict(enumerate(row))
            own = (keyed.get(key) for key in layout.language_keys)
            codes = tuple(said if isinstance(said, str) and said else code for said, code in zip(own, codes))
        yield (*texts[:2], *codes, *texts[2:])


def delimited_rows(path: str | Path, kind: str, faults: FaultLog) -> Iterator[tuple[int, list[str]]]:
    """The cells of tab- or comma-separated lines; quotes are syntax in the latter alone, see :func:`split_csv`."""
    opened = 0  # the line of an unclosed quote, until a later line with quotes has been seen
    for number, line in numbered_lines(path, faults):
        row = line.split("\t") if kind == ".tsv" else split_csv(line)
        if row is None:
            faults.add(path, number, "unclosed quote", "a field begins with a quote that this line does not close")
            opened = number
            continue
        if opened and '"' in line:
            ends_one = any(cell.endswith('"') and cell.count('"') % 2 for cell in row) and line.count('"') % 2
            if ends_one:
                faults.add(path, number, "unclosed quote", f"ends a field that line {opened} opened")
            opened = 0
            if ends_one:
                continue
        yield number, row


def fixed_columns(path: str | Path, width: int, faults: FaultLog) -> Iterator[tuple[int, list[str]]]:
    """The cells of tab-separated lines that have exactly so many."""
    for number, row in delimited_rows(path, ".tsv", faults):
        if len(row) == width:
            yield number, row
        else:
            faults.add(path, number, "wrong columns", f"expected {width}, got {len(row)}")


def split_csv(line: str) -> list[str] | None:
    """The fields of one CSV line by the rule of ``read_csv``, or ``None`` if a field's opening quote is never closed.

    Example:
        >>> split_csv('"a, b",5" pipe')
        ['a, b', '5" pipe']
    """
    if '"' not in line:
        return line.split(",")
    fields, start = [], 0
    while start <= len(line):
        quoted = _QUOTED_FIELD.match(line, start)
        if quoted:
            fields.append(quoted[1].replace('""', '"'))
            start = quoted.end() + 1
        elif line.startswith('"', start):
            return None
        else:
            end = line.find(",", start)
            end = len(line) if end < 0 else end
            fields.append(line[start:end])
            start = end + 1
    return fields


def json_objects(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of JSON lines, one line in memory at a time; a line that is none is noted."""
    for number, line in numbered_lines(path, faults):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.add(path, number, "bad JSON", "an empty line" if not line.strip() else str(error))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            faults.add(path, number, "bad JSON", f"expected an object, got {type(value).__name__}")


def named_cells(
    path: str | Path, names: Sequence[Sequence[str]], needed: int, faults: FaultLog, *, any_header: bool = False
) -> Iterator[tuple[int, list[Any]]]:
    """The cells of some columns of JSON lines, or of tab-separated lines under a header or none.

    Args:
        path: JSON lines if its name ends in ``.jsonl`` or ``.json``, perhaps packed.
        names: Of each column those that it may have, the first for messages.
        needed: How many of the columns must be there, and stand first where no header names them; of the others the
            cell is ``None`` where there is none.
        faults: Where lines without these columns are noted.
        any_header: A first line that ends with the last needed column's name is a header too, however it calls those
            before: where it does not matter which is which.
    """
    if file_ending(unpacked_name(path)) in (".jsonl", ".json"):
        for number, row in json_objects(path, faults):
            cells = [next((row[name] for name in own if name in row), None) for own in names]
            missing = [own[0] for own, cell in zip(names[:needed], cells) if cell is None]
            if missing:
                got = ", ".join(row) or "none"
                faults.add(path, number, "no such key", f"expected {', '.join(missing)}, got {got}")
            else:
                yield number, cells
        return
    places: list[int | None] = []
    for number, texts in delimited_rows(path, ".tsv", faults):
        if not places:
            places = [next((texts.index(name) for name in own if name in texts), None) for own in names]
            with_header = None not in places[:needed]
            # GLUE's and the shared tasks' own files have more columns than are read, the cut ones have these alone.
            places = places if with_header else [*range(needed), *[None] * (len(names) - needed)]
            least, most = max(place for place in places if place is not None) + 1, len(texts) if with_header else needed
            if with_header or (any_header and len(texts) == needed and texts[-1].strip().lower() in names[needed - 1]):
                continue
        if least <= len(texts) <= most:
            yield number, [None if place is None else texts[place] for place in places]
            continue
        expected = f"{least} to {most}" if most > least else str(least)
        columns = " TAB ".join(own[0] for own in names[:needed])
        hint = "" if with_header else f" ({columns}), or a header that names the columns"
        faults.add(path, number, "bad column count", f"expected {expected}{hint}, got {len(texts)}")


def titled_text(row: Mapping[str, Any]) -> str | None:
    """The text of one object behind its title; ``None`` where it is missing or blank."""
    text, title = next((row[key] for key in TEXT_KEYS if key in row), ""), row.get("title") or ""
    return (f"{title.strip()} {text}".strip() or None) if isinstance(text, str) and isinstance(title, str) else None


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; errors say what is there instead."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error


def parquet_rows(path: str, names: Sequence[str]) -> Iterator[Row]:
    """The rows of a Parquet file with the cells of some columns."""
    with open_parquet(path) as file:
        batches = file.iter_batches(_PARQUET_ROWS, columns=list(names))
        yield from enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), 1)


def hub_layout(
    table: Any,
    where: str,
    name: str | None,
    requested: Languages,
    columns: Columns | None,
    known: Iterable[tuple[str, str]],
) -> Layout:
    """The same as :func:`file_layout` of a table of :func:`load_table`; ``name`` is its configuration."""
    check_columns(columns, where, by_name=True)
    pair = pair_in_name(name or "")
    if pair[0] != pair[1] and pair[0] and (requested[0] == pair[1] or requested[1] == pair[0]):
        pair = (pair[1], pair[0])  # the columns are chosen by language, so that either direction can be read
    named = (requested[0] or pair[0], requested[1] or pair[1])
    feature = table.features.get("translation")
    keys = getattr(feature, "languages", feature)  # of a Translation, or of a plain struct
    keys = list(keys) if isinstance(keys, (dict, list, tuple)) else []
    options = {"requested": requested, "named": named, "known": known}
    return _first_layout([(table.column_names, keys, where)], where, columns, options)


def hub_rows(faults: FaultLog, table: Any, where: str, layout: Layout) -> Iterator[PairRow]:
    """The pairs of a table of :func:`load_table`."""
    batches = table.with_format(None).select_columns(layout.column_names).iter(batch_size=1000)
    rows = (dict(zip(batch, values)) for batch in batches for values in zip(*batch.values()))
    return pair_rows(faults, where, enumerate(rows, 1), layout)


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
    if not isinstance(loaded, (datasets.Dataset, datasets.IterableDataset)):
        if "train" not in loaded and len(loaded) > 1:
            raise ValueError(
                f"{where}: expected a split to choose, got none for {', '.join(loaded)}; pass e.g. split=test"
            )
        loaded = loaded["train"] if "train" in loaded else next(iter(loaded.values()))
    if stream and hasattr(loaded, "to_iterable_dataset"):  # a folder of save_to_disk, which is on disk as it is
        loaded = loaded.to_iterable_dataset()
    return loaded if loaded.features is not None else loaded._resolve_features()  # which looks at the first rows
